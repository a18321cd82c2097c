package terraformtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

const root = "../.."

// heavy keeps one terraform with its provider (0.8 GB) running at a time.
var heavy sync.Mutex

// needAWS skips unless terraform and a mirror with the AWS provider are here: the
// registry's download of 0.7 GB is not a test's to start.
func needAWS(t *testing.T) (mirror string) {
	t.Helper()
	_, err := exec.LookPath("terraform")
	mirror = os.Getenv("STILE_TF_MIRROR")
	found, _ := filepath.Glob(filepath.Join(mirror, "registry.terraform.io", "hashicorp", "aws", "*"))
	require.Server(t, "terraform", err == nil && mirror != "" && len(found) > 0,
		"install terraform, and set STILE_TF_MIRROR to a folder of providers (terraform providers mirror FOLDER) that has hashicorp/aws")
	return mirror
}

// run runs a program and returns its output and exit status. What it needs longer
// than the test has is killed.
func run(t *testing.T, dir string, env []string, name string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		t.Fatalf("%s: %v", name, err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// moto starts the server on a free port of this machine and returns its URL.
func moto(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(python, "-c", "import moto.server").Run()
	}
	require.Server(t, "moto", err == nil, "pip install 'moto[server]'")

	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	log, err := os.Create(filepath.Join(t.TempDir(), "moto.log"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-m", "moto.server", "-H", "127.0.0.1", "-p", fmt.Sprint(port))
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		log.Close()
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if res, err := http.Get(url + "/moto-api/"); err == nil {
			res.Body.Close()
			return url
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("moto did not start:\n%s", text)
	return ""
}

// workspace copies the modules to where terraform may write beside them.
func workspace(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "terraform")
	err := filepath.WalkDir("..", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			if d.Name() == ".terraform" {
				return filepath.SkipDir
			}
			return os.MkdirAll(to, 0o755)
		}
		if strings.HasPrefix(d.Name(), ".terraform") || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
