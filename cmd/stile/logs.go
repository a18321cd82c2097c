package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/sizing"
	"github.com/stilehq/stile/sizing/accesslog"
)

// logFlags say which logs are read and how; every command that reads access logs
// has them.
type logFlags struct {
	Tz            string   `name:"tz" placeholder:"ZONE" help:"Where days begin, such as Europe/Berlin; default: UTC."`
	LogTz         string   `name:"log-tz" placeholder:"ZONE" help:"Zone of times that the log writes without one; default: UTC."`
	Format        string   `placeholder:"FORMAT" help:"The site's own line format in nginx's or Apache's notation; default: found line by line."`
	XffHops       int      `name:"xff-hops" placeholder:"N" help:"The client is the N-th address from the right of X-Forwarded-For; default: the log's own client field."`
	TrustedProxy  []string `placeholder:"CIDR" help:"Your proxies: the client is the first address from the right of X-Forwarded-For outside of them."`
	AddressHeader string   `placeholder:"NAME" help:"The client is in this request header, where the log has it, such as CF-Connecting-IP."`
	Own           []string `placeholder:"CIDR" help:"Your own offices and probes, left out of every share; repeatable."`
	DNS           bool     `name:"dns" help:"Prove crawlers by reverse DNS too: asks your resolver about addresses that claim to be one."`
	Pseudonymise  bool     `help:"Replace client addresses by names, for a report that leaves the house."`

	Log []string `arg:"" help:"Logs: files, patterns, - for standard input; plain, .gz or .zst."`
}

// inputs opens nothing yet. The error says which arguments name no log.
func (l *logFlags) inputs(t *terminal) ([]accesslog.Input, error) {
	stdin := 0
	for _, a := range l.Log {
		if a == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return nil, misuse(errors.New("- is given twice: standard input can be read once"))
	}
	return accesslog.Files(t.stdin, l.Log...)
}

// options turns flags into what a measurement is told. The proof is part of it, for
// its notes.
func (l *logFlags) options(ctx context.Context, t *terminal) (sizing.Options, *proof, error) {
	o := sizing.Options{Log: accesslog.Options{Now: t.now(), Client: accesslog.ClientRule{Hops: l.XffHops, Header: l.AddressHeader}}}
	var errs []error
	var err error
	zone := func(flag, name string) *time.Location {
		if name == "" {
			return nil
		}
		z, err := time.LoadLocation(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: no zone is called %q; want a name such as Europe/Berlin", flag, plain(name)))
		}
		return z
	}
	o.Zone, o.Log.Location = zone("tz", l.Tz), zone("log-tz", l.LogTz)
	if l.XffHops < 0 {
		errs = append(errs, errors.New("--xff-hops: want a number of proxies, 1 or more"))
	}
	if l.Format != "" {
		if o.Log.Layout, err = accesslog.ParseLayout(l.Format); err != nil {
			errs = append(errs, fmt.Errorf("--format: %w", err))
		}
	}
	o.Log.Client.Trusted, errs = ranges("trusted-proxy", l.TrustedProxy, errs)
	o.Monitoring, errs = ranges("own", l.Own, errs)
	if len(errs) > 0 {
		return o, nil, misuse(errors.Join(errs...))
	}
	known, err := crawlerProof(ctx, crawlers.Config{Logger: slog.New(slog.DiscardHandler), Now: t.now}, l.DNS)
	if err != nil {
		return o, nil, err
	}
	o.Crawlers = known
	return o, known, nil
}

// ranges reads CIDRs and bare addresses.
func ranges(flag string, list []string, errs []error) ([]netip.Prefix, []error) {
	var out []netip.Prefix
	for _, s := range list {
		s = strings.TrimSpace(s)
		if a, err := netip.ParseAddr(s); err == nil {
			s = netip.PrefixFrom(a.WithZone(""), a.BitLen()).String()
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: want a range such as 192.0.2.0/24, not %q", flag, plain(s)))
			continue
		}
		out = append(out, p.Masked())
	}
	return out, errs
}

// untilInterrupted ends reading in order on Ctrl-C, so that nothing half written
// stays behind.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}

// interrupted words a reading that was ended.
func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted")
	}
	return err
}

// nothingRead is an error if no input could be read at all: a report about
// nothing would look like a quiet site.
func nothingRead(inputs, lines int64, failures []string) error {
	if int64(len(failures)) < inputs || lines > 0 {
		return nil
	}
	return fmt.Errorf("no log could be read:\n  %s", plainLines(failures))
}

func plainLines(lines []string) string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = plain(l)
	}
	return strings.Join(out, "\n  ")
}

// rereadable keeps standard input in a temporary file, for commands that read the
// logs more than once. The caller calls the function when done.
func rereadable(inputs []accesslog.Input) ([]accesslog.Input, func(), error) {
	var kept []string
	done := func() {
		for _, name := range kept {
			os.Remove(name)
		}
	}
	out := make([]accesslog.Input, len(inputs))
	for i, in := range inputs {
		if in.Size > 0 {
			out[i] = in
			continue
		}
		name, size, err := keep(in)
		if name != "" {
			kept = append(kept, name)
		}
		if err != nil {
			done()
			return nil, nil, err
		}
		out[i] = accesslog.Input{Name: in.Name, Size: size, Open: func() (io.ReadCloser, error) { return os.Open(name) }}
	}
	return out, done, nil
}

func keep(in accesslog.Input) (name string, size int64, err error) {
	from, err := in.Open()
	if err != nil {
		return "", 0, err
	}
	defer from.Close()
	to, err := os.CreateTemp("", "stile-log-")
	if err != nil {
		return "", 0, err
	}
	size, err = io.Copy(to, from)
	return to.Name(), size, errors.Join(err, to.Close())
}

// pseudonymKey is STILE_PSEUDONYM_KEY, or a key of this run only.
func (t *terminal) pseudonymKey() ([]byte, error) {
	const least = 16
	k := t.getenv("STILE_PSEUDONYM_KEY")
	if k == "" {
		return randomBytes(32)
	}
	if len(k) < least {
		return nil, misuse(fmt.Errorf("STILE_PSEUDONYM_KEY: want %d characters or more, or addresses could be guessed back", least))
	}
	return []byte(k), nil
}

// createFile writes what fill writes, or nothing: a report that could not be
// finished does not replace the one before.
func createFile(name string, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(dirOf(name), ".stile-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it bears its own name
	if err := errors.Join(fill(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
