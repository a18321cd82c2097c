package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// errTLS marks a failed TLS handshake, so that it can be told from a server
// that is not there.
var errTLS = errors.New("TLS handshake failed")

// quiet silences the client library once: it writes to standard error on its
// own, and all that it says there also comes back as an error.
var quiet = sync.OnceFunc(logging.Disable)

// options returns the client options for one node.
func options(c Config, addr string) *goredis.Options {
	quiet()
	return &goredis.Options{
		Addr:     addr,
		Dialer:   dialer(c),
		Username: c.Username,
		Password: c.Password,
		DB:       c.DB,

		// At most once: nothing is ever sent again by the client.
		MaxRetries:    -1,
		DialerRetries: 1,

		DialTimeout:           c.ConnectTimeout,
		ReadTimeout:           c.Timeout,
		WriteTimeout:          c.Timeout,
		PoolTimeout:           c.Timeout,
		ContextTimeoutEnabled: true,

		// The lane never has more than Pool pipelines in flight; the one beyond
		// is for probes. The client's separate pool for pipelines is left out,
		// for it would not be bounded by this.
		PoolSize:         c.Pool + 1,
		MaxActiveConns:   c.Pool + 1,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  5 * time.Minute, // below the idle timeout of the managed services' proxies

		// RESP2 has no push messages, and nothing here needs RESP3.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		ReadBufferSize:           16 << 10,
		WriteBufferSize:          16 << 10,
	}
}

// dialer connects by TCP and then, if c.TLS is set, by TLS under the name that
// is dialled, both within the context that the client makes of ConnectTimeout.
func dialer(c Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{KeepAlive: 30 * time.Second}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil || c.TLS == nil {
			return conn, err
		}
		cfg := c.TLS
		if cfg.ServerName == "" {
			host, _, err := net.SplitHostPort(addr)
			if err != nil {
				_ = conn.Close()
				return nil, err
			}
			cfg = cfg.Clone()
			cfg.ServerName = host
		}
		secure := tls.Client(conn, cfg)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, errors.Join(errTLS, err)
		}
		return secure, nil
	}
}
