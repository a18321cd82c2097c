package functiontest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

// findRIE returns the path of AWS's runtime interface emulator, "" if there is
// none.
func findRIE() string {
	if path, err := exec.LookPath("aws-lambda-rie"); err == nil {
		return path
	}
	for _, dir := range []string{os.Getenv("GOBIN"), filepath.Join(os.Getenv("GOPATH"), "bin"), filepath.Join(os.Getenv("HOME"), "go", "bin")} {
		path := filepath.Join(dir, "aws-lambda-rie")
		if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// A Lambda is a bootstrap under the emulator, which runs one invocation at a
// time and judges the form of answers for the Runtime API, not for API Gateway.
type Lambda struct {
	*Process
	url string
}

// StartLambda starts the emulator with a bootstrap, which begins with the first
// event as in a cold start.
func StartLambda(tb testing.TB, bootstrap string, env ...string) *Lambda {
	tb.Helper()
	rie := findRIE()
	require.Server(tb, "rie", rie != "", "go install github.com/aws/aws-lambda-runtime-interface-emulator/cmd/aws-lambda-rie@latest")
	addr := FreeAddr(tb)
	// AWS's own variables: a timeout in seconds, and no credentials.
	env = append([]string{"AWS_LAMBDA_FUNCTION_TIMEOUT=5", "AWS_LAMBDA_FUNCTION_NAME=stile"}, env...)
	l := &Lambda{
		Process: Start(tb, tb.TempDir(), env, rie, "--log-level", "error", "--runtime-interface-emulator-address", addr,
			"--runtime-api-address", FreeAddr(tb), bootstrap),
		url: "http://" + addr + "/2015-03-31/functions/function/invocations",
	}
	l.Await(tb, "http://"+addr+"/")
	return l
}

// Invoke sends an event and returns the answer and how long it took.
func (l *Lambda) Invoke(event []byte) ([]byte, time.Duration, error) {
	began := time.Now()
	res, err := http.Post(l.url, "application/json", bytes.NewReader(event))
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the emulator answered %s: %.200s", res.Status, out)
	}
	return out, time.Since(began), err
}
