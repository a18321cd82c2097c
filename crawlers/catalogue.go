package crawlers

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// A Fact says where a statement of the catalogue comes from.
type Fact struct {
	Source string `json:"source"`           // who says so: a vendor's page or a public data set
	Date   string `json:"date"`             // when it was read, YYYY-MM or YYYY-MM-DD
	Memory bool   `json:"memory,omitempty"` // true: not read anywhere at that date, written from memory; check before relying on it
}

// An Agent is one crawler product.
type Agent struct {
	Name     string   // unique; appears in logs, policies and [Match.Name]
	Operator string   // who runs it
	Class    Class    // default class; a policy may treat classes differently
	Tokens   []string // User-Agent tokens, matched without case on word boundaries
	Fact     Fact
}

// A List is one published set of ranges.
type List struct {
	ID     string   // unique, stable: names the list in snapshot files and logs
	URL    string   // https; empty when no usable URL is known, then only a snapshot can fill it
	Format Format   // how the body is read
	Agents []string // names of the agents that crawl from it; the first one stands for the list
	// Dedicated: only the crawler uses these addresses, so that an address alone
	// is proof. When false (a whole company's network, or fetches that its
	// customers can trigger) the User-Agent must claim one of Agents as well.
	Dedicated bool
	// MaxPrefixes caps the entries; 0 means [DefaultMaxPrefixes].
	MaxPrefixes int
	Fact        Fact
}

// A Reverse is one pattern of host names that prove agents by reverse DNS with
// forward confirmation.
type Reverse struct {
	// Prefix, when set, must begin the name, and the rest up to Suffix must be
	// one label: operators use their main domain for other machines too.
	Prefix string
	Suffix string   // begins with a dot, so that it only matches on a label boundary
	Agents []string // names of the agents it proves
	Fact   Fact
}

// A Catalogue is what is known about crawlers: data only, no ranges.
type Catalogue struct {
	Agents  []Agent
	Lists   []List
	Reverse []Reverse
}

// Default returns the built-in catalogue. The caller owns the copy and may
// append to it; [New] validates the result.
func Default() Catalogue {
	var c Catalogue
	for _, part := range []Catalogue{searchCatalogue, aiCatalogue, serviceCatalogue} {
		c.Agents = append(c.Agents, part.Agents...)
		c.Lists = append(c.Lists, part.Lists...)
		c.Reverse = append(c.Reverse, part.Reverse...)
	}
	return c
}

// maxEntries bounds agents, lists and patterns: sets of them are bit masks.
const maxEntries = 128

// forbiddenSuffix is the reverse name of every virtual machine of Google's
// cloud, the customers' included: it proves nothing (reference: the same trap
// has let scrapers through in several products).
const forbiddenSuffix = ".googleusercontent.com"

// Validate reports every fault of the catalogue at once, or nil.
func (c *Catalogue) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf("crawlers: "+format, args...)) }
	if len(c.Agents) > maxEntries || len(c.Lists) > maxEntries || len(c.Reverse) > maxEntries {
		fault("catalogue holds more than %d agents, lists or reverse patterns", maxEntries)
	}
	names := map[string]bool{}
	for _, a := range c.Agents {
		switch {
		case a.Name == "" || names[a.Name]:
			fault("agent %q: name empty or used twice", a.Name)
		case !a.Class.Valid():
			fault("agent %q: unknown class %q", a.Name, a.Class)
		case len(a.Tokens) == 0:
			fault("agent %q: no User-Agent token", a.Name)
		}
		for _, t := range a.Tokens {
			if len(t) < 3 || !isWord(t[0]) || len(t) > 64 {
				fault("agent %q: token %q must be 3 to 64 bytes and begin with a letter or digit", a.Name, t)
			}
		}
		names[a.Name] = true
	}
	known := func(kind, id string, agents []string) {
		if len(agents) == 0 {
			fault("%s %q: no agents", kind, id)
		}
		for _, n := range agents {
			if !names[n] {
				fault("%s %q: no agent is named %q", kind, id, n)
			}
		}
	}
	ids := map[string]bool{}
	for _, l := range c.Lists {
		if !validID(l.ID) || ids[l.ID] {
			fault("list %q: id must be lower-case letters, digits and hyphens, and used once", l.ID)
		}
		ids[l.ID] = true
		if u, err := url.Parse(l.URL); err != nil || (l.URL != "" && (u.Scheme != "https" || u.Host == "")) {
			fault("list %q: URL must be https", l.ID)
		}
		if !slices.Contains([]Format{GoogleJSON, PlainText, CSV}, l.Format) {
			fault("list %q: unknown format %q", l.ID, l.Format)
		}
		if l.MaxPrefixes < 0 {
			fault("list %q: negative prefix cap", l.ID)
		}
		known("list", l.ID, l.Agents)
	}
	for _, r := range c.Reverse {
		s := r.Suffix
		switch {
		case strings.Count(strings.TrimPrefix(s, "."), ".") < 1 || !strings.HasPrefix(s, ".") || s != strings.ToLower(s):
			fault("reverse suffix %q: must be lower case, begin with a dot and hold two labels or more", s)
		case strings.HasSuffix(s, forbiddenSuffix):
			fault("reverse suffix %q: every cloud customer of Google has such names", s)
		}
		known("reverse suffix", s, r.Agents)
	}
	return errors.Join(errs...)
}

func validID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
