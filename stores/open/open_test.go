package open_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/stores/open/openmemory"
)

func registry(t *testing.T, more ...open.Opener) *open.Registry {
	t.Helper()
	r, err := open.NewRegistry(append([]open.Opener{openmemory.Opener}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// distant is a store whose server is out of reach for now.
type distant struct{ core.Store }

var errReach = errors.New("cannot be reached")

func opener(scheme string, found core.Store) open.Opener {
	return open.Opener{
		Schemes: []string{scheme}, Example: scheme + "://host",
		Validate: func(u *url.URL, _ open.Options) error {
			if u.Host == "" {
				return errors.New("no host")
			}
			return nil
		},
		Open: func(context.Context, *url.URL, open.Options) (core.Store, error) { return found, errReach },
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	r := registry(t)
	for _, good := range []string{"memory:", "memory://", "memory://?max_keys=1000", "memory:?max_keys=5"} {
		s, err := open.Store(t.Context(), good, r, open.Options{MaxKeys: 10})
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		b := core.Batch{Now: time.Unix(1_800_000_000, 0), Rows: []core.Row{{Key: core.Key{Kind: 1, ID: "x"}, Until: 1_800_003_600, Cells: []core.Cell{{Until: 1_800_003_600, Add: 3}}}}}
		if err := s.Apply(t.Context(), &b); err != nil || b.Rows[0].Cells[0].Value != 3 {
			t.Errorf("%s: Apply gave %d, %v", good, b.Rows[0].Cells[0].Value, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

// TestBadURL asserts what is said, and that no part of a URL that may be secret
// is ever among it.
func TestBadURL(t *testing.T) {
	t.Parallel()
	r := registry(t, opener("far", nil))
	for raw, want := range map[string]string{
		"":                               "it is empty; it should look like one of memory:, far://host",
		"hunter2":                        "no scheme",
		"mysql://me:hunter2@host/":       `no store is called "mysql"; this program has far, memory`,
		"far://me:hunter2%zz@host/":      "cannot be read",
		"far://?password=hunter2":        "no host",
		"memory://host?x=hunter2":        `unknown setting "x"`,
		"memory://?max_keys=0":           "1 to 134217728",
		"memory://?max_keys=hunter2":     "1 to 134217728",
		"memory://?max_keys=99999999999": "1 to 134217728",
		"memory:stuff":                   "no host and no path",
		"memory://me:hunter2@":           "no host and no path",
		"memory://?max_keys=%zz":         "query cannot be read",
	} {
		for _, err := range []error{
			open.Validate(raw, r, open.Options{}),
			func() error { _, err := open.Store(t.Context(), raw, r, open.Options{}); return err }(),
		} {
			if err == nil {
				t.Errorf("%q was accepted", raw)
				continue
			}
			if !errors.Is(err, open.ErrURL) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v, want ErrURL with %q and without the password", raw, err, want)
			}
		}
	}
}

func TestUsableBesideError(t *testing.T) {
	t.Parallel()
	s, err := open.Store(t.Context(), "far://me:hunter2@host/db?x=hunter2", registry(t, opener("far", distant{})), open.Options{})
	if s == nil || !errors.Is(err, errReach) || errors.Is(err, open.ErrURL) {
		t.Errorf("store %v, error %v: want a store and the finding", s, err)
	}
	if err != nil && (strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "far://host/db")) {
		t.Errorf("error shows %q", err)
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	if _, err := open.NewRegistry(openmemory.Opener, openmemory.Opener); err == nil || !strings.Contains(err.Error(), "two openers for the scheme memory") {
		t.Errorf("a scheme claimed twice: %v", err)
	}
	if _, err := open.NewRegistry(open.Opener{Schemes: []string{"x"}}); err == nil {
		t.Error("an opener that cannot open was accepted")
	}
}

// TestNew: an opener made of its parts gives a store beside an error on, and no
// store where there is none: a nil pointer in an interface would be one.
func TestNew(t *testing.T) {
	t.Parallel()
	config := func(u *url.URL, o open.Options) (time.Duration, error) {
		if u.Host == "" {
			return 0, errors.New("no host")
		}
		return o.Timeout, nil
	}
	for _, found := range []*distant{nil, {}} {
		var asked time.Duration
		r := registry(t, open.New([]string{"a", "b"}, "a://host", config, func(_ context.Context, timeout time.Duration) (*distant, error) {
			asked = timeout
			return found, errReach
		}))
		s, err := open.Store(t.Context(), "b://host", r, open.Options{Timeout: time.Minute})
		if !errors.Is(err, errReach) || asked != time.Minute || (s == nil) != (found == nil) {
			t.Errorf("opened %v: store %v, error %v, timeout %v", found, s, err, asked)
		}
		asked = 0
		if s, err := open.Store(t.Context(), "a:", r, open.Options{}); s != nil || !errors.Is(err, open.ErrURL) || asked != 0 {
			t.Errorf("a wrong URL: store %v, error %v", s, err)
		}
	}
}
