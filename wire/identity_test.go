package wire_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/wire"
)

// noCrawler knows no crawler, so that nothing but keys is there to be fetched.
type noCrawler struct{}

func (noCrawler) VerifyCrawler(*core.Request, netip.Addr) core.Crawler { return core.Crawler{} }

var signer = ed25519.NewKeyFromSeed([]byte("a seed of exactly thirty-two byt"))

func jwks() []byte {
	return fmt.Appendf(nil, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"%s"}]}`, base64.RawURLEncoding.EncodeToString(signer.Public().(ed25519.PublicKey)))
}

func signedToken(t *testing.T) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{"iss": "https://login.example.org", "aud": "site", "sub": "alice", "exp": noon.Add(1e9 * 3600).Unix()})
	token.Header["kid"] = "k"
	text, err := token.SignedString(signer)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// everything is a policy with all that knows clients.
const everything = head + `client: {from: remote, ipv6_prefix: 56, asn: "file:networks.tsv"}
identify:
  cookie: {secrets: env:SECRET}
  jwt: {%s, issuer: "https://login.example.org", audience: site, algorithms: [EdDSA]}
  api_keys: {file: keys.yaml}
buckets:
  - {name: hour, key: address, algorithm: fixed-window, limit: 60, window: 1h}
  - {name: c, key: cookie, algorithm: fixed-window, limit: 600, window: 24h, day: visitor}
  - {name: u, key: user, algorithm: fixed-window, limit: 600, window: 24h}
  - {name: k, key: api-key, algorithm: fixed-window, limit: 600, window: 24h}
  - {name: n, key: network, algorithm: fixed-window, limit: 4000, window: 24h}
  - {name: s, key: asn, algorithm: fixed-window, limit: 4000, window: 24h}
`

func parseIn(t *testing.T, text string, files map[string]string) *policy.File {
	t.Helper()
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, _, err := policy.Parse(filepath.Join(dir, "stile.yaml"), []byte(text), func(name string) string {
		if name == "SECRET" {
			return strings.Repeat("k", 40)
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestIdentitiesOfAPolicy goes from the file to keys of all kinds.
func TestIdentitiesOfAPolicy(t *testing.T) {
	t.Parallel()
	svc := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(jwks()) }))
	defer svc.Close()
	sum := sha256.Sum256([]byte("partner-key"))
	files := map[string]string{
		"networks.tsv": "198.51.100.0\t198.51.100.255\t24940\n",
		"keys.yaml":    "- {hash: " + hex.EncodeToString(sum[:]) + ", name: partner, tier: 3}\n",
		"jwks.json":    string(jwks()),
	}
	for _, source := range []string{`jwks: "` + svc.URL + `"`, "jwks_file: jwks.json"} {
		f := parseIn(t, fmt.Sprintf(everything, source), files)
		r, _ := ready(t, wire.Config{Policy: f, Crawlers: noCrawler{}})
		if err := r.Refresh(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		cookies := r.Parts().Cookies
		decide := func(addr string, fields ...string) (*core.Request, core.Decision) {
			h := http.Header{"Sec-Fetch-Dest": {"document"}}
			for i := 0; i < len(fields); i += 2 {
				h.Set(fields[i], fields[i+1])
			}
			q := &core.Request{Method: "GET", Host: "example.org", Path: "/", Header: h, Peer: netip.MustParseAddr(addr), Time: noon}
			return q, r.Decide(context.Background(), q)
		}
		q, first := decide("198.51.100.7")
		cookie, _, _ := strings.Cut(cookies.Offer(q, &first), ";")
		if !strings.HasPrefix(cookie, "__Host-stile=") {
			t.Fatalf("%s: no cookie", source)
		}
		for want, fields := range map[string][]string{
			"address 198.51.100.7": nil,
			"user alice":           {"Authorization", "Bearer " + signedToken(t), "Cookie", cookie},
			"api-key partner":      {"X-Api-Key", "partner-key", "Cookie", cookie},
			"cookie ":              {"Cookie", cookie, "X-Api-Key", "unknown"},
		} {
			if _, d := decide("198.51.100.7", fields...); !strings.HasPrefix(d.Key.String(), want) {
				t.Errorf("%s: %v, want %s", source, d.Key, want)
			}
		}
		for addr, listed := range map[string]bool{"198.51.100.7": true, "203.0.113.7": false} {
			_, d := decide(addr)
			found := false
			for _, s := range d.States {
				found = found || s.Bucket == "s"
			}
			if found != listed {
				t.Errorf("%s: the bucket of networks applies: %v", addr, found)
			}
		}
		// The same identities over a reload keep what newcomers have earned.
		if _, err := r.Reload(t.Context(), parseIn(t, strings.Replace(fmt.Sprintf(everything, source), "limit: 60,", "limit: 61,", 1), files)); err != nil {
			t.Fatal(err)
		}
		if r.Parts().Cookies == nil {
			t.Errorf("%s: no cookies after a reload", source)
		}
	}
}

func TestIdentitiesThatCannotBe(t *testing.T) {
	t.Parallel()
	f := parseIn(t, fmt.Sprintf(everything, "jwks_file: absent.json"), map[string]string{"keys.yaml": "- {hash: x, name: a}\n", "networks.tsv": "<html>"})
	refused := func(f *policy.File, want ...string) {
		t.Helper()
		_, err := wire.New(t.Context(), wire.Config{Policy: f, Stores: registry(t), HitLog: slog.DiscardHandler})
		for _, w := range want {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("error %v, want it to say %q", err, w)
			}
		}
	}
	refused(f, "identify.jwt: ", "identify.api_keys: ", "client.asn: ")
	refused(parseIn(t, limit(3)+"client: {from: remote, asn: \"header:X-Asn\"}\n", nil), "client.asn: asn: X-Asn can be written by anyone")
	r, _ := ready(t, wire.Config{Policy: parseIn(t, limit(3), nil), Crawlers: noCrawler{}})
	if r.Parts().Cookies != nil || r.Due() || r.Refresh(t.Context(), time.Second) != nil {
		t.Error("a policy without identities has something to fetch or to set")
	}
}
