package stand

import (
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
	URL string // http://host:port

	t   testing.TB
	log *lines
}

// Serve runs the command by the text of a policy file, in front of an origin,
// until the test ends. More arguments go to "stile serve".
func Serve(t testing.TB, text, origin string, args ...string) *Binary {
	t.Helper()
	dir := t.TempDir()
	bin, file := filepath.Join(dir, "stile"), filepath.Join(dir, "stile.yaml")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/stilehq/stile/cmd/stile").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := FreeAddr(t)
	b := &Binary{URL: "http://" + addr, t: t, log: &lines{}}
	cmd := exec.Command(bin, append([]string{"serve", "--listen", addr, "--origin", origin, "--policy", file}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")} // no STILE_ variable of the caller's
	cmd.Stdout = b.log
	Run(t, cmd).WaitListen(addr, 20*time.Second)
	return b
}

// Log returns the lines of the hit log so far, parsed.
func (b *Binary) Log() []hitlog.Entry {
	b.t.Helper()
	return ParseLog(b.t, b.log.bytes())
}
