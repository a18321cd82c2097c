package all_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/stores/open"
)

func env(vars map[string]string) open.Options {
	return open.Options{Getenv: func(n string) string { return vars[n] }}
}

// TestExamplesAreValid validates one URL of each store, without network.
func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	r, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"dynamodb", "firestore", "http", "https", "memory", "redis", "rediss", "upstash", "valkey", "valkeys"}
	if got := r.Schemes(); !slices.Equal(got, want) {
		t.Errorf("schemes %v, want %v", got, want)
	}
	o := env(map[string]string{"UPSTASH_REDIS_REST_TOKEN": "t0ken"})
	for _, example := range r.Examples() {
		if err := open.Validate(example, r, o); err != nil {
			t.Errorf("%s: %v", example, err)
		}
	}
}

// TestSecretsStayHidden gives each store a URL with a mistake and a password.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	r, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range r.Schemes() {
		raw := scheme + "://me:hunter2@host/x/y?frob=hunter2"
		err := open.Validate(raw, r, env(nil))
		if !errors.Is(err, open.ErrURL) {
			t.Errorf("%s: %v, want an error of the URL", scheme, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s shows the password: %v", scheme, err)
		}
	}
}

// TestUnreachableIsUsable opens a Redis where none listens: the store is there,
// and so is the reason.
func TestUnreachableIsUsable(t *testing.T) {
	t.Parallel()
	r, err := all.Registry()
	if err != nil {
		t.Fatal(err)
	}
	s, err := open.Store(t.Context(), "redis://127.0.0.1:1", r, env(nil))
	if s == nil || err == nil || errors.Is(err, open.ErrURL) {
		t.Fatalf("store %v, error %v: want both", s, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
