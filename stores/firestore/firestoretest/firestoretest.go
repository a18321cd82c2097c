// Package firestoretest runs Google's Firestore emulator for tests, on a free
// port of 127.0.0.1. The emulator keeps everything in memory, does not delete
// expired documents and knows no contention limits.
package firestoretest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehq/stile/internal/require"
)

// JarVariable names the environment variable that says where the emulator's jar
// is, for machines on which Find does not find it.
const JarVariable = "STILE_FIRESTORE_EMULATOR_JAR"

// A Server is one running emulator.
type Server struct {
	Addr string // host:port; gRPC and REST share it
	cmd  *exec.Cmd
	jar  string
	done chan struct{}
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
	s := &Server{Addr: FreeAddr(tb), jar: jar}
	s.Run(tb)
	tb.Cleanup(s.Kill)
	return s
}

// FreeAddr returns a host:port of 127.0.0.1 that was free just now.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Run starts the emulator on its address and waits until it answers. Start has
// done so already: call it after Kill, to bring the server back empty.
func (s *Server) Run(tb testing.TB) {
	tb.Helper()
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		tb.Fatal(err)
	}
	// The jar has no main class of its own, and messages follow the locale.
	s.cmd = exec.Command("java", "-Xmx768m", "-Duser.language=en", "-cp", s.jar,
		"com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--host=127.0.0.1", "--port="+port)
	var output bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &output, &output
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	s.done = done
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(done) }(s.cmd)
	if err := s.await(time.Minute); err != nil {
		s.Kill()
		tb.Fatalf("%v\n%s", err, output.String()) // after Kill nobody writes to it
	}
}

func (s *Server) await(limit time.Duration) error {
	client := &http.Client{Timeout: time.Second}
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		resp, err := client.Get("http://" + s.Addr + "/")
		if err == nil {
			resp.Body.Close()
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("firestoretest: the emulator ended at once: %s", s.cmd.ProcessState)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("firestoretest: no answer from %s within %s", s.Addr, limit)
}

// Kill ends the emulator at once and waits for its end. A second call does
// nothing.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Signal sends sig to the emulator, for example SIGSTOP and SIGCONT.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }
