package lambda

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/functiontest"
	"github.com/stilehq/stile/internal/require"
)

// moto starts an emulation of AWS and returns its URL.
func moto(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import moto.server").Run()
	}
	require.Server(t, "moto", err == nil, "pip install 'moto[server]'")
	addr := functiontest.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	p := functiontest.Start(t, t.TempDir(), nil, python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if res, err := http.Get("http://" + addr + "/moto-api/"); err == nil {
			res.Body.Close()
			return "http://" + addr
		}
	}
	t.Fatalf("moto did not start:\n%s", p.Output)
	return ""
}

// TestTheProgramReadsItsSecrets: the real bootstrap takes a cookie's secret from
// Parameter Store, by an emulation of AWS that others wrote.
func TestTheProgramReadsItsSecrets(t *testing.T) {
	t.Parallel()
	aws := moto(t)
	req, err := http.NewRequest("POST", aws+"/", strings.NewReader(fmt.Sprintf(`{"Name":"/stile/cookie","Type":"SecureString","Value":%q}`, strings.Repeat("0123456789abcdef", 4))))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/ssm/aws4_request, SignedHeaders=host, Signature=0")
	req.Header.Set("X-Amz-Target", "AmazonSSM.PutParameter")
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("PutParameter: %s %s", res.Status, text)
	}
	origin := httptest.NewServer(functiontest.Origin())
	defer origin.Close()
	site, p := startFront(t, false, time.Minute, "STILE_ORIGIN="+origin.URL, "STILE_COOKIE_SECRETS=ssm:/stile/cookie",
		"STILE_POLICY="+policyOf("{from: remote}", 10, "identify: {cookie: {secrets: env:STILE_COOKIE_SECRETS}}\n"),
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_SESSION_TOKEN=test", "AWS_ENDPOINT_URL_SSM="+aws, "STILE_SECRETS_DEADLINE=60s")
	page, err := http.Get(site + "/page")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, page.Body)
	page.Body.Close()
	if !strings.Contains(strings.Join(page.Header["Set-Cookie"], "\n"), "__Host-stile=") || bytes.Contains([]byte(p.Output.String()), []byte("0123456789abcdef")) {
		t.Errorf("%s, cookies %q\n%s", page.Status, page.Header["Set-Cookie"], p.Output)
	}
}
