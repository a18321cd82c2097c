package dynamodb

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFromURL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw  string
		want Config
		errs []string // parts of the error, all of which must be there
	}{
		{raw: "dynamodb://stile", want: Config{Table: "stile"}},
		{raw: "dynamodb://My_table.2?region=eu-west-1", want: Config{Table: "My_table.2", Region: "eu-west-1"}},
		{raw: "dynamodb://stile?region=local&endpoint=http://127.0.0.1:4567", want: Config{Table: "stile", Region: "local", Endpoint: "http://127.0.0.1:4567"}},
		{raw: "dynamodb://stile?endpoint=http://[::1]:4567", want: Config{Table: "stile", Endpoint: "http://[::1]:4567"}},
		{raw: "dynamodb://", errs: []string{"not a table name"}},
		{raw: "dynamodb://ab", errs: []string{"not a table name"}},
		{raw: "redis://stile", errs: []string{"scheme"}},
		{raw: "dynamodb://key:s3cret@stile", errs: []string{"credentials come from the environment"}},
		{raw: "dynamodb://stile/path", errs: []string{"without user, path"}},
		{raw: "dynamodb://stile?regoin=x&table=y", errs: []string{`"regoin"`, `"table"`}},
		{raw: "dynamodb://stile?region=", errs: []string{"exactly one value"}},
		{raw: "dynamodb://stile?region=a&region=b", errs: []string{"exactly one value"}},
		{raw: "dynamodb://stile?region=EU", errs: []string{"not a region"}},
		{raw: "dynamodb://stile?endpoint=127.0.0.1:4567", errs: []string{"endpoint"}},
		{raw: "dynamodb://stile?endpoint=http://u:s3cret@h", errs: []string{"without user"}},
		{raw: "dynamodb://stile?endpoint=http://h%3Fs3cret%25zz", errs: []string{"endpoint"}},
	} {
		u, err := url.Parse(test.raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromURL(u, func(string) string { return "" })
		if (err != nil) != (len(test.errs) > 0) {
			t.Errorf("%s: error %v, want %q", test.raw, err, test.errs)
		}
		for _, part := range test.errs {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", test.raw, err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows a secret: %v", test.raw, err)
		}
		if err == nil && (got.Table != test.want.Table || got.Region != test.want.Region || got.Endpoint != test.want.Endpoint) {
			t.Errorf("%s: got %+v, want %+v", test.raw, got, test.want)
		}
	}
}

// TestCABundle asserts that a bundle of roots from the environment and this
// package's own HTTP client go together; the SDK refuses that by default.
func TestCABundle(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", writeBundle(t))
	s, err := Open(t.Context(), Config{Table: table, Endpoint: "http://127.0.0.1:1", ConnectTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, ok := s.client.Options().HTTPClient.(watchedClient)
	if !ok {
		t.Fatalf("HTTP client %T", s.client.Options().HTTPClient)
	}
	tr := w.HTTPClient.(transport).GetTransport()
	if tr.TLSClientConfig == nil || tr.TLSClientConfig.RootCAs == nil {
		t.Error("the bundle was not used")
	}
}

func TestNoRegion(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_PROFILE", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	_, err := Open(t.Context(), Config{Table: table, ConnectTimeout: -1})
	if err == nil || !strings.Contains(err.Error(), "no region") {
		t.Errorf("got %v, want the missing region named", err)
	}
}

type transport interface{ GetTransport() *http.Transport }

// writeBundle writes a certificate as AWS_CA_BUNDLE wants it.
func writeBundle(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
