// Package upstashtest is our own REST front over a real Redis server. It is not
// Upstash: it follows the wire format of the vendor's REST documentation (bodies,
// status codes, per-item errors, base64 encoding), so that the client can be
// tested against a real server's arithmetic. The service's own latency, quotas
// and clustering are not reproduced.
package upstashtest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// A Front is a running REST front.
type Front struct {
	URL   string // http://127.0.0.1:port
	Addr  string // 127.0.0.1:port
	Token string

	redis    goredis.UniversalClient
	requests atomic.Int64
	answer   atomic.Pointer[canned]
}

type canned struct {
	status int
	body   string
}

// Start runs a front over redis until the test ends.
func Start(tb testing.TB, redis goredis.UniversalClient) *Front {
	f := &Front{Token: "test-token", redis: redis}
	server := httptest.NewServer(f)
	tb.Cleanup(server.Close)
	f.URL, f.Addr = server.URL, server.Listener.Addr().String()
	return f
}

// Requests returns the number of HTTP requests received.
func (f *Front) Requests() int64 { return f.requests.Load() }

// Answer makes the front answer every request with this status and body,
// without touching Redis. Status 0 ends it.
func (f *Front) Answer(status int, body string) {
	if status == 0 {
		f.answer.Store(nil)
		return
	}
	f.answer.Store(&canned{status, body})
}

// ServeHTTP implements the endpoints "/", "/pipeline" and "/multi-exec".
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	w.Header().Set("Content-Type", "application/json")
	if c := f.answer.Load(); c != nil {
		w.WriteHeader(c.status)
		_, _ = io.WriteString(w, c.body)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+f.Token {
		fail(w, http.StatusUnauthorized, "Unauthorized")
		return
	}
	if r.Method != http.MethodPost {
		fail(w, http.StatusMethodNotAllowed, "ERR method not allowed")
		return
	}
	encoded := r.Header.Get("Upstash-Encoding") == "base64"
	switch r.URL.Path {
	case "/":
		var command []any
		if json.NewDecoder(r.Body).Decode(&command) != nil || len(command) == 0 {
			fail(w, http.StatusBadRequest, "ERR failed to parse command")
			return
		}
		v, err := f.redis.Do(r.Context(), command...).Result()
		if err != nil && !errors.Is(err, goredis.Nil) {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		write(w, item(v, nil, encoded))
	case "/pipeline", "/multi-exec":
		var commands [][]any
		if json.NewDecoder(r.Body).Decode(&commands) != nil || len(commands) == 0 {
			fail(w, http.StatusBadRequest, "ERR failed to parse pipeline request")
			return
		}
		pipe := f.redis.Pipeline()
		if r.URL.Path == "/multi-exec" {
			pipe = f.redis.TxPipeline()
		}
		for _, c := range commands {
			pipe.Do(r.Context(), c...)
		}
		cmds, _ := pipe.Exec(r.Context()) // errors are per item
		items := make([]map[string]any, len(cmds))
		for i, c := range cmds {
			v, err := c.(*goredis.Cmd).Result()
			items[i] = item(v, err, encoded)
		}
		write(w, items)
	default:
		fail(w, http.StatusNotFound, "ERR not found")
	}
}

func item(v any, err error, encoded bool) map[string]any {
	if err != nil && !errors.Is(err, goredis.Nil) {
		return map[string]any{"error": err.Error()}
	}
	if encoded {
		v = encode(v)
	}
	return map[string]any{"result": v}
}

// encode writes every string but "OK" in base64, as the vendor's option does.
func encode(v any) any {
	switch v := v.(type) {
	case string:
		if v != "OK" {
			return base64.StdEncoding.EncodeToString([]byte(v))
		}
	case []any:
		for i := range v {
			v[i] = encode(v[i])
		}
	}
	return v
}

func write(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func fail(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	write(w, map[string]string{"error": text})
}
