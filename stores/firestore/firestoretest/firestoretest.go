// Package firestoretest runs Google's Firestore emulator for tests, on a free
// port of 127.0.0.1. The emulator keeps everything in memory, does not delete
// expired documents and knows no contention limits.
package firestoretest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/process"
	"github.com/stilehq/stile/internal/require"
)

// JarVariable names the environment variable that says where the emulator's jar
// is, for machines on which Find does not find it.
const JarVariable = "STILE_FIRESTORE_EMULATOR_JAR"

// A Server is one running emulator.
type Server struct {
	Addr    string // host:port; gRPC and REST share it
	jar     string
	running *process.Process
}

// Find returns the emulator's jar: the one that STILE_FIRESTORE_EMULATOR_JAR
// names, else the component of the Google Cloud SDK that gcloud belongs to, else
// that of the usual installations. It reports false when there is none, or no
// Java to run it.
func Find() (jar string, found bool) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", false
	}
	if jar = os.Getenv(JarVariable); jar != "" {
		_, err := os.Stat(jar)
		return jar, err == nil
	}
	roots := []string{os.Getenv("CLOUDSDK_ROOT_DIR"), "/usr/lib/google-cloud-sdk", "/usr/share/google-cloud-sdk"}
	if gcloud, err := exec.LookPath("gcloud"); err == nil {
		if real, err := filepath.EvalSymlinks(gcloud); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(real)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, "google-cloud-sdk"))
	}
	for _, root := range roots {
		jar = filepath.Join(root, "platform", "cloud-firestore-emulator", "cloud-firestore-emulator.jar")
		if _, err := os.Stat(jar); err == nil && root != "" {
			return jar, true
		}
	}
	return "", false
}

// Start starts an emulator that ends with the test, or skips the test by the
// rule of package require. Starting takes about a second: share one between
// subtests, each with a site name of its own.
func Start(tb testing.TB) *Server {
	tb.Helper()
	jar, found := Find()
	require.Server(tb, "firestore", found, "install Java and the component cloud-firestore-emulator of the Google Cloud SDK, or set "+JarVariable)
	s := &Server{jar: jar}
	process.Serve(tb, s.run)
	tb.Cleanup(s.Kill)
	return s
}

// FreeAddr returns a host:port of 127.0.0.1 that was free just now.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	return process.FreeAddr(tb)
}

// Run starts the emulator on its address and waits until it answers. Start has
// done so already: call it after Kill, to bring the server back empty.
func (s *Server) Run(tb testing.TB) {
	tb.Helper()
	if err := s.run(s.Addr); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) run(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	// The jar has no main class of its own, and messages follow the locale.
	p, err := process.Launch(exec.Command("java", "-Xmx768m", "-Duser.language=en", "-cp", s.jar,
		"com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=127.0.0.1", "--port="+port))
	if err != nil {
		return err
	}
	if err := p.Await(time.Minute, process.Answers("http://"+addr+"/")); err != nil {
		p.Kill()
		return fmt.Errorf("firestoretest: %w", err)
	}
	if err := warm(addr); err != nil {
		p.Kill()
		return fmt.Errorf("firestoretest: the first write: %w", err)
	}
	s.Addr, s.running = addr, p
	return nil
}

// warm writes one document. The first write after a start loads half of the
// emulator, which on a busy machine takes longer than any test's deadline for a
// hit; it is no part of what tests want to see.
func warm(addr string) error {
	const body = `{"writes":[{"update":{"name":"projects/warm/databases/(default)/documents/warm/up","fields":{"n":{"integerValue":"1"}}}}]}`
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/v1/projects/warm/databases/(default)/documents:commit", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer owner") // the emulator's word for anybody
	client := &http.Client{Timeout: time.Minute}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 500))
		return fmt.Errorf("%s: %s", res.Status, text)
	}
	return nil
}

// Kill ends the emulator at once and waits for its end. A second call does
// nothing.
func (s *Server) Kill() { s.running.Kill() }

// Signal sends sig to the emulator, for example SIGSTOP and SIGCONT.
func (s *Server) Signal(sig os.Signal) error { return s.running.Signal(sig) }
