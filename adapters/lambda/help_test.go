package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
)

const basePolicy = `version: 1
site: lambdatest
contact: mailto:ops@example.org
client: %s
buckets:
  - {name: hour, key: address, algorithm: fixed-window, limit: %d, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: 1000, window: 24h}
exempt: {crawlers: {search: ordinary, preview: ordinary}}
`

func policyOf(client string, limit int, more string) string {
	return fmt.Sprintf(basePolicy, client, limit) + more
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// build starts a function in an environment of its own.
func build(tb testing.TB, env map[string]string) (*Function, *logBuffer) {
	tb.Helper()
	log := &logBuffer{}
	f := New(context.Background(), Config{
		Openers: []open.Opener{openmemory.Opener}, Output: log,
		Getenv: func(name string) string { return env[name] },
		Now:    func() time.Time { return noon },
	})
	tb.Cleanup(f.Close)
	return f, log
}

// limiterFor is an authorizer with a limit of 3.
func limiterFor(tb testing.TB, more string) *Function {
	f, _ := build(tb, map[string]string{"STILE_POLICY": policyOf("{from: remote}", 3, more)})
	return f
}

// invoke sends a fixture and decodes the JSON answer into v.
func invoke(tb testing.TB, f *Function, payload []byte, v any) error {
	tb.Helper()
	r, err := f.Invoke(context.Background(), payload)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		tb.Fatalf("%v in %.300s", err, text)
	}
	return nil
}
