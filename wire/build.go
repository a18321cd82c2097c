package wire

import (
	"errors"
	"fmt"
	"os"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
	"github.com/stilehq/stile/policy"
)

// maxTemplate bounds a template file of the answers, in bytes; the answers
// themselves are bounded by package answer.
const maxTemplate = 64 << 10

// build makes the parts of one policy over the open store. Errors are joined.
func (r *Ready) build(f *policy.File) (*Parts, []policy.Warning, error) {
	var errs []error
	warnings, err := policy.CheckStore(f, r.features)
	if err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, r.unsupplied(f)...)

	parts := &Parts{Policy: f}
	compiled, err := f.Core(r.cfg.Now())
	if err != nil {
		errs = append(errs, err)
	} else if parts.Limiter, err = core.New(compiled, core.Options{
		Store: r.store, Local: r.local,
		Crawlers: r.cfg.Crawlers, Identifiers: r.cfg.Identifiers, ASN: r.cfg.ASN,
	}); err != nil {
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

// unsupplied names what the policy counts by and this program cannot tell. A
// bucket that would silently never fill is worse than a refusal to start.
func (r *Ready) unsupplied(f *policy.File) (errs []error) {
	missing := func(path, what string) {
		errs = append(errs, &policy.Error{Path: path, Problem: "this program was built without " + what, Remedy: "remove it, or use a program that has it"})
	}
	if len(r.cfg.Identifiers) == 0 {
		if f.Identify.Cookie != nil {
			missing("identify.cookie", "signed cookies")
		}
		if f.Identify.JWT != nil {
			missing("identify.jwt", "JWT verification")
		}
		if f.Identify.APIKeys != nil {
			missing("identify.api_keys", "API keys")
		}
	}
	if r.cfg.ASN == nil && f.Client.ASN != "none" && f.Client.ASN != "" {
		missing("client.asn", "a source of AS numbers")
	}
	return errs
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
