package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// The defaults of [Config].
const (
	DefaultPool           = 1
	DefaultConnectTimeout = 2 * time.Second
	DefaultTimeout        = time.Second
	DefaultRepair         = 3

	maxPool = 256
)

// A Config says where the server is and how it is spoken to. The zero value of
// each field but Addrs is a usable default.
type Config struct {
	// Addrs holds host:port of the server; for a cluster, of one or more of its
	// nodes, from which the others are learnt. An IPv6 literal is bracketed.
	Addrs []string

	// Cluster says that the server is a Redis Cluster: each row goes to the
	// master of its slot. Default: one server.
	Cluster bool

	Username string // ACL user; "" = the default user
	Password string // "" = no AUTH; never shown in errors or logs
	DB       int    // database number; must be 0 in a cluster

	// TLS, if set, encrypts every connection. An empty ServerName means the host
	// that is dialled. Default: no TLS.
	TLS *tls.Config

	// Pool is the number of connections to one node, 1 to 256; 0 means
	// DefaultPool. All requests share them, so it is no bound of throughput: one
	// is enough, and the fastest. A connection that is given up may live on beside
	// its successor until its last requests have met their deadline. Keep
	//
	//	instances x Pool x 2 <= maxclients
	//
	// (Redis' default maxclients is 10,000; Memorystore's is 65,000, the smallest
	// ElastiCache nodes have the same 65,000).
	Pool int

	// ConnectTimeout bounds dialling and the TLS and AUTH handshake of a new
	// connection, apart from the deadline of the hit that waits for it: a dial
	// goes on for the next hit. 0 means DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// Timeout bounds a call whose context has no earlier deadline, so that a
	// black hole never holds a connection longer. 0 means DefaultTimeout.
	Timeout time.Duration

	// Repair is the highest count at which an EXPIREAT is sent again by an
	// instance that has not seen it confirmed: it repairs the death of another
	// instance between creating a record and setting its expiry. 0 means
	// DefaultRepair; 1 never repairs. See package bitfield.
	Repair int

	// Namer turns rows into key names.
	Namer rows.Namer
}

// withDefaults returns c with every zero field filled in.
func (c Config) withDefaults() Config {
	if c.Pool == 0 {
		c.Pool = DefaultPool
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Repair == 0 {
		c.Repair = DefaultRepair
	}
	return c
}

// Validate reports everything that is wrong with c, all at once, without any
// network and without showing the password. It returns nil for a usable Config.
func (c Config) Validate() error {
	var errs []error
	if len(c.Addrs) == 0 {
		errs = append(errs, errors.New("redis: no address"))
	}
	for _, addr := range c.Addrs {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("redis: address %q: want host:port, with an IPv6 host in brackets", addr))
			continue
		}
		if host == "" {
			errs = append(errs, fmt.Errorf("redis: address %q: no host", addr))
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			errs = append(errs, fmt.Errorf("redis: address %q: port must be 1 to 65535", addr))
		}
	}
	if !c.Cluster && len(c.Addrs) > 1 {
		errs = append(errs, errors.New("redis: several addresses need cluster=1"))
	}
	if c.DB < 0 {
		errs = append(errs, fmt.Errorf("redis: database %d is negative", c.DB))
	}
	if c.Cluster && c.DB != 0 {
		errs = append(errs, fmt.Errorf("redis: a cluster has database 0 only, not %d", c.DB))
	}
	if c.Username != "" && c.Password == "" {
		errs = append(errs, errors.New("redis: a user without a password"))
	}
	if c.Pool < 0 || c.Pool > maxPool {
		errs = append(errs, fmt.Errorf("redis: pool %d is not within 1 to %d", c.Pool, maxPool))
	}
	if c.ConnectTimeout < 0 {
		errs = append(errs, errors.New("redis: connect timeout is negative"))
	}
	if c.Timeout < 0 {
		errs = append(errs, errors.New("redis: timeout is negative"))
	}
	if c.Repair < 0 {
		errs = append(errs, errors.New("redis: repair is negative"))
	}
	return errors.Join(errs...)
}
