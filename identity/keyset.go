package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultKeyInterval is how often a set of keys is fetched anew: a key that
	// its owner withdrew is trusted no longer than that.
	DefaultKeyInterval = time.Hour
	// keyPause is the least time between two fetches, so that tokens with
	// invented key ids cannot make Stile ask for more.
	keyPause = time.Minute
	// keyTimeout bounds one fetch.
	keyTimeout = 10 * time.Second
	// keyWarnAge is how old the held keys may be before each failure is an error
	// in the log, and not a warning.
	keyWarnAge = 24 * time.Hour
)

// KeySetConfig configures a [KeySet] that is fetched. URL is required.
type KeySetConfig struct {
	URL      string            // https; http on this machine only
	Interval time.Duration     // between fetches; 0 = an hour. At least a minute
	Client   http.RoundTripper // nil = a transport of its own
	Logger   *slog.Logger      // nil = none
	Now      func() time.Time  // nil = time.Now; for the times of fetches only
}

// A KeySet holds the public keys of a sign-in service. Looking a key up never
// waits for a fetch: [KeySet.Refresh] exchanges the whole set, and when it fails
// the last good one serves on. It is safe for concurrent use.
type KeySet struct {
	cfg  KeySetConfig
	held atomic.Pointer[heldKeys]
	want atomic.Bool // a token named a key that is not held
	wake chan struct{}

	mu       sync.Mutex // over the fetch
	tried    time.Time
	fetched  time.Time
	failures int
	etag     string
}

type heldKeys struct{ keys []publicKey }

// NewKeySet returns a set that is empty until its first [KeySet.Refresh]. Until
// then every token is nobody's. The error says what is wrong with the URL or the
// interval; nothing is fetched.
func NewKeySet(c KeySetConfig) (*KeySet, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return nil, errors.New("identity: the URL of the keys must be https: whoever changes them on the way signs in as anybody")
	}
	if c.Interval == 0 {
		c.Interval = DefaultKeyInterval
	}
	if c.Interval < keyPause {
		return nil, fmt.Errorf("identity: keys every %v: want %v or more", c.Interval, keyPause)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Client == nil {
		c.Client = &http.Transport{
			Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, TLSHandshakeTimeout: keyTimeout,
			MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second,
		}
	}
	return &KeySet{cfg: c, wake: make(chan struct{}, 1)}, nil
}

// StaticKeySet returns a set of the keys in a JSON Web Key Set. It is never
// fetched. The error wraps [ErrKeySet].
func StaticKeySet(jwks []byte) (*KeySet, error) {
	keys, err := parseKeySet(jwks)
	if err != nil {
		return nil, err
	}
	k := &KeySet{}
	k.held.Store(&heldKeys{keys})
	return k, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// find returns the keys that may verify a token. A token without a key id is
// verified only where there is nothing to choose from.
func (k *KeySet) find(id, alg string) []publicKey {
	held := k.held.Load()
	if held == nil {
		k.ask()
		return nil
	}
	var out []publicKey
	for i := range held.keys {
		if key := &held.keys[i]; key.fits(alg) && (key.id == id || id == "") && len(out) < maxSameID {
			out = append(out, *key)
		}
	}
	if id == "" && len(out) > 1 {
		return nil
	}
	if len(out) == 0 && id != "" {
		k.ask()
	}
	return out
}

// ask has the set fetched at the next occasion.
func (k *KeySet) ask() {
	if k.wake == nil {
		return
	}
	k.want.Store(true)
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Due reports whether Refresh would fetch: the interval has passed, or a token
// named an unknown key and the last attempt is a minute ago. It is cheap.
func (k *KeySet) Due() bool {
	if k.wake == nil || !k.mu.TryLock() {
		return false // static, or being fetched
	}
	defer k.mu.Unlock()
	return k.due()
}

// due is Due with the lock held.
func (k *KeySet) due() bool {
	now := k.cfg.Now()
	if k.tried.IsZero() {
		return true
	}
	since := now.Sub(k.tried)
	if since < 0 || since >= k.cfg.Interval {
		return true // since < 0: the clock was set back
	}
	// A failure is tried again after 1, 2, 4, ... minutes.
	if k.failures > 0 {
		return since >= min(k.cfg.Interval, keyPause<<min(k.failures-1, 6))
	}
	return k.want.Load() && since >= keyPause
}

// Refresh fetches the keys if that is due, and returns nil at once if not, or if
// another call is at it. On an error, which has been logged, the held keys serve
// on. On request-billed platforms call it beside a request's origin call with a
// budget, as nothing runs there after the response; elsewhere [KeySet.Run] does.
func (k *KeySet) Refresh(ctx context.Context) error {
	if k.wake == nil || !k.mu.TryLock() {
		return nil
	}
	defer k.mu.Unlock()
	if !k.due() {
		return nil
	}
	k.want.Store(false)
	err := k.fetch(ctx)
	now := k.cfg.Now()
	k.tried = now
	if err == nil {
		k.failures, k.fetched = 0, now
		return nil
	}
	k.failures++
	level := slog.LevelWarn
	if k.held.Load() == nil || now.Sub(k.fetched) > keyWarnAge {
		level = slog.LevelError
	}
	k.cfg.Logger.Log(ctx, level, "keys of the sign-in service not refreshed, the held ones serve on",
		"url", k.cfg.URL, "error", err, "held", k.Len(), "failures", k.failures)
	return fmt.Errorf("identity: keys: %w", err)
}

// Run refreshes until ctx ends. It is for programs that live on between
// requests; one Run for each set.
func (k *KeySet) Run(ctx context.Context) {
	if k.wake == nil {
		return
	}
	timer := time.NewTicker(keyPause)
	defer timer.Stop()
	for {
		k.Refresh(ctx) // has logged its error
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.wake:
		}
	}
}

// Len returns how many keys are held.
func (k *KeySet) Len() int {
	if h := k.held.Load(); h != nil {
		return len(h.keys)
	}
	return 0
}

// fetch gets the set once. No error quotes the body.
func (k *KeySet) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.cfg.URL, nil)
	if err != nil {
		return errors.New("bad URL")
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	if k.etag != "" && k.held.Load() != nil {
		req.Header.Set("If-None-Match", k.etag)
	}
	client := &http.Client{Transport: k.cfg.Client, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if first := via[0].URL; len(via) > 2 || next.URL.Scheme != first.Scheme || !strings.EqualFold(next.URL.Host, first.Host) {
			return fmt.Errorf("%w: redirected", ErrKeySet)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err // the URL is logged beside it
		}
		return err
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNotModified && req.Header.Get("If-None-Match") != "":
		return nil
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%w: status %d", ErrKeySet, resp.StatusCode)
	case media == "text/html":
		return fmt.Errorf("%w: HTML", ErrKeySet)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxKeySetBytes+1))
	if err != nil {
		return err
	}
	keys, err := parseKeySet(body)
	if err != nil {
		return err
	}
	k.etag = ""
	if tag := resp.Header.Get("Etag"); len(tag) <= 256 {
		k.etag = tag
	}
	k.held.Store(&heldKeys{keys})
	return nil
}
