package dynamodb

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stilehq/stile/core/rows"
)

// The table's attributes. They are not configurable: the names are part of every
// item's billed size, and one layout is what Terraform and Probe check.
const (
	keyAttribute = "pk"
	ttlAttribute = "ttl" // a reserved word, so expressions write #t
)

const defaultConnect = 2 * time.Second

// Config says where the records are. The zero value of every field but Table
// works where the environment names a region and credentials.
type Config struct {
	Table    string // required; 3 to 255 of [A-Za-z0-9_.-]
	Region   string // "" means what the environment or the profile says
	Endpoint string // http(s)://host[:port] of another server; "" means the region's own

	// Namer names the items. The zero Namer names an empty site with plain keys.
	Namer rows.Namer

	// ConnectTimeout bounds what Open does on the network (credentials, resolve,
	// dial, TLS) and every later dial. It is apart from the deadline of a hit,
	// which is the caller's context. 0 means 2 s. Negative: Open does not touch
	// the network beyond what credentials need, and dials have 2 s.
	ConnectTimeout time.Duration

	// Credentials replaces the default chain (environment, profile, role). An
	// endpoint on a loopback address gets made-up ones if this is nil and
	// AWS_ACCESS_KEY_ID is unset, since local servers check none and the chain
	// would spend seconds asking for them.
	Credentials aws.CredentialsProvider

	getenv func(string) string
}

// FromURL reads dynamodb://table?region=eu-west-1&endpoint=http://127.0.0.1:4567,
// both parameters optional. getenv is os.Getenv or a test's map. It reports
// everything that is wrong at once, shows no secret, and does not touch the
// network. The caller adds the Namer.
func FromURL(u *url.URL, getenv func(string) string) (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("dynamodb: "+format, args...)) }
	if u.Scheme != "dynamodb" {
		bad("scheme %q; want dynamodb://table?region=eu-west-1", u.Scheme)
	}
	if u.User != nil || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		bad("the store URL is dynamodb://table?region=…, without user, path or fragment; credentials come from the environment")
	}
	c := Config{Table: u.Host, getenv: getenv}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		bad("the query cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		value := query.Get(name)
		switch {
		case name != "region" && name != "endpoint":
			bad("unknown parameter %q; there are region and endpoint", name)
		case len(query[name]) != 1 || value == "":
			bad("%s needs exactly one value", name)
		case name == "region":
			c.Region = value
		default:
			c.Endpoint = value
		}
	}
	if err := c.validate(); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

var (
	tableName  = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
	regionName = regexp.MustCompile(`^[a-z0-9-]*$`)
)

// validate checks what can be checked without the network.
func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("dynamodb: "+format, args...)) }
	if len(c.Table) < 3 || len(c.Table) > 255 || !tableName.MatchString(c.Table) {
		bad("%q is not a table name: 3 to 255 letters, digits, _ . -", c.Table)
	}
	if c.Region != "" && (len(c.Region) < 2 || len(c.Region) > 40 || !regionName.MatchString(c.Region)) {
		bad("%q is not a region", c.Region)
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		switch {
		case err != nil:
			bad("the endpoint is not a URL") // the parse error would repeat it
		case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "":
			bad("the endpoint must be http://host:port or https://host, without user or query")
		}
	}
	return errors.Join(errs...)
}

// local reports whether the endpoint is on a loopback address.
func (c *Config) local() bool {
	u, err := url.Parse(c.Endpoint)
	if err != nil || c.Endpoint == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
