package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/stilehq/stile/adapters/gate"
	"github.com/stilehq/stile/cmd/stile/demo"
)

// servers are the HTTP servers of one run, stopped in the reverse order of their
// start: an origin outlives what is in front of it.
type servers struct {
	ctx    context.Context // of all servers; the end of the run does not end it
	logger *slog.Logger
	grace  time.Duration
	list   []runningServer
	failed chan error // a server that ended by itself
}

type runningServer struct {
	cancel context.CancelFunc
	done   chan error
}

func newServers(ctx context.Context, logger *slog.Logger, grace time.Duration) *servers {
	return &servers{ctx: context.WithoutCancel(ctx), logger: logger, grace: grace, failed: make(chan error, 1)}
}

// listen starts a server and returns the address that it listens on.
func (s *servers) listen(addr string, h http.Handler) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(s.ctx, "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen on %s: %w", addr, err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	r := runningServer{cancel: cancel, done: make(chan error, 1)}
	s.list = append(s.list, r)
	srv := gate.NewServer(h, gate.ServerConfig{Grace: s.grace, Logger: s.logger})
	go func() {
		err := srv.Run(ctx, l)
		if ctx.Err() == nil {
			select {
			case s.failed <- err:
			default: // the first failure ends the run already
			}
		}
		r.done <- err
	}()
	return l.Addr().String(), nil
}

// demo starts the demo site on a port of its own and returns its address: it is
// an origin like any other, a connection away.
func (s *servers) demo() (*url.URL, error) {
	site, err := demo.New()
	if err != nil {
		return nil, err
	}
	addr, err := s.listen("127.0.0.1:0", site)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "http", Host: addr}, nil
}

// stop ends every server, each after its requests under way or the grace time.
// Calling it again does nothing.
func (s *servers) stop() error {
	var errs []error
	for i := len(s.list) - 1; i >= 0; i-- {
		s.list[i].cancel()
		errs = append(errs, <-s.list[i].done)
	}
	s.list = nil
	return errors.Join(errs...)
}
