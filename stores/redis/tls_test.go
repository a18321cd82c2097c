package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/redis"
	"github.com/stilehq/stile/stores/redis/redistest"
)

// TestTLS: a real server with a certificate for 127.0.0.1 and ::1 counts for a
// client that trusts it, and is refused in clear words by one that does not. So
// is TLS to a plain port.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := l.Addr().String()
	_, port, _ := net.SplitHostPort(secure)
	_ = l.Close()
	server := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "no", "--requirepass", "sesame")
	store := func(text string) *redis.Store {
		t.Helper()
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		c, err := redis.FromURL(u, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.Namer, c.Timeout, c.ConnectTimeout = namer, patient, patient
		s, err := redis.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	trusting := store("rediss://:sesame@" + secure + "?ca=" + cert)
	if err := trusting.Probe(t.Context()); err != nil && !redis.IsWarning(err) {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := apply(t.Context(), trusting, hit("tls")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if b, err := apply(t.Context(), trusting, row("tls", read(10))); err != nil || b.Rows[0].Cells[0].Value != 50 {
		t.Errorf("%v and %v, want 50 hits", b.Rows[0].Cells[0].Value, err)
	}
	for name, text := range map[string]string{
		"an unknown certificate": "rediss://:sesame@" + secure,
		"a plain port":           "rediss://:sesame@" + server.Addr + "?ca=" + cert,
		"another name":           "rediss://:sesame@" + secure + "?servername=other.example&ca=" + cert,
	} {
		s := store(text)
		ctx, cancel := within(5 * time.Second) // a plain server says nothing at all
		defer cancel()
		if err := s.Probe(ctx); !errors.Is(err, redis.ErrTLS) {
			t.Errorf("%s: %v, want ErrTLS", name, err)
		}
		proves(t, try(t, s, "tls"), true)
	}
	proves(t, try(t, store("redis://:sesame@"+secure), "tls"), true) // plain to a TLS port
}

// certificate writes a certificate of its own for 127.0.0.1 and ::1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stile test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA:        true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}
