package upstash

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/stilehq/stile/core/rows"
)

// The defaults of [Config].
const (
	DefaultConns          = 32
	DefaultConnectTimeout = 2 * time.Second
	DefaultTimeout        = time.Second
	DefaultRepair         = 2
)

// The environment variables that FromURL reads. The first token that is set
// counts, in this order after the URL's own.
const (
	EnvURL        = "UPSTASH_REDIS_REST_URL"
	EnvToken      = "UPSTASH_REDIS_REST_TOKEN"
	EnvStoreToken = "STILE_STORE_TOKEN"
)

// A Config says which database is used. URL and Token are required.
type Config struct {
	// URL is the REST endpoint, https://NAME.upstash.io. Plain http is accepted
	// for loopback addresses only, since the token travels in a header.
	URL string

	// Token is the read-write REST token; never shown in errors or logs.
	Token string

	// TLS, if set, replaces the default TLS settings.
	TLS *tls.Config

	// Conns bounds the HTTP/1.1 connections (over HTTP/2 one carries all). A
	// call beyond it waits within its deadline. 0 means DefaultConns.
	Conns int

	// ConnectTimeout bounds dialling and the TLS handshake, apart from the
	// deadline of the hit that waits for it. 0 means DefaultConnectTimeout.
	ConnectTimeout time.Duration

	// Timeout bounds a call whose context has no earlier deadline: a database
	// over its commands per second answers late instead of with an error.
	// 0 means DefaultTimeout.
	Timeout time.Duration

	// Repair is the highest count at which an EXPIREAT is sent again by an
	// instance that has not seen it confirmed (package bitfield). Each is a
	// billed command: 2 means at most one more per record and other instance,
	// 1 none. 0 means DefaultRepair.
	Repair int

	// Namer turns rows into key names.
	Namer rows.Namer
}

func (c Config) withDefaults() Config {
	if c.Conns == 0 {
		c.Conns = DefaultConns
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
	c.URL = strings.TrimRight(c.URL, "/")
	return c
}

// Validate reports everything that is wrong with c, all at once, without any
// network and without showing the token. It returns nil for a usable Config.
func (c Config) Validate() error {
	var errs []error
	if u, err := url.Parse(c.URL); err != nil {
		errs = append(errs, errors.New("upstash: the URL cannot be read: want https://NAME.upstash.io"))
	} else {
		switch {
		case u.Hostname() == "":
			errs = append(errs, errors.New("upstash: the URL has no host: want https://NAME.upstash.io"))
		case u.Scheme == "http" && !loopback(u.Hostname()):
			errs = append(errs, errors.New("upstash: plain http would show the token on the way: want https"))
		case u.Scheme != "https" && u.Scheme != "http":
			errs = append(errs, fmt.Errorf("upstash: scheme %q: want https", u.Scheme))
		}
		if u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
			errs = append(errs, errors.New("upstash: the URL is scheme and host only"))
		}
	}
	switch {
	case c.Token == "":
		errs = append(errs, fmt.Errorf("upstash: no token: set %s or %s", EnvToken, EnvStoreToken))
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		errs = append(errs, errors.New("upstash: the token holds a character that no token has (a space or line end?)"))
	}
	if c.Conns < 0 {
		errs = append(errs, errors.New("upstash: conns is negative"))
	}
	if c.ConnectTimeout < 0 || c.Timeout < 0 {
		errs = append(errs, errors.New("upstash: a timeout is negative"))
	}
	if c.Repair < 0 {
		errs = append(errs, errors.New("upstash: repair is negative"))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// FromURL reads a store URL, without any network:
//
//	upstash://NAME.upstash.io           https to that host
//	upstash://                          the URL of UPSTASH_REDIS_REST_URL
//	https://NAME.upstash.io             the same as the first
//
// The token comes from UPSTASH_REDIS_REST_TOKEN or STILE_STORE_TOKEN; one in the
// URL (upstash://:TOKEN@host) is accepted and wins. Query: connect_timeout=2s,
// timeout=1s. Getenv is os.Getenv or a test's map. All that is wrong is reported
// at once, and no error shows the token.
func FromURL(u *url.URL, getenv func(string) string) (Config, error) {
	var (
		c    Config
		errs []error
	)
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	c.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if u.Scheme == "upstash" {
		c.URL = (&url.URL{Scheme: "https", Host: u.Host, Path: u.Path}).String()
		if u.Host == "" {
			c.URL = strings.TrimSpace(getenv(EnvURL))
		}
	}
	if u.User != nil {
		c.Token, _ = u.User.Password()
		if c.Token == "" {
			c.Token = u.User.Username()
		}
	}
	for _, name := range []string{EnvToken, EnvStoreToken} {
		if c.Token == "" {
			c.Token = strings.TrimSpace(getenv(name))
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		errs = append(errs, errors.New("upstash: the query cannot be read"))
	}
	for name := range query {
		var to *time.Duration
		switch name {
		case "connect_timeout":
			to = &c.ConnectTimeout
		case "timeout":
			to = &c.Timeout
		default:
			errs = append(errs, fmt.Errorf("upstash: unknown setting %q: want connect_timeout or timeout", name))
			continue
		}
		d, err := time.ParseDuration(query.Get(name))
		if err != nil || d <= 0 {
			errs = append(errs, fmt.Errorf("upstash: %s=%q: want a duration such as 2s", name, query.Get(name)))
			continue
		}
		*to = d
	}
	if err := c.Validate(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	return c, nil
}
