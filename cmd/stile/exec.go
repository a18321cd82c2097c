package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/stilehq/stile/crawlers"
)

// Exit statuses; scripts rely on them.
const (
	exitFine    = 0
	exitBadNews = 1 // the answer is bad news: an invalid policy, say
	exitMisuse  = 2 // wrong use of the command line
	exitFailed  = 3 // it could not be done
)

// A terminal is what a command may touch of the world around it.
type terminal struct {
	lookup         func(string) (string, bool) // environment
	environ        func() []string             // the same, all of it; nil = misspelt names are not looked for
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time

	// For fetches and look-ups of commands that make any; nil = the machine's own.
	transport http.RoundTripper
	resolver  crawlers.Resolver
}

func (t *terminal) getenv(name string) string {
	v, _ := t.lookup(name)
	return v
}

// A status is an error with an exit status of its own; other errors exit with
// exitFailed. A nil err has been told already.
type status struct {
	code int
	err  error
}

func (s *status) Error() string {
	if s.err == nil {
		return fmt.Sprintf("exit status %d", s.code)
	}
	return s.err.Error()
}

func (s *status) Unwrap() error { return s.err }

func badNews(err error) error { return &status{exitBadNews, err} }
func misuse(err error) error  { return &status{exitMisuse, err} }

// errAnswered ends parsing after --help or --version has been answered.
var errAnswered = errors.New("answered")

// cli is the whole command line. Each field is a subcommand with a file of its
// own.
type cli struct {
	Help    helpFlag    `short:"h" help:"Show this help."`
	Version versionFlag `help:"Show the version."`

	Serve    serveCmd    `cmd:"" help:"Run in front of a site, or of the built-in demo site."`
	Explain  explainCmd  `cmd:"" help:"Say why a request is (not) counted or limited."`
	Policy   policyCmd   `cmd:"" help:"Check or show a policy file."`
	Bench    benchCmd    `cmd:"" help:"Measure what a counter store costs and how fast it is."`
	Cost     costCmd     `cmd:"" help:"Reckon what counting costs in each store, and recommend one."`
	Size     sizeCmd     `cmd:"" help:"Measure visitors in access logs and propose limits."`
	Replay   replayCmd   `cmd:"" help:"Play a policy over access logs: who would have been limited."`
	Report   reportCmd   `cmd:"" help:"Read the hit log: who is limited, and what abusers did about it."`
	Crawlers crawlersCmd `cmd:"" help:"Fetch, list or check the published ranges of crawlers."`
	Edge     edgeCmd     `cmd:"" help:"Write the rule of an edge product that agrees with the policy."`
	Key      keyCmd      `cmd:"" help:"Show what is counted of a key, lift its refusal, or suspend it."`
	Doctor   doctorCmd   `cmd:"" help:"Examine a deployment: the client's address, the store, the tables, the mode."`
}

type helpFlag bool

// IgnoreDefault keeps kong from treating the flag as set.
func (helpFlag) IgnoreDefault() {}

// BeforeReset answers before anything is validated.
func (helpFlag) BeforeReset(c *kong.Context) error {
	if err := c.PrintUsage(false); err != nil {
		return err
	}
	return errAnswered
}

type versionFlag bool

// BeforeReset answers before anything is validated.
func (versionFlag) BeforeReset(c *kong.Context) error {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
	}
	if _, err := fmt.Fprintln(c.Stdout, "stile", version); err != nil {
		return err
	}
	return errAnswered
}

// exec runs one command line and returns its exit status.
func exec(ctx context.Context, args []string, lookup func(string) (string, bool), stdin io.Reader, stdout, stderr io.Writer) int {
	t := &terminal{lookup: lookup, environ: os.Environ, stdin: stdin, stdout: stdout, stderr: stderr, now: time.Now}
	return t.exec(ctx, args)
}

func (t *terminal) exec(ctx context.Context, args []string) int {
	err := t.run(ctx, args)
	var s *status
	switch {
	case err == nil || errors.Is(err, errAnswered):
		return exitFine
	case errors.As(err, &s):
		if s.err != nil {
			t.complain(s.err)
		}
		return s.code
	}
	t.complain(err)
	return exitFailed
}

func (t *terminal) complain(err error) {
	fmt.Fprintln(t.stderr, "stile:", forPeople(strings.TrimRight(err.Error(), "\n")))
}

// forPeople leaves out of an error's text what only a programmer reads: the package
// that it begins in, and a store's name beside the URL that says it already.
func forPeople(text string) string {
	for _, pkg := range []string{"accesslog: ", "costmodel: ", "edge: ", "wire: ", "core: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	if url, ok := strings.CutPrefix(text, "store URL: "); ok {
		if scheme, problem, ok := strings.Cut(url, ":: "); ok && strings.HasPrefix(problem, scheme+": ") {
			return "store URL: " + problem
		}
	}
	return text
}

func (t *terminal) run(ctx context.Context, args []string) error {
	var c cli
	parser, err := kong.New(&c,
		kong.Name("stile"),
		kong.Description("Stile limits how many pages a visitor opens, and lets people over the fence.\n\n"+
			"Begin with \"stile serve\": a demo site on http://127.0.0.1:8080 and three commands to try. "+
			"Every flag can be set by an environment variable, STILE_ and its name in capitals.\n\n"+
			"Exit status: 0 fine, 1 bad news, 2 wrong use, 3 it could not be done."),
		kong.NoDefaultHelp(),
		kong.Writers(t.stdout, t.stderr),
		kong.Exit(func(int) {}), // nothing ends the process but main
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ValueFormatter(withEnv),
		kong.Resolvers(kong.ResolverFunc(t.fromEnv)),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(t),
	)
	if err != nil {
		return err
	}
	k, err := parser.Parse(args)
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		if errors.Is(err, errAnswered) {
			return errAnswered
		}
		return misuse(fmt.Errorf("%w\nTry: %s --help", err, commandOf(wrong.Context)))
	}
	if err != nil {
		return misuse(err)
	}
	if name := repeated(k); name != "" {
		return misuse(fmt.Errorf("--%s: given twice; it takes one value\nTry: %s --help", name, commandOf(k)))
	}
	t.warnMisspelt(parser.Model)
	return k.Run()
}

// commandOf returns the part of the command line that was understood.
func commandOf(c *kong.Context) string {
	name := "stile"
	if c != nil {
		if n := c.Selected(); n != nil {
			return name + " " + n.Path()
		}
	}
	return name
}

// envName is the environment form of a flag, "" if it has none.
func envName(flag string) string {
	if flag == "help" || flag == "version" {
		return ""
	}
	return "STILE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnv is how flags get their environment form. Kong's own way reads the
// process's environment, which tests cannot give it apart from each other.
func (t *terminal) fromEnv(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if name := envName(flag.Name); name != "" {
		if v, ok := t.lookup(name); ok && v != "" {
			return v, nil
		}
	}
	return nil, nil
}

// withEnv adds the environment form to the help of a flag.
func withEnv(v *kong.Value) string {
	if v.Flag == nil || envName(v.Name) == "" {
		return v.Help
	}
	return v.Help + " ($" + envName(v.Name) + ")"
}
