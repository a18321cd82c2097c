package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/identity"
	"github.com/stilehq/stile/identity/asn"
	"github.com/stilehq/stile/policy"
)

// networksInterval is how often a table of networks is looked at for a change.
const networksInterval = 10 * time.Minute

// IdentityOptions say how a policy's identities are made. The zero value is ready.
type IdentityOptions struct {
	// Platform also takes the users that the adapter reads from its platform's
	// own claims; see identity.WithPlatformUser.
	Platform bool
	// Hosting has ASN buckets hold for these networks only; nil = for all.
	Hosting   asn.Set
	Transport http.RoundTripper // for the keys of tokens; nil = a transport of its own
	Logger    *slog.Logger      // nil = none
	Now       func() time.Time  // nil = time.Now; for the policy's dates and the times of fetches
}

// Identities are what knows clients by more than their address, as a policy
// says. They are safe for concurrent use.
type Identities struct {
	Identifiers []core.Identifier // in the order of what they prove
	ASN         core.ASNSource    // nil = none
	// Cookies sets the visitor cookies; nil = the policy has none. The adapter
	// calls its Offer once for each decision.
	Cookies *identity.Cookies

	keys     *identity.KeySet // nil = none that is fetched
	networks *asn.File        // nil = none
	log      *slog.Logger
}

// NewIdentities makes the identities of a policy. It reads the files that the
// policy names and asks no network: call [Identities.Refresh] or
// [Identities.Run] for the keys of tokens. The error joins all that is wrong, each with its
// key path.
func NewIdentities(f *policy.File, o IdentityOptions) (*Identities, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	out := &Identities{log: o.Logger}
	var errs []error
	note := func(path string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	if o.Platform {
		out.Identifiers = append(out.Identifiers, identity.PlatformUsers{})
	}
	if f.Identify.JWT != nil {
		note("identify.jwt", out.addTokens(f, o))
	}
	if f.Identify.APIKeys != nil {
		note("identify.api_keys", out.addAPIKeys(f))
	}
	if f.Identify.Cookie != nil {
		note("identify.cookie", out.addCookies(f))
	}
	note("client.asn", out.addNetworks(f, o))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func (i *Identities) addTokens(f *policy.File, o IdentityOptions) error {
	j := f.Identify.JWT
	var keys *identity.KeySet
	var err error
	if j.JWKSFile != "" {
		var data []byte
		if data, err = readFile(f.Path(j.JWKSFile), identity.MaxKeySetBytes); err == nil {
			keys, err = identity.StaticKeySet(data)
		}
	} else {
		keys, err = identity.NewKeySet(identity.KeySetConfig{URL: j.JWKS, Client: o.Transport, Logger: o.Logger, Now: o.Now})
		i.keys = keys
	}
	if err != nil {
		return err
	}
	tokens, err := identity.NewTokens(identity.JWTConfig{
		Keys: keys, Issuer: j.Issuer, Audience: j.Audience, Algorithms: j.Algorithms,
		Header: j.Header, Cookie: j.Cookie, Claim: j.Claim, Leeway: j.Leeway,
	})
	if err == nil {
		i.Identifiers = append(i.Identifiers, tokens)
	}
	return err
}

func (i *Identities) addAPIKeys(f *policy.File) error {
	a := f.Identify.APIKeys
	list := a.Keys
	if a.File != "" {
		data, err := readFile(f.Path(a.File), policy.MaxSize)
		if err != nil {
			return err
		}
		if list, err = policy.ParseAPIKeys(data); err != nil {
			return err
		}
	}
	known := make([]identity.APIKey, len(list))
	for n, k := range list {
		known[n] = identity.APIKey{Hash: k.Hash, Name: k.Name, Tier: k.Tier}
	}
	keys, err := identity.NewAPIKeys(a.Header, known)
	if err == nil {
		i.Identifiers = append(i.Identifiers, keys)
	}
	return err
}

func (i *Identities) addCookies(f *policy.File) error {
	c := f.Identify.Cookie
	cookies, err := identity.NewCookies(identity.CookieConfig{
		Name: c.Name, Secrets: c.Secrets.Values(), Site: f.Site, IPv6Prefix: f.Client.IPv6Prefix,
	})
	if err == nil {
		i.Cookies = cookies
		i.Identifiers = append(i.Identifiers, cookies)
	}
	return err
}

func (i *Identities) addNetworks(f *policy.File, o IdentityOptions) error {
	if name := f.Client.ASN.Header(); name != "" {
		p, err := f.Core(o.Now())
		if err != nil {
			return err
		}
		h, err := asn.FromHeader(name, &p.Client)
		if err != nil {
			return err
		}
		i.ASN = h
	}
	if path := f.Client.ASN.File(); path != "" {
		networks, err := asn.OpenFile(f.Path(path))
		if err != nil {
			return err
		}
		i.networks, i.ASN = networks, networks
	}
	if i.ASN != nil && o.Hosting != nil {
		i.ASN = asn.Only(i.ASN, o.Hosting)
	}
	return nil
}

// Refresh fetches the keys of tokens if that is due, and returns nil at once if
// not. On an error, which has been logged, the held keys serve on. It is for
// start, and for platforms on which nothing runs between requests.
func (i *Identities) Refresh(ctx context.Context) error {
	if i.keys == nil {
		return nil
	}
	return i.keys.Refresh(ctx)
}

// Run keeps the keys of tokens and the table of networks current until ctx ends.
func (i *Identities) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if i.keys != nil {
		wg.Go(func() { i.keys.Run(ctx) })
	}
	if i.networks != nil {
		wg.Go(func() { i.networks.Run(ctx, networksInterval, i.log) })
	}
	wg.Wait()
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", path, limit)
	}
	return io.ReadAll(io.LimitReader(file, limit))
}
