package serverless

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/open"
	"github.com/stilehq/stile/wire"
)

// startBudget bounds opening the store, beside the policy's own
// store.connect_timeout: an instance that starts slower than this loses the
// visitors that it was started for.
const startBudget = 5 * time.Second

// Config says what a function is made of. Openers, HitLog and Logger are
// required.
type Config struct {
	Getenv  func(string) string // nil = os.Getenv
	Openers []open.Opener       // the stores that the program links
	HitLog  slog.Handler        // gets the lines of the hit log
	Logger  *slog.Logger        // what an operator must know
	// Dirs are where a relative STILE_POLICY is looked for, after the working
	// directory.
	Dirs []string
}

// A Site is a function's limiter and origin. It always exists, whatever is
// wrong with its configuration: then Problem says what, and nothing is limited,
// since a mistake of the operator's must not turn visitors away.
type Site struct {
	Limiter gate.Limiter
	Answer  *answer.Writer
	Log     *hitlog.Log  // nil = nothing is limited
	Cookies gate.Cookies // nil = none are set
	Policy  *policy.File // nil = nothing is limited
	Origin  *url.URL     // nil = none, or not a URL (then OriginProblem says so)
	Logger  *slog.Logger
	OwnHost bool // the origin is sent its own name as Host

	Problem       error // why nothing is limited; nil = all is well
	OriginProblem error // why there is no way to the origin that was named

	started  time.Time
	ready    chores       // nil = nothing is limited
	reminded atomic.Int64 // Unix nanoseconds of the last reminder
}

// Open starts from the environment. It never fails; see [Site]. It blocks for
// at most a few seconds, and only where the store does not answer.
func Open(ctx context.Context, c Config) *Site {
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	s := &Site{Logger: c.Logger, started: time.Now()}
	s.Origin, s.OriginProblem = origin(c.Getenv("STILE_ORIGIN"))
	if s.OriginProblem != nil {
		c.Logger.Error("stile: no origin: every page is answered with 503", "error", s.OriginProblem)
	}
	// A function's own name is of no use to the site behind it, which mostly is
	// another function or a hosted platform that answers to its own name only.
	switch host := c.Getenv("STILE_ORIGIN_HOST"); host {
	case "", "origin":
		s.OwnHost = true
	case "visitor":
	default:
		s.OwnHost = true
		c.Logger.Error("stile: STILE_ORIGIN_HOST: want origin or visitor; origin is taken", "value", host)
	}
	if err := s.open(ctx, c); err != nil {
		s.passAll(err)
	}
	return s
}

// origin reads STILE_ORIGIN; "" is none.
func origin(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		// An error of url.Parse would quote the text, which may hold a password.
		return nil, errors.New("STILE_ORIGIN: want https://host[:port] and nothing more")
	}
	return u, nil
}

func (s *Site) open(ctx context.Context, c Config) error {
	f, warnings, err := load(c)
	for _, w := range warnings {
		c.Logger.Warn("stile: policy", "warning", w.String())
	}
	if err != nil {
		return err
	}
	if f.Client.From == "remote" {
		// The other end of the connection is the platform's own machine, one and
		// the same for all: what is meant is whom the platform was connected to.
		f.Client.From = "platform"
	}
	stores, err := open.NewRegistry(c.Openers...)
	if err != nil {
		return err
	}
	start, cancel := context.WithTimeout(ctx, startBudget)
	defer cancel()
	ready, err := wire.New(start, wire.Config{
		Policy: f, Stores: stores, StoreURL: c.Getenv("STILE_STORE"), Getenv: c.Getenv,
		HitLog: c.HitLog, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	for _, w := range ready.Warnings {
		c.Logger.Warn("stile: policy", "warning", w.String())
	}
	if ready.StoreProblem != nil {
		c.Logger.Error("stile: the store was not found in order; it goes on being tried", "error", ready.StoreProblem, "until_then", "store.on_error: "+string(f.Store.OnError))
	}
	p := ready.Parts()
	s.ready, s.Limiter, s.Answer, s.Log, s.Policy = ready, ready, p.Answer, p.Log, f
	if p.Cookies != nil { // a nil pointer in an interface would be one that is not nil
		s.Cookies = p.Cookies
	}
	c.Logger.Info("stile: started", "site", f.Site, "mode", f.Mode, "scale", f.Scale, "store", ready.Features().Name)
	return nil
}

// load reads the policy. There is no default: limits that nobody measured must
// not come into force by a forgotten variable.
func load(c Config) (*policy.File, []policy.Warning, error) {
	text := c.Getenv("STILE_POLICY")
	switch {
	case text == "":
		return nil, nil, errors.New("STILE_POLICY is not set: want a path, or the policy itself")
	case strings.Contains(text, "\n"):
		return policy.Parse("STILE_POLICY", []byte(text), c.Getenv)
	}
	data, path, err := read(text, c.Dirs)
	if err != nil {
		return nil, nil, fmt.Errorf("STILE_POLICY: %w", err)
	}
	return policy.Parse(path, data, c.Getenv)
}

func read(path string, dirs []string) ([]byte, string, error) {
	in, err := os.Open(path)
	for _, dir := range dirs {
		if !errors.Is(err, fs.ErrNotExist) || filepath.IsAbs(path) {
			break
		}
		if other, e := os.Open(filepath.Join(dir, path)); e == nil {
			in, path, err = other, filepath.Join(dir, path), nil
		}
	}
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, policy.MaxSize+1))
	return data, path, err
}

// Disable lets everything through from now on, because of err, a mistake that
// the adapter found in its own part of the configuration. Call it before
// Handler.
func (s *Site) Disable(err error) {
	if s.Problem == nil {
		s.passAll(err)
	}
}

// passAll is the state of a function that cannot limit.
func (s *Site) passAll(err error) {
	s.Problem = err
	s.Policy, s.Log, s.Cookies = nil, nil, nil
	s.Limiter = passing{}
	s.Answer, _ = answer.New(answer.Config{}) // the built-in pages compile
	s.Remind(time.Now())
}

// Remind says once a minute that nothing is limited, if that is so. Adapters
// that do not go through Handler call it with each request.
func (s *Site) Remind(now time.Time) {
	if s.Problem == nil {
		return
	}
	last := s.reminded.Load()
	if now.UnixNano()-last > int64(time.Minute) && s.reminded.CompareAndSwap(last, now.UnixNano()) {
		s.Logger.Error("stile: NOTHING IS LIMITED: the configuration cannot be used", "error", s.Problem)
	}
}

// chores are what a limiter has to do besides deciding; wire.Ready has them.
type chores interface {
	Due() bool
	Refresh(ctx context.Context, budget time.Duration) error
	Close(ctx context.Context) error
}

var _ chores = (*wire.Ready)(nil)

// passing lets everything through.
type passing struct{}

var passPolicy = core.Policy{Client: core.ClientSource{From: core.FromPlatform}}

func (passing) Decide(context.Context, *core.Request) core.Decision {
	return core.Decision{Binding: -1}
}
func (passing) Answered(context.Context, *core.Request, *core.Decision, core.Answer) bool {
	return false
}
func (passing) Settle(context.Context) error { return nil }
func (passing) Policy() *core.Policy         { return &passPolicy }

var (
	_ gate.Limiter = passing{}
	_ gate.Limiter = (*wire.Ready)(nil)
)

// everyone may ask a function that limits nothing: an endpoint that refuses to
// answer would lock the site.
var everyone = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
