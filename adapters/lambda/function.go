package lambda

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/adapters/serverless"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/stores/open"
)

// Config says what a function is made of. The zero value of all but Openers
// reads the process's environment and writes to its standard output.
type Config struct {
	Openers []open.Opener       // the stores that the program links; required
	Getenv  func(string) string // nil = os.Getenv
	Environ func() []string     // NAME=value, to find ssm: references; nil = os.Environ, or none where Getenv is set
	Output  io.Writer           // log lines; nil = os.Stdout
	Now     func() time.Time    // nil = time.Now
}

// A Function serves Lambda events. It is safe for concurrent use.
type Function struct {
	site   *serverless.Site
	proxy  http.Handler
	texts  *answer.Writer // the words of a refusal, apart from any page
	logger *slog.Logger
	now    func() time.Time

	forbid bool // a refusal on an HTTP API is a 403, not a word in the context
	stream bool // function URL: the invoke mode is RESPONSE_STREAM

	mostBytes int           // of a buffered answer; 0 = as the event's platform documents
	within    time.Duration // an authorizer's decision
}

// New starts the function from the environment. It never fails: what is wrong
// is logged, and visitors pass unlimited meanwhile; see serverless.Site.
func New(ctx context.Context, c Config) *Function {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
		if c.Environ == nil {
			c.Environ = os.Environ
		}
	}
	if c.Output == nil {
		c.Output = os.Stdout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	f := &Function{now: c.Now, logger: slog.New(hitlog.NewHandler(c.Output, operatorNames))}
	if c.Environ != nil {
		budget, err := bounded(c.Getenv, "STILE_SECRETS_DEADLINE", time.ParseDuration, parameterBudget, 100*time.Millisecond, time.Minute)
		if err != nil {
			f.logger.Error("stile: the default is used", "error", err)
		}
		secrets := &parameters{getenv: c.Getenv, logger: f.logger, client: parameterClient, now: c.Now, budget: budget}
		c.Getenv = secrets.resolved(ctx, c.Environ())
	}
	f.site = serverless.Open(ctx, serverless.Config{
		Getenv: c.Getenv, Openers: c.Openers, Logger: f.logger, HitLog: hitlog.NewHandler(c.Output, names),
		Dirs: []string{c.Getenv("LAMBDA_TASK_ROOT")},
	})
	var errs [4]error
	f.forbid, errs[0] = choose(c.Getenv, "STILE_HTTP_API_DENY", "context", "forbid")
	f.stream, errs[1] = choose(c.Getenv, "STILE_RESPONSES", "buffered", "streamed")
	f.mostBytes, errs[2] = bounded(c.Getenv, "STILE_MAX_ANSWER_BYTES", strconv.Atoi, 0, 64<<10, 64<<20)
	f.within, errs[3] = bounded(c.Getenv, "STILE_AUTHORIZER_DEADLINE", time.ParseDuration, decideTime, 50*time.Millisecond, 9*time.Second)
	if err := errors.Join(errs[:]...); err != nil {
		f.logger.Error("stile: the default is used", "error", err)
	}
	f.texts = refusalTexts(f.site)
	f.proxy = f.site.Handler(gate.Config{
		Platform: func(r *http.Request) netip.Addr {
			a, _ := r.Context().Value(clientKey{}).(netip.Addr)
			return a
		},
		Trace: func(r *http.Request) string { return trace(r.Header) },
		Now:   c.Now,
	})
	return f
}

// choose reads a setting of two words, the first being the default.
func choose(getenv func(string) string, name, off, on string) (bool, error) {
	switch getenv(name) {
	case "", off:
		return false, nil
	case on:
		return true, nil
	}
	return false, fmt.Errorf("%s: want %s or %s", name, off, on)
}

// bounded reads a setting that must be from least to most; usual is what holds
// where it is not set or of no use.
func bounded[T cmp.Ordered](getenv func(string) string, name string, parse func(string) (T, error), usual, least, most T) (T, error) {
	text := getenv(name)
	if text == "" {
		return usual, nil
	}
	v, err := parse(text)
	if err != nil || v < least || v > most {
		return usual, fmt.Errorf("%s: want %v to %v", name, least, most)
	}
	return v, nil
}

// The names that CloudWatch and Lambda's own log filter know: with the log
// format JSON, Lambda filters by level and takes the time from timestamp.
var (
	names         = hitlog.Names{Rename: map[string]string{"severity": "level", "time": "timestamp"}, Severity: levelText}
	operatorNames = hitlog.Names{Rename: map[string]string{"severity": "level", "time": "timestamp", "event": "message"}, Severity: levelText}
)

func levelText(l slog.Level) string {
	if l >= slog.LevelWarn && l < slog.LevelError {
		return "WARN"
	}
	return hitlog.SeverityText(l)
}

// Invoke answers one event. The reader is the answer as the Runtime API takes
// it. An error is returned for what is no request at all, and where a policy
// that fails closed must refuse without calling it a limit (REST API: the
// AUTHORIZER_FAILURE response).
func (f *Function) Invoke(ctx context.Context, payload json.RawMessage) (io.Reader, error) {
	e, kind, err := parse(payload)
	if err != nil {
		f.logger.Error("stile: not served", "error", err)
		return nil, err
	}
	switch kind {
	case functionURL:
		if f.stream {
			return f.streamed(ctx, e), nil
		}
		return f.buffered(ctx, e, kind), nil
	case loadBalancer:
		return f.buffered(ctx, e, kind), nil
	}
	return f.authorize(ctx, e, kind)
}

// Close flushes the hit log and coalesced hits and closes the store. The
// platform leaves half a second between SIGTERM and SIGKILL.
func (f *Function) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	if err := f.site.Close(ctx); err != nil {
		f.logger.Error("stile: the last flush failed", "error", err)
	}
}

// reply is a JSON answer, which the runtime passes on as it is.
type reply struct {
	io.Reader
}

// MarshalJSON makes the runtime take the value as a reader.
func (reply) MarshalJSON() ([]byte, error) { return nil, errors.New("lambda: a reader") }

// ContentType is the answer's type for the Runtime API.
func (reply) ContentType() string { return "application/json" }
