package wire

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"reflect"
	"slices"
	"time"

	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/crawlers/signature"
	"github.com/stilehq/stile/policy"
)

// maxRanges bounds a file of crawler ranges, in bytes.
const maxRanges = 16 << 20

// CrawlerConfig says with what a policy's crawlers are verified. The zero value
// works.
type CrawlerConfig struct {
	Transport http.RoundTripper // for lists and key directories; nil = direct, public addresses only
	Resolver  crawlers.Resolver // nil = the machine's, in Go
	Logger    *slog.Logger      // nil = nobody is told
	Now       func() time.Time  // nil = time.Now
	// Held are ranges that are known already, merged over the policy's file.
	Held []crawlers.Snapshot
}

// NewCrawlers returns the verifier of the crawlers that a policy treats other
// than ordinarily, nil when there are none: what is not proven costs no fetch,
// and a claim that would earn nothing no DNS. It does no I/O but reading
// crawlers.file. The error is a *policy.Error, or joins them.
func NewCrawlers(f *policy.File, c CrawlerConfig) (*crawlers.Verifier, error) {
	classes := treated(f)
	if len(classes) == 0 {
		return nil, nil
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	var held []crawlers.Snapshot
	if f.Crawlers.File != "" {
		s, err := readRanges(f.Path(f.Crawlers.File))
		if err != nil {
			errs = append(errs, &policy.Error{Path: "crawlers.file", Problem: err.Error(), Remedy: "write it with: stile crawlers update FILE"})
		}
		held = append(held, s)
	}
	signed, err := signers(f, classes, c)
	if err != nil {
		errs = append(errs, &policy.Error{Path: "crawlers.agents", Problem: err.Error()})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	all := crawlers.Default()
	needed := all.Need(classes...)
	return crawlers.New(crawlers.Config{
		Catalogue: &needed, Snapshots: append(held, c.Held...), MaxAge: f.Crawlers.MaxAge,
		Signatures: signed, Transport: c.Transport, Resolver: c.Resolver, Logger: c.Logger, Now: c.Now,
	})
}

// treated are the classes that the policy treats other than ordinarily.
func treated(f *policy.File) (out []crawlers.Class) {
	for _, class := range crawlers.Classes() {
		if t := f.Exempt.Crawlers[string(class)]; t.Exempt || t.Multiply > 1 {
			out = append(out, class)
		}
	}
	return out
}

// signers verifies the policy's signed agents; nil when none would earn anything.
func signers(f *policy.File, classes []crawlers.Class, c CrawlerConfig) (*signature.Verifier, error) {
	config := signature.Config{Hosts: f.Crawlers.Hosts, Transport: c.Transport, Logger: c.Logger, Now: c.Now}
	for _, a := range f.Crawlers.Agents {
		if slices.Contains(classes, crawlers.Class(a.Class)) {
			config.Agents = append(config.Agents, signature.Agent{Name: a.Name, Class: a.Class, Directory: a.Directory})
		}
	}
	if len(config.Agents) == 0 {
		return nil, nil
	}
	return signature.New(config)
}

func readRanges(path string) (crawlers.Snapshot, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxRanges+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxRanges {
		return nil, fmt.Errorf("larger than %d bytes", maxRanges)
	}
	return crawlers.ReadSnapshot(data)
}

// sameCrawlers reports whether two policies want the same verifier.
func sameCrawlers(a, b *policy.File) bool {
	return slices.Equal(treated(a), treated(b)) && reflect.DeepEqual(a.Crawlers, b.Crawlers) && a.Path(a.Crawlers.File) == b.Path(b.Crawlers.File)
}
