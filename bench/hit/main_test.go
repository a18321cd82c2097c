package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		from := r.Header.Get("X-Forwarded-For")
		if seen[from] = true; from == "198.18.0.3" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	r, err := load(server.URL, 4, 8, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != 8 || r.Requests < 8 || r.Failed != 0 || r.Refused == 0 || r.Refused > r.Requests/4 || r.P50 <= 0 || r.P50 > r.P99 {
		t.Errorf("%d clients, %+v", len(seen), r)
	}
}

func TestLoadElsewhere(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"http://192.0.2.1/", "http://example.com/", "https://127.0.0.1/", "x"} {
		if r, err := load(target, 1, 1, time.Millisecond); err == nil {
			t.Errorf("%s: %+v", target, r)
		}
	}
	if _, err := load("http://127.0.0.1:1/", 1, 1, time.Millisecond); err == nil {
		t.Error("nobody there, and no error")
	}
}
