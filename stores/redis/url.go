package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// EnvPassword names the environment variable that holds the password when the
// URL has none, so that no secret need stand in a command line or a log.
const EnvPassword = "STILE_STORE_PASSWORD"

// FromURL reads a store URL. It opens no connection; the file named by ca is
// the only thing it reads. Getenv is os.Getenv or a test's map. All that is
// wrong is reported at once, and no error shows the password.
//
//	redis://[user:password@]host[:6379][/db]     plain
//	rediss://…                                   TLS
//	redis://host1/?cluster=1&node=host2:6379     a cluster, by one or more nodes
//
// Query: cluster=1, node=HOST[:PORT] (repeatable), pool=N, ca=FILE (PEM; trust these roots only), servername=NAME
// (TLS), connect_timeout=2s, timeout=1s. Valkey's schemes valkey:// and valkeys://
// are the same.
func FromURL(u *url.URL, getenv func(string) string) (Config, error) {
	var (
		c    Config
		errs []error
	)
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("redis: "+format, args...)) }

	secure := false
	switch u.Scheme {
	case "redis", "valkey":
	case "rediss", "valkeys":
		secure = true
	default:
		bad("scheme %q: want redis or rediss", u.Scheme)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		bad("query cannot be read")
	}
	for _, host := range append([]string{u.Host}, query["node"]...) {
		addr, err := hostPort(host)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c.Addrs = append(c.Addrs, addr)
	}
	if u.User != nil {
		c.Username = u.User.Username()
		c.Password, _ = u.User.Password()
	}
	if c.Password == "" && getenv != nil {
		c.Password = getenv(EnvPassword)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		n, err := strconv.Atoi(path)
		if err != nil {
			bad("path %q: want a database number", u.Path)
		}
		c.DB = n
	}

	ca, serverName := "", ""
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		switch name {
		case "cluster":
			if c.Cluster, err = strconv.ParseBool(value); err != nil {
				bad("cluster=%q: want 1 or 0", value)
			}
		case "pool":
			if c.Pool, err = strconv.Atoi(value); err != nil || c.Pool < 1 || c.Pool > maxPool {
				bad("pool=%q: want a number from 1 to %d", value, maxPool)
				c.Pool = 0
			}
		case "node": // read above
		case "ca":
			ca = value
		case "servername":
			serverName = value
		case "connect_timeout":
			c.ConnectTimeout = duration(value, name, bad)
		case "timeout":
			c.Timeout = duration(value, name, bad)
		default:
			bad("unknown setting %q: want ca, cluster, connect_timeout, node, pool, servername or timeout", name)
		}
	}
	if secure {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: serverName}
	} else if ca != "" || serverName != "" {
		bad("ca and servername need rediss://")
	}
	if ca != "" && secure {
		if c.TLS.RootCAs, err = roots(ca); err != nil {
			errs = append(errs, err)
		}
	}
	if len(c.Addrs) > 0 { // else the reason has been given
		if err := c.Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return Config{}, errors.Join(errs...)
	}
	return c, nil
}

// hostPort completes a host with the default port. IPv6 literals must be
// bracketed, for otherwise their last group would be taken for a port.
func hostPort(host string) (string, error) {
	switch {
	case host == "":
		return "", errors.New("redis: the URL has no host")
	case strings.HasPrefix(host, "["):
		end := strings.IndexByte(host, ']')
		if end < 0 || net.ParseIP(host[1:end]) == nil {
			return "", fmt.Errorf("redis: host %q is no IPv6 literal", host)
		}
		if end == len(host)-1 {
			return net.JoinHostPort(host[1:end], "6379"), nil
		}
	case strings.Count(host, ":") > 1:
		return "", fmt.Errorf("redis: host %q: an IPv6 literal needs brackets", host)
	case !strings.Contains(host, ":"):
		return net.JoinHostPort(host, "6379"), nil
	}
	return host, nil
}

func duration(value, name string, bad func(string, ...any)) time.Duration {
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		bad("%s=%q: want a duration such as 2s", name, value)
		return 0
	}
	return d
}

func roots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("redis: ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("redis: ca: %s holds no PEM certificate", file)
	}
	return pool, nil
}
