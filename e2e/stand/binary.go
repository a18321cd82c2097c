package stand

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehq/stile/hitlog"
)

// A Binary is "stile serve" itself, as an operator starts it, with its hit log
// on standard output.
type Binary struct {
	*Process
	URL string // http://host:port

	log *lines
}

// Serve runs the command by the text of a policy file, in front of an origin,
// until the test ends. More arguments go to "stile serve".
func Serve(t testing.TB, text, origin string, args ...string) *Binary {
	t.Helper()
	return Launch(t, Build(t), text, origin, nil, args...)
}

// Build compiles the command into a directory of the test's and returns its
// path.
func Build(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "stile")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/stilehq/stile/cmd/stile").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// Launch is Serve with a command that is built already, for tests that start it
// often. The hit log goes to log; nil keeps it for Log.
func Launch(t testing.TB, bin, text, origin string, log io.Writer, args ...string) *Binary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stile.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := FreeAddr(t)
	b := &Binary{URL: "http://" + addr, log: &lines{}}
	cmd := exec.Command(bin, append([]string{"serve", "--listen", addr, "--origin", origin, "--policy", file}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no STILE_ variable of the caller's
	if cmd.Stdout = log; log == nil {
		cmd.Stdout = b.log
	}
	b.Process = Run(t, cmd)
	b.WaitListen(addr, 20*time.Second)
	return b
}

// Log returns the lines of the hit log so far, parsed.
func (b *Binary) Log() []hitlog.Entry {
	b.t.Helper()
	return ParseLog(b.t, b.log.bytes())
}
