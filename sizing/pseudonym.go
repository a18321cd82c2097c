package sizing

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
)

// Pseudonymise replaces every client address in the report by a name made with
// the key, and drops what visitors wrote verbatim (example lines, example paths
// and User-Agents), for reports that leave the house. The same address has the
// same name in every report made with that key; without the key there is no way
// back. The policy keeps its addresses out too, so its exceptions must be filled
// in at home.
func (r *Report) Pseudonymise(key []byte) {
	p := newPseudonyms(key)
	for i := range r.Shared {
		p.heavy(&r.Shared[i])
	}
	for i := range r.Abusers {
		p.heavy(&r.Abusers[i])
	}
	for i, s := range r.Proposal.Text {
		r.Proposal.Text[i] = p.text(s)
	}
	r.Proposal.Policy = p.text(r.Proposal.Policy)
	r.Log.Example = nil
}

// Pseudonymise does the same for a replay.
func (r *Replayed) Pseudonymise(key []byte) {
	p := newPseudonyms(key)
	for i := range r.Limited {
		c := &r.Limited[i]
		c.Address, c.Agent = p.name(c.Address), ""
	}
	for i := range r.Exceptions {
		r.Exceptions[i].Name = p.text(r.Exceptions[i].Name)
	}
}

type pseudonyms struct{ key []byte }

func newPseudonyms(key []byte) *pseudonyms { return &pseudonyms{key} }

func (p *pseudonyms) name(address string) string {
	h := hmac.New(sha256.New, p.key)
	h.Write([]byte(address))
	return "client-" + hex.EncodeToString(h.Sum(nil)[:6])
}

func (p *pseudonyms) heavy(h *Heavy) {
	h.Address, h.Agent = p.name(h.Address), ""
	for i := range h.Patterns {
		h.Patterns[i].Example = ""
	}
}

// text replaces every address in running text, whoever put it there.
func (p *pseudonyms) text(s string) string {
	var b strings.Builder
	isAddr := func(c byte) bool {
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' || c == '.' || c == ':'
	}
	for s != "" {
		n := 0
		for n < len(s) && isAddr(s[n]) {
			n++
		}
		if n == 0 {
			b.WriteByte(s[0])
			s = s[1:]
			continue
		}
		word := s[:n]
		bare := strings.TrimRight(word, ".") // the end of a sentence
		a, err := netip.ParseAddr(bare)
		if err != nil {
			bare = strings.TrimSuffix(bare, ":")
			a, err = netip.ParseAddr(bare)
		}
		if err == nil {
			name := a.String()
			if a.Is6() && strings.HasPrefix(s[n:], "/64") { // a client's own spelling
				name += "/64"
			}
			b.WriteString(p.name(name))
			b.WriteString(word[len(bare):])
		} else {
			b.WriteString(word)
		}
		s = s[n:]
	}
	return b.String()
}
