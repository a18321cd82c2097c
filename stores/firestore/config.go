package firestore

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/option"

	"github.com/stilehq/stile/core/rows"
)

const (
	defaultDatabase   = "(default)"
	defaultCollection = "stile"
	defaultConnect    = 2 * time.Second

	// expiryField is the target of the TTL policy. A collection group has one.
	expiryField = "exp"
)

// Config says where the records are. The zero value of every field but Project
// works.
type Config struct {
	Project    string // Google Cloud project id; required
	Database   string // "" means "(default)"
	Collection string // one path segment; "" means "stile"

	// Emulator is the host:port of a Firestore emulator. If set, the connection
	// is plain text and carries no credentials, so it is refused for any use but
	// a test by the fact that Google's service does not speak that way.
	Emulator string

	// Namer names the documents. The zero Namer names an empty site with plain
	// keys.
	Namer rows.Namer

	// ConnectTimeout bounds what Open does on the network (resolve, dial, TLS and
	// token) and every later attempt to connect. It is apart from the deadline of
	// a hit, which is the caller's context. 0 means 2 s. Negative: Open does not
	// touch the network, and attempts have 2 s.
	ConnectTimeout time.Duration

	// Options are handed to the Google client after those of this package, for
	// example credentials or a quota project. Options that install retries void
	// the promise of core.Store.
	Options []option.ClientOption
}

// FromURL reads firestore://project/database?collection=stile, where database and
// collection are optional. getenv is os.Getenv or a test's map: without a project
// in the URL, GOOGLE_CLOUD_PROJECT is taken; FIRESTORE_EMULATOR_HOST selects an
// emulator. It reports everything that is wrong at once and does not touch the
// network. The caller adds the Namer.
func FromURL(u *url.URL, getenv func(string) string) (Config, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("firestore: "+format, args...)) }
	if u.Scheme != "firestore" {
		bad("scheme %q; want firestore://project/database", u.Scheme)
	}
	if u.User != nil || u.Fragment != "" {
		bad("the store URL takes no user, password or fragment; credentials come from the environment")
	}
	c := Config{
		Project:  cmp.Or(u.Host, getenv("GOOGLE_CLOUD_PROJECT")),
		Database: strings.Trim(u.Path, "/"),
		Emulator: getenv("FIRESTORE_EMULATOR_HOST"),
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		bad("the query cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch value := query.Get(name); {
		case name != "collection":
			bad("unknown parameter %q; there is only collection", name)
		case len(query[name]) != 1 || value == "":
			bad("collection needs exactly one value")
		default:
			c.Collection = value
		}
	}
	if err := c.validate(); err != nil {
		errs = append(errs, err)
	}
	return c, errors.Join(errs...)
}

// The service's own rules for ids, without their lengths: a counted repetition
// is compiled as so many states, at the start of every instance. A domain-scoped
// project id ("example.com:x") cannot be written in a URL's host but can be set in
// Config.
var (
	projectID    = regexp.MustCompile(`^([a-z0-9.-]+:)?[a-z][a-z0-9-]*$`)
	databaseID   = regexp.MustCompile(`^(\(default\)|[a-z][a-z0-9-]*[a-z0-9])$`)
	collectionID = regexp.MustCompile(`^[A-Za-z0-9_.-]*$`)
)

// isID reports whether s has from least to most characters, and this form.
func isID(s string, least, most int, form *regexp.Regexp) bool {
	id := s[strings.LastIndexByte(s, ':')+1:]
	return len(id) >= least && len(id) <= most && form.MatchString(s)
}

// validate checks what can be checked without the network.
func (c *Config) validate() error {
	var errs []error
	if c.Project == "" {
		errs = append(errs, errors.New("firestore: no project; write firestore://PROJECT or set GOOGLE_CLOUD_PROJECT"))
	} else if !isID(c.Project, 3, 63, projectID) {
		errs = append(errs, fmt.Errorf("firestore: %q is not a project id (its number or its display name will not do)", c.Project))
	}
	if c.Database != "" && !isID(c.Database, 4, 63, databaseID) {
		errs = append(errs, fmt.Errorf("firestore: %q is not a database id: (default), or 4 to 63 of [a-z0-9-]", c.Database))
	}
	if n := c.Collection; n != "" && (!isID(n, 1, 256, collectionID) || strings.Trim(n, ".") == "" ||
		strings.HasPrefix(n, "__") && strings.HasSuffix(n, "__")) {
		errs = append(errs, fmt.Errorf("firestore: %q is not a collection id: letters, digits, _ . - and no slash", n))
	}
	if c.Emulator != "" {
		if _, _, err := net.SplitHostPort(c.Emulator); err != nil {
			errs = append(errs, fmt.Errorf("firestore: emulator address %q is not host:port", c.Emulator))
		}
	}
	return errors.Join(errs...)
}
