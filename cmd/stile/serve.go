package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/wire"
)

type serveCmd struct {
	Listen      string        `placeholder:"ADDR" default:"127.0.0.1:8080" help:"Address to listen on; default: 127.0.0.1:8080."`
	Origin      string        `placeholder:"URL" help:"The site behind, as http://host:port; default: the built-in demo site."`
	OriginHost  string        `enum:"visitor,origin" placeholder:"WHOSE" default:"visitor" help:"The Host that the origin is sent: as the visitor sent it, or the origin's own name; default: visitor."`
	ForwardAuth bool          `help:"Answer /check for a proxy that asks, and stand in front of nothing."`
	Policy      string        `placeholder:"FILE" help:"Policy file; default: the example policy."`
	Store       string        `placeholder:"URL" help:"Where counts are kept; default: this process's memory."`
	Admin       string        `placeholder:"ADDR" help:"Address for /healthz and /metrics; default: none."`
	Grace       time.Duration `placeholder:"TIME" default:"9s" help:"How long requests under way may take once the process is told to stop; default: 9s."`
}

// Help is shown by --help.
func (serveCmd) Help() string {
	return "The hit log goes to standard output, one JSON line for each counted page and each refusal; what an operator must know goes to standard error. " +
		"SIGHUP reads the policy file again and keeps the counts; a file with errors changes nothing. SIGTERM and SIGINT end it gracefully.\n\n" +
		"Examples:\n" +
		"  stile serve                                         (the demo site)\n" +
		"  stile serve --origin http://127.0.0.1:3000 --policy stile.yaml\n" +
		"  stile serve --forward-auth --policy stile.yaml      (asked by nginx, Caddy, ...; see docs/proxies)\n" +
		"  STILE_MODE=observe stile serve --origin http://127.0.0.1:3000 >> hits.jsonl"
}

// Run serves until it is told to stop.
func (c *serveCmd) Run(ctx context.Context, t *terminal) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	surviveReaders()
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)

	logger := slog.New(slog.NewTextHandler(t.stderr, nil))
	f, warnings, err := c.load(t)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	origin, err := c.originURL()
	if err != nil {
		return misuse(err)
	}
	ready, err := c.wire(ctx, t, f, logger)
	if err != nil {
		return wiringFailure(c.Policy, err)
	}
	defer func() {
		if err := ready.Close(context.WithoutCancel(ctx)); err != nil {
			logger.Error("the store was not closed in order", "err", err)
		}
	}()
	tell(logger, warnings)
	switch {
	case ready.Features().Shared || t.serverless():
		tell(logger, ready.Warnings)
	case c.Origin != "" || c.ForwardAuth || c.Store != "": // what memory forgets is no news in a demo
		logger.Info("counts are kept in this process: right for one instance; they end with it, and a second one counts anew", "shared", "--store, or STILE_STORE")
	}
	if ready.StoreProblem != nil {
		logger.Error("the store was not found in order; it goes on being tried", "err", ready.StoreProblem, "until_then", "store.on_error: "+string(f.Store.OnError))
	}

	running := newServers(ctx, logger, c.Grace)
	defer running.stop()
	if c.ForwardAuth {
		if c.Policy == "" {
			logger.Warn("no --policy: the example policy holds, which takes the proxy for the visitor", "site", f.Site)
		}
	} else if origin == nil {
		if origin, err = running.demo(); err != nil {
			return err
		}
	} else if strings.Contains(f.Contact, "@example.org") || f.Site == "example" {
		logger.Warn("contact or site is still the example's: whoever is refused reads them", "contact", f.Contact, "site", f.Site)
	}
	if !c.ForwardAuth && c.Origin != "" && c.Policy == "" {
		logger.Warn("no --policy: the example policy holds, and its limits are seeds; measure yours", "site", f.Site)
	}
	front, err := newFront(ready, origin, c.OriginHost == "origin", logger)
	if err != nil {
		return err
	}
	addr, err := running.listen(c.Listen, front)
	if err != nil {
		return err
	}
	if c.Admin != "" {
		admin, err := running.listen(c.Admin, front.admin())
		if err != nil {
			return err
		}
		logger.Info("admin", "healthz", "http://"+admin+"/healthz", "metrics", "http://"+admin+"/metrics")
	}
	if c.Origin == "" && !c.ForwardAuth {
		if c.Policy != "" {
			logger.Warn("no --origin (STILE_ORIGIN): the policy is applied to the built-in demo site, not to yours", "policy", c.Policy)
		}
		fmt.Fprint(t.stderr, banner(addr, f, c.Policy == ""))
	} else {
		logger.Info("serving", "listen", "http://"+addr, "origin", c.Origin, "site", f.Site, "mode", f.Mode, "store", ready.Features().Name)
	}

	for {
		select {
		case <-hangup:
			c.reload(ctx, t, front, logger)
		case err := <-running.failed:
			return err
		case <-ctx.Done():
			stop() // a second signal ends the process at once
			logger.Info("stopping", "grace", c.Grace.String())
			return running.stop()
		}
	}
}

// serverless reports whether a platform that starts and stops instances by itself
// runs this process: Cloud Run or Lambda.
func (t *terminal) serverless() bool {
	return t.getenv("K_SERVICE") != "" || t.getenv("AWS_LAMBDA_FUNCTION_NAME") != ""
}

// load reads the policy. The demo site's own believes X-Forwarded-For from this
// machine, so that one computer can play several clients.
func (c *serveCmd) load(t *terminal) (*policy.File, []policy.Warning, error) {
	f, warnings, err := t.loadPolicy(c.Policy)
	if err == nil && c.Policy == "" && c.Origin == "" && !c.ForwardAuth {
		f.Client.From = "xff"
		f.Client.TrustedProxies = loopbackRanges()
		f.Client.Peers = loopbackRanges()
	}
	return f, warnings, err
}

func (c *serveCmd) originURL() (*url.URL, error) {
	if c.ForwardAuth && c.Origin != "" {
		return nil, errors.New("--forward-auth: goes without --origin: the proxy that asks has the way to the site")
	}
	if c.Origin == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
		u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("--origin: want an address such as http://127.0.0.1:3000, without path, query or user")
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, nil
}

func (c *serveCmd) wire(ctx context.Context, t *terminal, f *policy.File, logger *slog.Logger) (*wire.Ready, error) {
	registry, err := all.Registry()
	if err != nil {
		return nil, err
	}
	ready, err := wire.New(ctx, wire.Config{
		Policy: f, Stores: registry, StoreURL: c.Store, Getenv: t.getenv,
		HitLog: hitlog.NewHandler(&hitOutput{w: t.stdout, logger: logger, now: time.Now}, hitlog.Names{}), Logger: logger,
		Proving: wire.CrawlerConfig{Transport: t.transport, Resolver: t.resolver},
	})
	if err == nil && (c.Origin != "" || c.ForwardAuth) {
		go ready.Run(ctx) // the demo fetches nothing; its crawlers are the built-in snapshot's
	}
	return ready, err
}

// reload takes the policy file as it is now, or says why not and goes on as
// before.
func (c *serveCmd) reload(ctx context.Context, t *terminal, front *front, logger *slog.Logger) {
	if c.Policy == "" || c.Policy == "-" {
		logger.Warn("SIGHUP: there is no policy file to read again")
		return
	}
	f, warnings, err := t.loadPolicy(c.Policy)
	if err == nil {
		var more []policy.Warning
		more, err = front.reload(ctx, f)
		if front.ready.Features().Shared || t.serverless() {
			warnings = append(warnings, more...)
		}
	}
	for _, e := range problems(err) {
		logger.Error("policy", "file", c.Policy, "err", e)
	}
	if err != nil {
		logger.Error("the policy was not exchanged; the one before holds on", "file", c.Policy)
		return
	}
	tell(logger, warnings)
	logger.Info("the policy was exchanged; counts are kept", "file", c.Policy, "mode", f.Mode)
}

func tell(logger *slog.Logger, warnings []policy.Warning) {
	for _, w := range warnings {
		logger.Warn("policy", "warning", w.String())
	}
}
