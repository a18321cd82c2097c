package wire

import (
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/identity/asn"
	"github.com/stilehq/stile/policy"
)

// maxTemplate bounds a template file of the answers, in bytes; the answers
// themselves are bounded by package answer.
const maxTemplate = 64 << 10

// build makes the parts of one policy over the open store; old are those that
// hold until then, nil at first. Errors are joined.
func (r *Ready) build(f *policy.File, old *Parts) (*Parts, []policy.Warning, error) {
	var errs []error
	warnings, err := policy.CheckStore(f, r.features)
	if err != nil {
		errs = append(errs, err)
	}
	parts := &Parts{Policy: f}
	verifier := r.cfg.Crawlers
	if verifier == nil {
		if parts.Crawlers, err = r.crawlers(f, old); err != nil {
			errs = append(errs, err)
		} else if parts.Crawlers != nil {
			verifier = parts.Crawlers
		}
	}
	compiled, err := f.Core(r.cfg.Now())
	if err != nil {
		return nil, warnings, errors.Join(append(errs, err)...)
	}
	if old != nil && sameIdentities(old.Policy, f) {
		parts.known = old.known // fetched keys, and what newcomers have earned
	} else if parts.known, err = r.identities(f); err != nil {
		errs = append(errs, err)
		parts.known = &Identities{}
	}
	parts.Cookies = parts.known.Cookies
	options := core.Options{
		Store: r.store, Local: r.local,
		Crawlers: verifier, Identifiers: parts.known.Identifiers, ASN: parts.known.ASN,
	}
	if r.features.Shared {
		options.Control = f.Store.Control // what no other process can write needs no reading
	}
	if parts.Limiter, err = core.New(compiled, options); err != nil {
		errs = append(errs, err)
	}
	if parts.Answer, err = answers(f); err != nil {
		errs = append(errs, err)
	}
	if parts.Log, err = r.hitLog(f); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, warnings, err
	}
	return parts, warnings, nil
}

// identities are the program's, or else the policy's own.
func (r *Ready) identities(f *policy.File) (*Identities, error) {
	if r.cfg.Identifiers != nil || r.cfg.ASN != nil {
		return &Identities{Identifiers: r.cfg.Identifiers, ASN: r.cfg.ASN, log: r.logger()}, nil
	}
	hosting, err := networksOf(f)
	if err != nil {
		return nil, &policy.Error{Path: "client.asn_list", Problem: err.Error()}
	}
	return NewIdentities(f, IdentityOptions{Platform: r.cfg.PlatformUsers, Hosting: hosting, Logger: r.logger(), Now: r.cfg.Now})
}

// networksOf is for which networks ASN buckets hold; nil = all.
func networksOf(f *policy.File) (asn.Set, error) {
	switch list := f.Client.ASNList; {
	case f.Client.ASN == "none" || f.Client.ASN == "" || list == policy.ASNListAll:
		return nil, nil
	case list == policy.ASNListHosting:
		return asn.Hosting(), nil
	default:
		data, err := readFile(f.Path(list), policy.MaxSize)
		if err != nil {
			return nil, err
		}
		return asn.ParseSet(data)
	}
}

// sameIdentities reports whether two policies let the same parties prove the
// same, and no file has to be read again to know.
func sameIdentities(a, b *policy.File) bool {
	reads := b.Identify.JWT != nil && b.Identify.JWT.JWKSFile != "" || b.Identify.APIKeys != nil && b.Identify.APIKeys.File != "" ||
		b.Client.ASN.File() != "" || b.Client.ASNList != policy.ASNListHosting && b.Client.ASNList != policy.ASNListAll
	return !reads && a.Site == b.Site && reflect.DeepEqual(a.Identify, b.Identify) && reflect.DeepEqual(a.Client, b.Client)
}

// crawlers returns the verifier for f: the one that is there already, with what
// it fetched and proved, if f wants the same, else one that begins with what it
// holds.
func (r *Ready) crawlers(f *policy.File, old *Parts) (*crawlers.Verifier, error) {
	c := r.cfg.Proving
	if c.Logger == nil {
		c.Logger = r.logger()
	}
	if c.Now == nil {
		c.Now = r.cfg.Now
	}
	if old != nil && old.Crawlers != nil {
		if sameCrawlers(old.Policy, f) && f.Crawlers.File == "" {
			return old.Crawlers, nil
		}
		c.Held = append(c.Held, old.Crawlers.Snapshot())
	}
	return NewCrawlers(f, c)
}

func answers(f *policy.File) (*answer.Writer, error) {
	var errs []error
	c := answer.Config{Site: f.Site, Contact: f.Contact}
	var err error
	if c.Headers, err = answer.ParseHeaders(string(f.Answer.Headers)); err != nil {
		errs = append(errs, fmt.Errorf("answer.headers: %w", err))
	}
	if c.HTML, err = template(f, f.Answer.HTML); err != nil {
		errs = append(errs, fmt.Errorf("answer.html: %w", err))
	}
	if c.JSON, err = template(f, f.Answer.JSON); err != nil {
		errs = append(errs, fmt.Errorf("answer.json: %w", err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	w, err := answer.New(c)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return w, nil
}

// template reads a template file that the policy names; "" is none.
func template(f *policy.File, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	info, err := os.Stat(f.Path(path))
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxTemplate:
		return "", fmt.Errorf("%s: want a file of at most %d bytes", path, maxTemplate)
	}
	text, err := os.ReadFile(f.Path(path))
	return string(text), err
}

func (r *Ready) hitLog(f *policy.File) (*hitlog.Log, error) {
	mode, err := hitlog.ParseIPMode(string(f.Log.IP))
	if err != nil {
		return nil, fmt.Errorf("log.ip: %w", err)
	}
	c := hitlog.Config{Handler: r.cfg.HitLog, Site: f.Site, Store: r.features.Name, IP: mode}
	if secrets := f.Log.Secret.Values(); len(secrets) > 0 {
		c.Secret = []byte(secrets[0])
	}
	l, err := hitlog.New(c)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return l, nil
}
