package crawlers

import (
	"net/netip"
	"net/url"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers/signature"
)

var _ core.CrawlerVerifier = (*Verifier)(nil)

// VerifyCrawler is [Verifier.Verify] for core: by range, by reverse DNS, then
// by signature where the request carries one. It does no I/O, and allocates
// nothing unless a signature is to be judged.
func (v *Verifier) VerifyCrawler(r *core.Request, client netip.Addr) core.Crawler {
	ua, signed := "", false
	if r.Header != nil {
		if lines := r.Header.Values("User-Agent"); len(lines) > 0 {
			ua = lines[0]
		}
		signed = v.cfg.Signatures != nil && len(r.Header.Values("Signature-Input")) > 0
	}
	m := v.Verify(client, ua, r.Time)
	if signed && !m.Verified {
		s := v.VerifySignature(&signature.Message{Header: r.Header, Method: r.Method, Authority: r.Host,
			// core does not know the scheme. Agents sign for public sites, which speak
			// https whatever stands in front of us; a wrong guess verifies nothing.
			TLS: true, Path: escaped(r.Path), RawQuery: r.RawQuery}, r.Time)
		if s.Verified {
			m = s
		} else if !m.Claimed && s.Claimed {
			m = s
		}
	}
	return core.Crawler{Name: m.Name, Class: string(m.Class), Claimed: m.Claimed, Verified: m.Verified, Proof: string(m.Proof)}
}

// VerifySignature judges a signed request. Name is the signer's on the
// allow-list, so that a limit can be kept per signer; Claimed is true when the
// request names such a signer. Without Config.Signatures it is the zero Match.
func (v *Verifier) VerifySignature(m *signature.Message, now time.Time) Match {
	if v.cfg.Signatures == nil || m.Header == nil {
		return Match{}
	}
	r := v.cfg.Signatures.Verify(m, now)
	if r.Agent == "" {
		return Match{}
	}
	out := Match{Name: r.Agent, Class: Class(r.Class), Claimed: true}
	if r.Outcome == signature.Verified {
		out.Verified, out.Proof = true, BySignature
	}
	return out
}

// escaped writes a decoded path as it most likely stood on the wire.
func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }
