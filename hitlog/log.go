package hitlog

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/stilehq/stile/core"
)

// Config says where and how lines are written.
type Config struct {
	// Handler writes the lines; required. See [NewHandler].
	Handler slog.Handler
	Site    string // the policy's site
	Store   string // the store's name, as in core.Features
	IP      IPMode
	// Secret keys the digests of HMACIP, which needs at least 16 bytes. The same
	// secret keeps a client's digest the same over restarts and instances.
	Secret []byte
	// SampleAfter is how many refusals of one key are written each minute before
	// only every SampleEvery-th is; 0 = 20, negative = all are written.
	SampleAfter int
	SampleEvery int // 0 = 100
	// ErrorEvery is the least time between two store-error lines; 0 = 10 s.
	ErrorEvery time.Duration
}

// A Log writes the hit log. It is safe for concurrent use. A write that fails is
// dropped: a full disk must not stop the site.
type Log struct {
	handler slog.Handler
	site    string
	store   string
	mode    IPMode
	secret  []byte

	mu         sync.Mutex
	sampler    *sampler // nil = every refusal is written
	errorEvery time.Duration
	errorAt    time.Time
	errorsLeft int64
}

// New returns a Log, or an error for a Config without a handler or with a
// secret that is too short for its mode.
func New(c Config) (*Log, error) {
	if c.Handler == nil {
		return nil, errors.New("hitlog: no handler")
	}
	if c.IP > HMACIP {
		return nil, errors.New("hitlog: unknown ip mode")
	}
	if c.IP == HMACIP && len(c.Secret) < 16 {
		return nil, errors.New("hitlog: ip: hmac needs a secret of at least 16 bytes")
	}
	if c.ErrorEvery == 0 {
		c.ErrorEvery = 10 * time.Second
	}
	l := &Log{handler: c.Handler, site: c.Site, store: c.Store, mode: c.IP, secret: c.Secret, errorEvery: c.ErrorEvery}
	if c.SampleAfter >= 0 {
		if c.SampleAfter == 0 {
			c.SampleAfter = 20
		}
		if c.SampleEvery <= 0 {
			c.SampleEvery = 100
		}
		l.sampler = newSampler(c.SampleAfter, c.SampleEvery)
	}
	return l, nil
}

// A Record is what an adapter knows once a request has its answer.
type Record struct {
	Request  *core.Request
	Decision *core.Decision
	Status   int    // what the client got; 0 = unknown
	Ref      string // of a refusal or an outage; else empty
	Trace    string
}

// Write writes what the decision deserves: a hit line for a counted navigation,
// a limited or would-limit line for a refusal, besides a store-error line if the
// store failed, and nothing for all else.
func (l *Log) Write(ctx context.Context, r Record) {
	d := r.Decision
	var event Event
	switch {
	case d.Outcome == core.Refuse && d.Observe:
		event = WouldLimit
	case d.Outcome == core.Refuse:
		event = Limited
	case d.Outcome == core.Admit:
		event = Hit
	case d.Err == nil:
		return
	}
	e := l.entry(&r)
	if d.Err != nil {
		l.storeError(ctx, e, d.Err)
	}
	switch event {
	case "":
	case Hit:
		e.Event = event
		l.emit(ctx, e)
	default:
		e.Event = event
		l.refusal(ctx, e, d.Key)
	}
}

func (l *Log) entry(r *Record) Entry {
	q, d := r.Request, r.Decision
	e := Entry{
		Time: q.Time, Reason: string(d.Reason), Ref: r.Ref, Site: l.site, Host: q.Host, IP: l.ip(&d.Client),
		Method: q.Method, Path: escapePath(q.Path), Status: r.Status, Buckets: buckets(d.States), Store: l.store,
		StoreMS: float64(d.StoreTime.Microseconds()) / 1000, Trace: r.Trace,
	}
	if d.Key.Kind != 0 {
		e.KeyType, e.Key = d.Key.Kind.String(), l.key(d)
	}
	if q.Header != nil {
		e.UserAgent = firstOf(q.Header.Values("User-Agent"))
		e.SecFetchDest = firstOf(q.Header.Values("Sec-Fetch-Dest"))
	}
	e.clean() // before the sampler may keep it: its size is bounded from here on
	return e
}

// refusal passes a refusal through the sampler.
func (l *Log) refusal(ctx context.Context, e Entry, key core.Key) {
	if l.sampler == nil {
		l.emit(ctx, e)
		return
	}
	l.mu.Lock()
	out := l.sampler.take(e, key)
	l.mu.Unlock()
	for i := range out {
		l.emit(ctx, out[i])
	}
}

func (l *Log) storeError(ctx context.Context, e Entry, err error) {
	l.mu.Lock()
	if since := e.Time.Sub(l.errorAt); !l.errorAt.IsZero() && since >= 0 && since < l.errorEvery {
		l.errorsLeft++
		l.mu.Unlock()
		return
	}
	e.LeftOut = l.errorsLeft
	l.errorAt, l.errorsLeft = e.Time, 0
	l.mu.Unlock()
	e.Event, e.Error, e.Buckets = StoreError, cleanText(err.Error(), maxError), nil
	l.emit(ctx, e)
}

// Flush writes the lines that sampling still holds back, so that the numbers
// add up. Call it at shutdown; an instance that is killed loses at most one
// minute's count of repeats.
func (l *Log) Flush(ctx context.Context) {
	if l.sampler == nil {
		return
	}
	l.mu.Lock()
	out := l.sampler.drain()
	l.mu.Unlock()
	for i := range out {
		l.emit(ctx, out[i])
	}
}

// emit writes one cleaned entry as a line. Empty fields are left out.
func (l *Log) emit(ctx context.Context, e Entry) {
	level := e.Event.level()
	if !l.handler.Enabled(ctx, level) {
		return
	}
	r := slog.NewRecord(e.Time.UTC(), level, string(e.Event), 0)
	var space [20]slog.Attr
	attrs := space[:0]
	text := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	text("reason", e.Reason)
	text("ref", e.Ref)
	text("site", e.Site)
	text("host", e.Host)
	text("ip", e.IP)
	text("key_type", e.KeyType)
	text("key", e.Key)
	text("user_agent", e.UserAgent)
	text("method", e.Method)
	text("path", e.Path)
	text("sec_fetch_dest", e.SecFetchDest)
	if e.Status != 0 {
		attrs = append(attrs, slog.Int("status", e.Status))
	}
	if len(e.Buckets) > 0 {
		attrs = append(attrs, slog.Any("buckets", e.Buckets))
	}
	text("store", e.Store)
	if e.StoreMS != 0 {
		attrs = append(attrs, slog.Float64("store_ms", e.StoreMS))
	}
	text("trace", e.Trace)
	if e.LeftOut != 0 {
		attrs = append(attrs, slog.Int64("left_out", e.LeftOut))
	}
	text("error", e.Error)
	r.AddAttrs(attrs...)
	_ = l.handler.Handle(ctx, r)
}

func firstOf(lines []string) string {
	if len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// escapePath puts a decoded path back into the form of access logs. An overlong
// one is cut first: nobody is to make us encode megabytes.
func escapePath(path string) string {
	if len(path) > 2*maxPath {
		path = path[:2*maxPath]
	}
	return (&url.URL{Path: path}).EscapedPath()
}
