// Package open opens a store from one URL, by a table of openers. It imports no
// store and no SDK: each program registers the openers that it wants to link.
//
//	registry, err := open.NewRegistry(openmemory.Opener, openredis.Opener)
//	store, err := open.Store(ctx, "redis://127.0.0.1:6379", registry, open.Options{})
package open

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// Options are what a policy says about the store. Openers take what concerns
// them. The zero Options work.
type Options struct {
	// Namer turns rows into record names. Instances that share counts must have
	// the same. A store that keeps no names does without.
	Namer rows.Namer
	// MaxKeys bounds the records of a store in memory; 0 = the store's default.
	// A max_keys in the URL comes first.
	MaxKeys int64
	// ConnectTimeout bounds what opening does on the network; 0 = the store's
	// default. One in the URL comes first.
	ConnectTimeout time.Duration
	// Timeout bounds a call whose context has no earlier deadline, for stores
	// that cannot be left without one; 0 = the store's default.
	Timeout time.Duration
	// Getenv looks up secrets that a URL had better not hold, and the SDK's
	// own variables; nil = an empty environment.
	Getenv func(string) string
}

func (o Options) getenv(name string) string {
	if o.Getenv == nil {
		return ""
	}
	return o.Getenv(name)
}

// An Opener opens one kind of store.
type Opener struct {
	// Schemes are the URL schemes that name the store, without colon.
	Schemes []string
	// Example is a typical URL, for messages and help.
	Example string
	// Validate reports everything that is wrong with a URL, touching no network
	// and showing no secret.
	Validate func(u *url.URL, o Options) error
	// Open returns a store. A store beside an error means that the server was
	// not found in order, but that the store is usable and goes on trying: a
	// program that must start without its store logs the error and carries on.
	// A nil store means that the URL or the credentials are wrong.
	Open func(ctx context.Context, u *url.URL, o Options) (core.Store, error)
}

// New returns the opener of a store of type S that is opened from a configuration
// of type C: the shape of all stores behind a network. Config makes a
// configuration of a URL and the options, touching no network, and reports
// everything that is wrong; open connects, and keeps to the rules of [Opener.Open].
func New[C any, S interface {
	comparable
	core.Store
}](schemes []string, example string, config func(*url.URL, Options) (C, error), open func(context.Context, C) (S, error)) Opener {
	return Opener{
		Schemes: schemes,
		Example: example,
		Validate: func(u *url.URL, o Options) error {
			_, err := config(u, o)
			return err
		},
		Open: func(ctx context.Context, u *url.URL, o Options) (core.Store, error) {
			c, err := config(u, o)
			if err != nil {
				return nil, err
			}
			s, err := open(ctx, c)
			var none S
			if s == none {
				return nil, err // a nil *Store in an interface is not a nil store
			}
			return s, err
		},
	}
}

// ErrURL marks an error of the URL itself, which no waiting will mend.
var ErrURL = errors.New("store URL")

// A Registry is a table of openers. It is immutable and safe for concurrent use.
type Registry struct {
	byScheme map[string]Opener
	examples []string
}

// NewRegistry builds a table. The error names openers that are incomplete and
// schemes that two of them claim.
func NewRegistry(openers ...Opener) (*Registry, error) {
	r := &Registry{byScheme: map[string]Opener{}}
	var errs []error
	for i, o := range openers {
		if len(o.Schemes) == 0 || o.Validate == nil || o.Open == nil {
			errs = append(errs, fmt.Errorf("open: opener %d (%s) is incomplete", i, o.Example))
			continue
		}
		for _, s := range o.Schemes {
			if _, taken := r.byScheme[s]; taken {
				errs = append(errs, fmt.Errorf("open: two openers for the scheme %s", s))
			}
			r.byScheme[s] = o
		}
		r.examples = append(r.examples, o.Example)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return r, nil
}

// Schemes returns the known schemes in order.
func (r *Registry) Schemes() []string { return slices.Sorted(maps.Keys(r.byScheme)) }

// Examples returns one URL for each store, in the order of registration.
func (r *Registry) Examples() []string { return slices.Clone(r.examples) }

// Validate reports what is wrong with a store URL, wrapping [ErrURL]. It touches
// no network, and never shows the URL's user, password or query.
func Validate(rawURL string, r *Registry, o Options) error {
	_, _, err := r.find(rawURL, o)
	return err
}

// Store opens the store that a URL names. Errors of the URL wrap [ErrURL]. A
// store beside an error is usable; see [Opener]. Whoever gets a store closes it.
func Store(ctx context.Context, rawURL string, r *Registry, o Options) (core.Store, error) {
	opener, u, err := r.find(rawURL, o)
	if err != nil {
		return nil, err
	}
	o.Getenv = o.getenv
	s, err := opener.Open(ctx, u, o)
	if s == nil && err == nil {
		return nil, fmt.Errorf("open: %s: returned no store", u.Scheme)
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", Redact(rawURL), err)
	}
	return s, nil
}

func (r *Registry) find(rawURL string, o Options) (Opener, *url.URL, error) {
	bad := func(format string, args ...any) (Opener, *url.URL, error) {
		return Opener{}, nil, fmt.Errorf("%w: "+format, append([]any{ErrURL}, args...)...)
	}
	// An error of url.Parse quotes the whole URL, password and all.
	u, err := url.Parse(rawURL)
	switch {
	case rawURL == "":
		return bad("it is empty; it should look like one of %s", strings.Join(r.examples, ", "))
	case err != nil:
		return bad("it cannot be read; percent-encode the special characters of a password")
	case u.Scheme == "":
		return bad("%s has no scheme; want one like %s", Redact(rawURL), strings.Join(r.examples, ", "))
	}
	opener, ok := r.byScheme[u.Scheme]
	if !ok {
		return bad("no store is called %q; this program has %s", u.Scheme, strings.Join(r.Schemes(), ", "))
	}
	o.Getenv = o.getenv
	if err := opener.Validate(u, o); err != nil {
		return bad("%s: %w", Redact(rawURL), err)
	}
	return opener, u, nil
}

// Redact returns what of a store URL may be shown: scheme, host and path. User,
// password, query and fragment may hold secrets. What cannot be read is hidden
// altogether.
func Redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(unreadable URL)"
	}
	if u.Scheme == "" {
		return "(URL without scheme)" // it may be a token pasted into the wrong place
	}
	u.Opaque, u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = "", nil, "", "", "", false
	return u.String()
}
