package crawlers

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
)

// A Resolver looks names up; *net.Resolver is one.
type Resolver interface {
	// LookupAddr returns the names of an address.
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	// LookupNetIP returns the addresses of a name; network is "ip4" or "ip6".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var _ Resolver = (*net.Resolver)(nil)

// maxNames bounds how many names of one address are followed: its owner can
// publish any number.
const maxNames = 8

// outcome is how a reverse proof ended.
type outcome uint8

const (
	refuted   outcome = iota // the DNS answered, and it is no crawler
	confirmed                // a name matched, and that name leads back
	undecided                // the DNS did not answer: try again soon
)

// A NameProof is what became of one name of an address.
type NameProof struct {
	Name      string   // as the DNS gave it: lower case, no final dot
	Matches   []string // agents whose pattern it matches; empty: not followed
	Confirmed bool     // the name's own addresses hold the client's
	Note      string   // why not, in words
}

// reverse checks a client by its names: for each name that matches a pattern,
// the forward look-up of that same name must give the client back. Whoever
// owns an address block writes its reverse zone, so a name alone is a claim.
func (v *Verifier) reverse(ctx context.Context, client netip.Addr) (agents mask, out outcome, proofs []NameProof) {
	names, err := v.cfg.Resolver.LookupAddr(ctx, client.String())
	if err != nil && len(names) == 0 {
		if notFound(err) {
			return mask{}, refuted, nil
		}
		return mask{}, undecided, nil
	}
	out = refuted
	followed := 0
	for _, name := range names {
		name, ok := cleanName(name)
		if !ok {
			continue
		}
		p := NameProof{Name: name}
		match := v.matchName(name)
		switch {
		case match.empty():
			p.Note = "no crawler's name"
		case followed == maxNames:
			p.Note = "not followed: too many names"
		default:
			followed++
			p.Matches = v.names(match)
			switch found, err := v.forward(ctx, name, client); {
			case found:
				p.Confirmed = true
				agents, out = agents.or(match), confirmed
			case err != nil:
				p.Note = "the forward look-up failed"
				if out == refuted {
					out = undecided
				}
			default:
				p.Note = "the name does not lead back to the address"
			}
		}
		if len(proofs) < 2*maxNames {
			proofs = append(proofs, p)
		}
	}
	return agents, out, proofs
}

// forward reports whether name's addresses hold client. The final dot keeps the
// machine's search domains out of it.
func (v *Verifier) forward(ctx context.Context, name string, client netip.Addr) (bool, error) {
	network := "ip6"
	if client.Is4() {
		network = "ip4"
	}
	addrs, err := v.cfg.Resolver.LookupNetIP(ctx, network, name+".")
	for _, a := range addrs {
		if a.Unmap().WithZone("") == client {
			return true, nil
		}
	}
	if err != nil && !notFound(err) {
		return false, err
	}
	return false, nil
}

func notFound(err error) bool {
	var d *net.DNSError
	return errors.As(err, &d) && d.IsNotFound && !d.IsTimeout
}

// cleanName lower-cases a host name and drops one final dot; false when it is
// not made of ordinary labels.
func cleanName(s string) (string, bool) {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 || strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..") {
		return "", false
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isWord(c) && c != '-' && c != '.' && c != '_' {
			return "", false
		}
	}
	return strings.ToLower(s), true
}

// matchName returns the agents whose pattern a clean name matches.
func (v *Verifier) matchName(name string) mask {
	var m mask
	if strings.HasSuffix("."+name, forbiddenSuffix) {
		return m
	}
	for i, r := range v.cat.Reverse {
		rest, ok := strings.CutSuffix(name, r.Suffix)
		if !ok || rest == "" {
			continue
		}
		if r.Prefix != "" && (!strings.HasPrefix(rest, r.Prefix) || strings.Contains(rest, ".")) {
			continue
		}
		m = m.or(v.reverseAgents[i])
	}
	return m
}
