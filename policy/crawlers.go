package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Crawlers says what else proves a crawler than what is built in. Who gets what
// for it says exempt.crawlers.
type Crawlers struct {
	File   string        `yaml:"file"`    // what `stile crawlers update` wrote; see [File.Path]
	MaxAge time.Duration `yaml:"max_age"` // ranges older than this are warned of
	Hosts  []string      `yaml:"hosts"`   // the site's own names, for signatures
	Agents []SignedAgent `yaml:"agents"`
}

// A SignedAgent is a signer of requests that is trusted to be who it is.
type SignedAgent struct {
	Name      string `yaml:"name"`
	Directory string `yaml:"directory"` // https URL of its keys
	Class     string `yaml:"class"`     // of [CrawlerClasses]
}

// Doctor lets `stile doctor` ask a running instance how it sees its caller.
type Doctor struct {
	Secrets Secrets `yaml:"secrets"` // nil = nobody may ask
}

func (v *validator) crawlers() {
	c := &v.f.Crawlers
	if c.MaxAge < 24*time.Hour {
		v.fail("crawlers.max_age", fmt.Sprintf("%s is less than the lists' own rhythm", formatDuration(c.MaxAge)), "write 1d or more; 30d is usual")
	}
	for i, h := range c.Hosts {
		u, err := url.Parse("//" + h)
		if err != nil || h == "" || u.Host != h || strings.ContainsAny(h, "*@ ") {
			v.fail(fmt.Sprintf("crawlers.hosts[%d]", i), fmt.Sprintf("%q is no host", h), "write www.example.org, with a port if it is not the usual one")
		}
	}
	names := map[string]int{}
	for i, a := range c.Agents {
		path := fmt.Sprintf("crawlers.agents[%d]", i)
		if a.Name == "" || len(a.Name) > 64 || printable(a.Name) != "" {
			v.fail(path+".name", "is no name", "write what the log is to call the agent")
		} else if first, dup := names[a.Name]; dup {
			v.fail(path+".name", fmt.Sprintf("%s is entry %d too", a.Name, first), "keep one")
		}
		names[a.Name] = i
		if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			v.fail(path+".directory", "is no https URL", "write the address at which the operator publishes the agent's keys")
		}
		if !slices.Contains(CrawlerClasses(), a.Class) {
			v.fail(path+".class", fmt.Sprintf("%q is no class of crawlers", a.Class), "write one of "+strings.Join(CrawlerClasses(), ", "))
		}
	}
	if len(c.Agents) > 0 && len(c.Hosts) == 0 {
		v.warn("crawlers.agents", "whoever receives a signed request can repeat it to you under its own name", "list the site's names in crawlers.hosts")
	}
}

// lent warns of classes that fetch whatever a person asks for.
func (v *validator) lent() {
	for _, lent := range []struct{ class, who string }{
		{"ai-user", "whoever uses an assistant"},
		{"preview", "whoever asks a previewer or a translator"},
	} {
		if path := "exempt.crawlers." + lent.class; v.f.Exempt.Crawlers[lent.class].Exempt {
			v.warn(path, lent.who+" fetches any number of pages through it, with the operator's addresses", "write {multiply: 10}")
		}
	}
}
