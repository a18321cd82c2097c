package gate

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerConfig bounds what a client may cost. Zero values are the defaults.
type ServerConfig struct {
	ReadHeaderTimeout time.Duration // from connect to the last header line; 0 = 10 s
	IdleTimeout       time.Duration // between requests; 0 = 2 minutes
	MaxHeaderBytes    int           // 0 = 64 KiB
	// WriteStall is how long one write may make no progress before the client is
	// taken for gone; 0 = 1 minute. A timeout of the whole response would end
	// streams that are alive.
	WriteStall time.Duration
	// Grace is how long requests may take to finish at shutdown; 0 = 9 s, within
	// the 10 s that platforms give.
	Grace  time.Duration
	Logger *slog.Logger // the server's own complaints, at debug level; nil = slog.Default()
}

// A Server is an http.Server with limits for a hostile public that leave
// streams, Server-Sent Events and WebSockets alone.
type Server struct {
	http  *http.Server
	stall time.Duration
	grace time.Duration
}

// NewServer returns a server for h.
func NewServer(h http.Handler, c ServerConfig) *Server {
	if c.ReadHeaderTimeout == 0 {
		c.ReadHeaderTimeout = 10 * time.Second
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = 2 * time.Minute
	}
	if c.MaxHeaderBytes == 0 {
		c.MaxHeaderBytes = 64 << 10
	}
	if c.WriteStall == 0 {
		c.WriteStall = time.Minute
	}
	if c.Grace == 0 {
		c.Grace = 9 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Server{
		stall: c.WriteStall,
		grace: c.Grace,
		http: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: c.ReadHeaderTimeout,
			IdleTimeout:       c.IdleTimeout,
			MaxHeaderBytes:    c.MaxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
		},
	}
}

// Run serves on ln until ctx ends, then lets requests finish for the grace time
// and cuts what is left, streams and WebSockets among it. It returns nil after
// an orderly end, and closes ln in any case.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(stallListener{ln, s.stall}) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer cancel()
	err := s.http.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		// Cancels the requests first, so that their origins hear of it.
		cut()
		err = s.http.Close()
	}
	if serveErr := <-failed; err == nil && !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	return err
}

// stallListener gives each write of its connections a deadline.
type stallListener struct {
	net.Listener
	stall time.Duration
}

func (l stallListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &stallConn{Conn: c, stall: l.stall}, nil
}

type stallConn struct {
	net.Conn
	stall time.Duration
}

// maxPiece is the most that one deadline covers: a big write to a slow but
// living client is many pieces.
const maxPiece = 64 << 10

func (c *stallConn) Write(p []byte) (int, error) {
	n := 0
	for {
		piece := p[n:min(len(p), n+maxPiece)]
		if err := c.Conn.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(piece)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
	}
}

// CloseWrite lets an upgraded connection end one way only.
func (c *stallConn) CloseWrite() error {
	if cw, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return cw.CloseWrite()
	}
	return c.Conn.Close()
}
