package main

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	osexec "os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestHitOutputTellsOnceAMinute: a log that cannot be written is told, not
// shouted.
func TestHitOutputTellsOnceAMinute(t *testing.T) {
	t.Parallel()
	var told strings.Builder
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	h := &hitOutput{w: broken{}, logger: slog.New(slog.NewTextHandler(&told, nil)), now: func() time.Time { return now }}
	for range 50 {
		if n, err := h.Write([]byte("line\n")); n != 5 || err != nil {
			t.Fatal(n, err)
		}
	}
	now = now.Add(time.Minute)
	_, _ = h.Write([]byte("line\n"))
	if got := strings.Count(told.String(), "lines_lost"); got != 2 || !strings.Contains(told.String(), "lines_lost=50") {
		t.Errorf("told %d times:\n%s", got, &told)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestServeOutlivesItsReader: the site stays up when whoever reads the hit log
// goes away.
func TestServeOutlivesItsReader(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(os.Args[0], "serve", "--listen", "127.0.0.1:0")
	cmd.Env = []string{"STILE_TEST_MAIN=1", "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = w
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	_ = w.Close()
	_ = r.Close() // the reader is gone
	text, buf := "", make([]byte, 4096)
	at := regexp.MustCompile(`demo site at (http://[0-9.:]+)`)
	for !at.MatchString(text) {
		n, err := errs.Read(buf)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		text += string(buf[:n])
	}
	url := at.FindStringSubmatch(text)[1]
	for i := range 5 {
		resp, err := http.Get(url + "/articles/1")
		if err != nil {
			t.Fatalf("page %d: %v", i, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("page %d: %d", i, resp.StatusCode)
		}
	}
}
