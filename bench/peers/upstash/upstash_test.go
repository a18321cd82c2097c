// Package upstash counts what @upstash/ratelimit sends for one decision, at a real
// Redis behind our own REST front. It has tests only.
package upstash

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stilehq/stile/internal/require"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
)

// flag is what the service alone understands in a script's first line. Redis itself
// refuses it, so it is taken out on the way, and the digests are translated.
const flag = "#!lua flags=allow-key-locking"

type translator struct {
	next http.Handler
	mu   sync.Mutex
	sha  map[string]string // of the script as sent -> of the script as run
}

func (t *translator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	var many [][]any
	var single []any
	if json.Unmarshal(body, &many) == nil {
		for i := range many {
			t.command(many[i])
		}
		body, err = json.Marshal(many)
	} else if json.Unmarshal(body, &single) == nil {
		t.command(single)
		body, err = json.Marshal(single)
	}
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	t.next.ServeHTTP(w, r)
}

func digest(script string) string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}

func (t *translator) command(words []any) {
	if len(words) < 2 {
		return
	}
	name, _ := words[0].(string)
	text, _ := words[1].(string)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch strings.ToLower(name) {
	case "eval":
		if i := strings.Index(text, flag); i >= 0 {
			stripped := text[i+len(flag):]
			t.sha[digest(text)] = digest(stripped)
			words[1] = stripped
		}
	case "evalsha":
		if known, ok := t.sha[text]; ok {
			words[1] = known
		}
	}
}

// TestCommands: a steady decision of an hour and a day costs six commands, those
// inside the scripts among them. The service bills them all.
func TestCommands(t *testing.T) {
	modules := os.Getenv("UPSTASH_MODULES")
	_, err := exec.LookPath("node")
	require.Server(t, "upstash-ratelimit", err == nil && modules != "", "npm install @upstash/ratelimit @upstash/redis somewhere, and name its node_modules in UPSTASH_MODULES")
	server := redistest.Start(t)
	front := upstashtest.Start(t, server.Client())
	translate := httptest.NewServer(&translator{next: front, sha: map[string]string{}})
	defer translate.Close()
	const clients = 50
	run := func() map[string]int64 {
		server.ResetCalls()
		cmd := exec.Command("node", "count.mjs", "0", strconv.Itoa(clients))
		cmd.Env = append(os.Environ(), "UPSTASH_REDIS_REST_URL="+translate.URL, "UPSTASH_REDIS_REST_TOKEN="+front.Token)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(clients) {
			t.Fatalf("%v: %s", err, out)
		}
		return server.Calls()
	}
	first, steady := run(), run()
	sum := func(calls map[string]int64) (n int64) {
		for name, c := range calls {
			if name != "info" && !strings.HasPrefix(name, "config") {
				n += c
			}
		}
		return n
	}
	t.Logf("first: %.2f commands a decision, %v", float64(sum(first))/clients, first)
	t.Logf("steady: %.2f commands a decision, %v", float64(sum(steady))/clients, steady)
	// 6 each: EVALSHA twice, GET twice, INCRBY twice; a script that is not yet
	// known is asked for once more.
	if n := sum(steady); n < 6*clients || n > 6*clients+4 {
		t.Errorf("%d commands of %d steady decisions, want 6 each", n, clients)
	}
	if n := sum(first); n < 8*clients || n > 8*clients+4 {
		t.Errorf("%d commands of %d first decisions, want 8 each", n, clients)
	}
}
