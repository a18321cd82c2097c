package signature

import (
	"fmt"
	"net/textproto"
	"strings"

	"github.com/dunglas/httpsfv"
)

// A Header gives the values of a field, one per line as received. The name is in
// canonical form ("Signature-Input"); http.Header satisfies it.
type Header interface{ Values(name string) []string }

// A Message is the part of a request that a signature can cover.
type Message struct {
	Header    Header
	Method    string
	Authority string // the Host header or :authority, as received
	TLS       bool   // whether the client spoke https; chooses the scheme and the default port
	Path      string // as received, still escaped; empty means /
	RawQuery  string // without the question mark
	HasQuery  bool   // true for a bare question mark; implied by a RawQuery
}

func (m *Message) scheme() string {
	if m.TLS {
		return "https"
	}
	return "http"
}

// authority is the normal form of RFC 9421 §2.2.3: lower case, no default port.
func (m *Message) authority() string {
	port := ":80"
	if m.TLS {
		port = ":443"
	}
	return strings.TrimSuffix(strings.ToLower(m.Authority), port)
}

func (m *Message) path() string {
	if m.Path == "" {
		return "/"
	}
	return m.Path
}

func (m *Message) query() string {
	if m.RawQuery == "" && !m.HasQuery {
		return ""
	}
	return "?" + m.RawQuery
}

// field joins a field's lines as RFC 9421 §2.1 says; false when it is absent.
func (m *Message) field(name string) (string, bool) {
	values := m.Header.Values(textproto.CanonicalMIMEHeaderKey(name)) // components are in small letters
	if len(values) == 0 {
		return "", false
	}
	if len(values) == 1 {
		return strings.Trim(values[0], " \t"), true
	}
	trimmed := make([]string, len(values))
	for i, v := range values {
		trimmed[i] = strings.Trim(v, " \t")
	}
	return strings.Join(trimmed, ", "), true
}

// component is one covered part of the message.
type component struct {
	id   string // the identifier as it stands in the base, quotes and parameters included
	name string
	key  string // the dictionary member, when only one is covered
}

// components reads the covered parts of a signature. Those that this package
// does not compute give [ReasonUnsupported].
func components(list httpsfv.InnerList) ([]component, Reason) {
	if len(list.Items) > maxComponents {
		return nil, ReasonMalformed
	}
	out := make([]component, 0, len(list.Items))
	for _, it := range list.Items {
		name, ok := it.Value.(string)
		if !ok || name == "" || name != strings.ToLower(name) {
			return nil, ReasonMalformed
		}
		id, err := httpsfv.Marshal(it)
		if err != nil {
			return nil, ReasonMalformed
		}
		c := component{id: id, name: name}
		for _, p := range it.Params.Names() {
			v, _ := it.Params.Get(p)
			key, isString := v.(string)
			if p != "key" || !isString || name[0] == '@' {
				return nil, ReasonUnsupported
			}
			c.key = key
		}
		for _, o := range out {
			if o.id == c.id {
				return nil, ReasonMalformed // RFC 9421 §2: each component once
			}
		}
		out = append(out, c)
	}
	return out, ""
}

// value computes a component's value.
func (m *Message) value(c component) (string, Reason) {
	switch c.name {
	case "@method":
		return m.Method, ""
	case "@authority":
		return m.authority(), ""
	case "@scheme":
		return m.scheme(), ""
	case "@target-uri":
		return m.scheme() + "://" + m.authority() + m.path() + m.query(), ""
	case "@request-target":
		return m.path() + m.query(), ""
	case "@path":
		return m.path(), ""
	case "@query":
		if q := m.query(); q != "" {
			return q, ""
		}
		return "?", ""
	}
	if c.name[0] == '@' {
		return "", ReasonUnsupported
	}
	raw, ok := m.field(c.name)
	if !ok {
		return "", ReasonNotCovered
	}
	if c.key == "" {
		return raw, ""
	}
	if len(raw) > maxHeader {
		return "", ReasonMalformed
	}
	d, err := httpsfv.UnmarshalDictionary([]string{raw})
	if err != nil {
		return "", ReasonMalformed
	}
	member, ok := d.Get(c.key)
	if !ok {
		return "", ReasonNotCovered
	}
	s, err := marshalMember(member)
	if err != nil {
		return "", ReasonMalformed
	}
	return s, ""
}

// marshalMember serialises one dictionary member as RFC 9421 §2.1.2 wants it.
func marshalMember(m httpsfv.Member) (string, error) {
	switch m := m.(type) {
	case httpsfv.Item:
		return httpsfv.Marshal(m)
	case httpsfv.InnerList:
		return httpsfv.Marshal(m)
	}
	return "", fmt.Errorf("signature: unknown member %T", m)
}

// base builds the bytes that were signed. params stands at the end as it was
// received: signers order it as they like, and the order is signed.
func (m *Message) base(covered []component, params string) ([]byte, Reason) {
	var b strings.Builder
	for _, c := range covered {
		v, reason := m.value(c)
		if reason != "" {
			return nil, reason
		}
		if strings.ContainsAny(v, "\r\n") {
			return nil, ReasonMalformed // would forge a line of the base
		}
		b.WriteString(c.id + ": " + v + "\n")
	}
	b.WriteString(`"@signature-params": ` + params)
	return []byte(b.String()), ""
}
