package identity

import (
	"net/netip"
	"unicode/utf8"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// WithPlatformUser returns a header lookup that also carries the user whom the
// platform itself verified: the principal or claim that an API gateway hands its
// integration beside the request. An adapter puts it into core.Request.Header.
// It is a value of this program and not a field, so no client can send one. An
// empty id returns h.
func WithPlatformUser(h core.Header, id string) core.Header {
	if id == "" {
		return h
	}
	return platformHeader{h, id}
}

type platformHeader struct {
	core.Header
	user string
}

// Values implements core.Header, also over no header at all.
func (h platformHeader) Values(name string) []string {
	if h.Header == nil {
		return nil
	}
	return h.Header.Values(name)
}

// PlatformUsers recognises the users that an adapter took from its platform's
// own claims. The zero value is ready, and safe for concurrent use.
type PlatformUsers struct{}

var _ core.Identifier = PlatformUsers{}

// Identify implements core.Identifier.
func (PlatformUsers) Identify(r *core.Request, _ netip.Addr) core.Identity {
	h, ok := r.Header.(platformHeader)
	if !ok || len(h.user) > maxUserID || !utf8.ValidString(h.user) {
		return core.Identity{}
	}
	return core.Identity{Kind: rows.User, ID: h.user, Proof: "platform"}
}
