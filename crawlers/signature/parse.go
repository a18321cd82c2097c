package signature

import (
	"strings"

	"github.com/dunglas/httpsfv"
)

// Bounds of hostile headers.
const (
	maxHeader     = 8 << 10 // bytes of one field, all lines joined
	maxComponents = 32
	maxLabels     = 8 // signatures in one message
)

// tag marks the signatures of this profile.
const tag = "web-bot-auth"

// input is one member of Signature-Input.
type input struct {
	label   string
	raw     string // the member's value as received: what @signature-params stands for
	covered []component
	created int64
	expires int64
	keyID   string
	alg     string
	nonce   string
}

// member is one member of a dictionary, not interpreted.
type member struct{ name, raw string }

// split cuts a dictionary field at its top-level commas and keeps the bytes. It
// trusts nothing: each part is parsed again, on its own, by [one].
func split(field string) ([]member, bool) {
	var out []member
	for field = strings.Trim(field, " \t"); field != ""; {
		end := partEnd(field)
		part := strings.Trim(field[:end], " \t")
		name, raw, _ := strings.Cut(part, "=")
		if part == "" || strings.ContainsAny(name, " \t\"(;") {
			return nil, false
		}
		for _, m := range out {
			if m.name == name {
				return nil, false // the last would win: two readers could differ
			}
		}
		if out = append(out, member{name, raw}); len(out) > maxLabels {
			return nil, false
		}
		if end == len(field) {
			break
		}
		field = strings.TrimLeft(field[end+1:], " \t")
		if field == "" {
			return nil, false // a comma at the end
		}
	}
	return out, len(out) > 0
}

// partEnd finds the first comma outside a string.
func partEnd(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			return i
		}
	}
	return len(s)
}

// one parses a member's own bytes, so that what is judged is what is signed.
func one(m member) (httpsfv.Member, bool) {
	d, err := httpsfv.UnmarshalDictionary([]string{m.name + "=" + m.raw})
	if err != nil || len(d.Names()) != 1 {
		return nil, false
	}
	v, ok := d.Get(m.name)
	return v, ok
}

// parseInput reads one member; ok is false when it is not of this profile.
func parseInput(m member) (in input, ok bool, reason Reason) {
	v, good := one(m)
	list, isList := v.(httpsfv.InnerList)
	if !good || !isList || list.Params == nil {
		return in, true, ReasonMalformed
	}
	if t, _ := list.Params.Get("tag"); t != tag {
		return in, false, ""
	}
	in = input{label: m.name, raw: m.raw, created: -1, expires: -1}
	for _, p := range list.Params.Names() {
		v, _ := list.Params.Get(p)
		switch p {
		case "created":
			in.created, good = v.(int64)
		case "expires":
			in.expires, good = v.(int64)
		case "keyid":
			in.keyID, good = v.(string)
		case "alg":
			in.alg, good = v.(string)
		case "nonce":
			in.nonce, good = v.(string)
		case "tag":
		default:
			continue // an unknown parameter is signed like the others
		}
		if !good {
			return in, true, ReasonMalformed
		}
	}
	if in.created < 0 || in.expires < 0 || in.keyID == "" {
		return in, true, ReasonMalformed
	}
	in.covered, reason = components(list)
	return in, true, reason
}

// signatureOf finds the bytes of the signature with a label.
func signatureOf(field, label string) ([]byte, bool) {
	members, ok := split(field)
	if !ok {
		return nil, false
	}
	for _, m := range members {
		if m.name != label {
			continue
		}
		v, ok := one(m)
		item, isItem := v.(httpsfv.Item)
		if !ok || !isItem {
			return nil, false
		}
		sig, isBytes := item.Value.([]byte)
		return sig, isBytes
	}
	return nil, false
}

// agentURL reads the covered Signature-Agent: a member of the dictionary, or
// the bare string of older drafts.
func agentURL(field, key string) (string, Reason) {
	if key == "" {
		if it, err := httpsfv.UnmarshalItem([]string{field}); err == nil {
			if s, ok := it.Value.(string); ok {
				return s, ""
			}
			return "", ReasonMalformed
		}
	}
	d, err := httpsfv.UnmarshalDictionary([]string{field})
	if err != nil {
		return "", ReasonMalformed
	}
	if key == "" {
		if len(d.Names()) != 1 { // which of several is meant is not said
			return "", ReasonMalformed
		}
		key = d.Names()[0]
	}
	m, _ := d.Get(key)
	it, ok := m.(httpsfv.Item)
	if !ok {
		return "", ReasonMalformed
	}
	s, ok := it.Value.(string)
	if !ok {
		return "", ReasonMalformed
	}
	if t, typed := it.Params.Get("type"); typed && t != "directory" && t != httpsfv.Token("directory") {
		return "", ReasonUnsupported
	}
	return s, ""
}
