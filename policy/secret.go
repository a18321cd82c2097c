package policy

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Secrets are values that live in environment variables; the policy file holds
// references only, as env:NAME or a list of them. One variable may hold several
// values separated by commas, the newest first. Printing, formatting or
// marshalling a Secrets shows its references.
type Secrets struct {
	refs   []string
	values []string
}

// Refs returns the references as they are written in the file: "env:NAME".
func (s Secrets) Refs() []string { return slices.Clone(s.refs) }

// Values returns the secrets themselves, the newest first. They are for keys of
// HMACs and comparisons, and must not reach a log or a message.
func (s Secrets) Values() []string { return slices.Clone(s.values) }

// Len returns the number of values.
func (s Secrets) Len() int { return len(s.values) }

// String shows the references.
func (s Secrets) String() string { return strings.Join(s.refs, ", ") }

// Format shows the references under every verb, %#v among them.
func (s Secrets) Format(w fmt.State, _ rune) { fmt.Fprint(w, s.String()) }

// MarshalText shows the references.
func (s Secrets) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue shows the references.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }

var (
	_ fmt.Formatter  = Secrets{}
	_ slog.LogValuer = Secrets{}
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secrets decodes one reference or a list of them. No message holds the text
// that was found: it may be the secret.
func (r *reader) secrets(n *yaml.Node, path string, s *Secrets) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) > 8 {
		r.fail(path, fmt.Sprintf("has %d references", len(items)), "8 are the most")
		return
	}
	for i, item := range items {
		sub := path
		if n.Kind == yaml.SequenceNode {
			sub = fmt.Sprintf("%s[%d]", path, i)
			r.origin[sub] = place{line: item.Line}
		}
		if !r.plain(item, sub) {
			continue
		}
		name, ok := strings.CutPrefix(item.Value, "env:")
		if item.Kind != yaml.ScalarNode || !ok || !envName.MatchString(name) {
			r.fail(sub, "is no reference to an environment variable", "put the secret into one, and write env:NAME")
			continue
		}
		found := false
		for value := range strings.SplitSeq(r.env(name), ",") {
			if value = strings.TrimSpace(value); value != "" {
				s.values = append(s.values, value)
				found = true
			}
		}
		if !found {
			r.fail(sub, "the environment variable "+name+" is empty or not set", "set it where Stile runs")
		}
		s.refs = append(s.refs, item.Value)
	}
}
