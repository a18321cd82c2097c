package upstash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/redis/bitfield"
)

// What a call may report; test with errors.Is.
var (
	ErrAuth      = errors.New("upstash: the token is wrong, or not for this database")
	ErrReadOnly  = errors.New("upstash: the token is read-only")
	ErrQuota     = errors.New("upstash: the plan's number of commands or its storage is used up")
	ErrThrottled = errors.New("upstash: too many requests")
	ErrEndpoint  = errors.New("upstash: no REST endpoint at this URL")

	// ErrUnknown marks an error after which the server may or may not have
	// applied the row. It exists for people and logs; code asks whether an error
	// is core.ErrNotApplied.
	ErrUnknown = errors.New("upstash: outcome unknown")
)

// maxReply bounds the bytes read of one answer: 256 rows of 300 integers fit.
const maxReply = 2 << 20

// A client speaks the REST protocol of one database.
type client struct {
	http  *http.Client
	url   string
	token string

	trips atomic.Int64
}

func newClient(c Config) *client {
	dialer := &net.Dialer{Timeout: c.ConnectTimeout, KeepAlive: 30 * time.Second}
	return &client{
		url: c.URL, token: c.Token,
		http: &http.Client{
			Transport: &http.Transport{
				Proxy:               http.ProxyFromEnvironment,
				DialContext:         dialer.DialContext,
				TLSClientConfig:     c.TLS,
				TLSHandshakeTimeout: c.ConnectTimeout,
				ForceAttemptHTTP2:   true,
				MaxConnsPerHost:     c.Conns,
				MaxIdleConnsPerHost: c.Conns,
				IdleConnTimeout:     90 * time.Second,
				DisableCompression:  true, // an answer is tens of bytes
			},
			// A redirected POST would be sent twice; an endpoint never redirects.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// A reply is the answer to one command.
type reply struct {
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// do sends commands in one request and returns one reply for each. An error wraps
// core.ErrNotApplied or ErrUnknown and stands for all commands.
//
// The request is sent once. net/http sends a POST again by itself only if not a
// byte of it was written, or if an HTTP/2 server says that it has not looked at
// it; it never does so after a lost reply, as long as there is no Idempotency-Key.
func (c *client) do(ctx context.Context, commands [][]string) ([]reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, notApplied(err)
	}
	var (
		body []byte
		err  error
		url  = c.url
	)
	if len(commands) == 1 {
		body, err = json.Marshal(commands[0])
	} else {
		url += "/pipeline"
		body, err = json.Marshal(commands)
	}
	if err != nil {
		return nil, notApplied(err)
	}

	// A connection must have been got before anything can be written to it.
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, notApplied(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if connected.Load() {
		c.trips.Add(1)
	}
	if err != nil {
		if !connected.Load() {
			return nil, notApplied(err)
		}
		return nil, unknown(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxReply+1))
	if err == nil && len(text) > maxReply {
		err = errors.New("the answer is too long")
	}
	if res.StatusCode != http.StatusOK {
		return nil, status(res.StatusCode, text, len(commands) == 1)
	}
	if err != nil {
		return nil, unknown(err)
	}
	replies, err := parse(text, len(commands))
	if err != nil {
		return nil, unknown(err)
	}
	return replies, nil
}

// parse reads the body of a 200: one object, or for a pipeline an array.
func parse(text []byte, n int) ([]reply, error) {
	replies := make([]reply, 1)
	var err error
	if n == 1 {
		err = json.Unmarshal(text, &replies[0])
	} else {
		err = json.Unmarshal(text, &replies)
	}
	if err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	if len(replies) != n {
		return nil, fmt.Errorf("%d answers to %d commands", len(replies), n)
	}
	return replies, nil
}

// status turns an answer other than 200 into an error. A status that only
// refuses proves that nothing ran; 400 covers "command failed", so that its text
// decides, and only for a single command; 5xx may come from a proxy whose
// connection to the database broke.
func status(code int, text []byte, single bool) error {
	var r reply
	_ = json.Unmarshal(text, &r) // without a readable reason the status must do
	switch {
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return notApplied(fmt.Errorf("%w (HTTP %d)", ErrAuth, code))
	case code == http.StatusTooManyRequests:
		return notApplied(ErrThrottled)
	case code == http.StatusNotFound, code == http.StatusMethodNotAllowed, code >= 300 && code < 400:
		return notApplied(fmt.Errorf("%w (HTTP %d)", ErrEndpoint, code))
	case code == http.StatusRequestEntityTooLarge:
		return notApplied(fmt.Errorf("the request is too large (HTTP %d)", code))
	case code == http.StatusBadRequest && r.Error != "" && single:
		return reason(r.Error)
	case r.Error != "":
		return unknown(fmt.Errorf("HTTP %d: %s", code, clip(r.Error)))
	}
	return unknown(fmt.Errorf("HTTP %d", code))
}

// reason turns the error of one command into the store's.
func reason(text string) error {
	var kind error
	switch {
	case has(text, "ERR max requests limit", "ERR max daily request limit", "ERR DB capacity quota", "ERR max request size"):
		kind = ErrQuota
	case has(text, "WRONGPASS", "NOAUTH"):
		kind = ErrAuth
	case has(text, "NOPERM", "READONLY"):
		kind = ErrReadOnly
	case bitfield.Refused(text):
		return notApplied(errors.New(clip(text)))
	default:
		return unknown(errors.New(clip(text)))
	}
	return notApplied(fmt.Errorf("%w: %s", kind, clip(text)))
}

func has(text string, prefixes ...string) bool {
	for _, p := range prefixes {
		if len(text) >= len(p) && text[:len(p)] == p {
			return true
		}
	}
	return false
}

// clip bounds a foreign text that goes into a log.
func clip(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

func notApplied(err error) error { return fmt.Errorf("upstash: %w: %w", core.ErrNotApplied, err) }

func unknown(err error) error { return fmt.Errorf("%w: %w", ErrUnknown, err) }
