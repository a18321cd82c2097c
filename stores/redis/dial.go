package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// errTLS marks a failed TLS handshake, so that it can be told from a server
// that is not there.
var errTLS = errors.New("TLS handshake failed")

// bufferSize is that of each buffer of a connection: some sixty hits.
const bufferSize = 16 << 10

// options returns the client options for one node. A client is one connection
// (see [once]): it never dials again, sends nothing twice, and says nothing of its
// own accord but the greeting.
func options(c Config, addr string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:       []string{addr},
		ForceSingleClient: true,
		Username:          c.Username,
		Password:          c.Password,
		SelectDB:          c.DB,

		// At most once: nothing is ever sent again by the client.
		DisableRetry: true,

		PipelineMultiplex: -1, // one connection
		BlockingPipeline:  -1, // and none aside for long pipelines

		// No PING by a timer, and no timeout of the client's own: every request has
		// its deadline, and a connection on which one passes in silence is given up
		// (see conn). A timer would run after the response, where a serverless
		// platform has taken the CPU away, and mistake the pause for a dead server.
		Dialer:           net.Dialer{Timeout: c.ConnectTimeout, KeepAlive: -1},
		ConnWriteTimeout: -1,

		// RESP2 has no push messages, and nothing here needs RESP3.
		AlwaysRESP2:         true,
		DisableCache:        true,
		ClientSetInfo:       rueidis.DisableClientSetInfo,
		ReadBufferEachConn:  bufferSize,
		WriteBufferEachConn: bufferSize,
	}
}

// once returns the way for a client to its only connection: by TCP and then, if
// c.TLS is set, by TLS under the name that is dialled, both within ctx. A second
// call is refused, so that a client whose connection has ended proves what it is
// asked afterwards to be unsent.
func once(ctx context.Context, c Config, securing *atomic.Bool, to **conn) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	used := make(chan struct{}, 1)
	return func(_ context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
		select {
		case used <- struct{}{}:
		default:
			return nil, errUnsent
		}
		d := net.Dialer{KeepAlive: 30 * time.Second}
		raw, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		transport := raw
		if c.TLS != nil {
			securing.Store(true)
			transport, err = secure(ctx, c.TLS, raw, addr)
			securing.Store(false)
			if err != nil {
				_ = raw.Close()
				return nil, err
			}
		}
		greetBy, _ := ctx.Deadline()
		made := newConn(transport, raw, greetBy)
		context.AfterFunc(ctx, func() {
			// The store was closed, or the time is over, before the greeting was.
			if !made.greeted.Load() {
				_ = raw.Close()
			}
		})
		*to = made
		return made, nil
	}
}

// secure does the TLS handshake over raw.
func secure(ctx context.Context, cfg *tls.Config, raw net.Conn, addr string) (net.Conn, error) {
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(errTLS, err)
	}
	return conn, nil
}
