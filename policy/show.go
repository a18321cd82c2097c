package policy

import (
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// Show writes the effective policy with every default as a policy file: parsing
// it gives the same File. Each single value that is a default, or comes from the
// environment, is marked so in a comment; secrets are shown as their references.
func (f *File) Show(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(f.node(reflect.ValueOf(f).Elem(), "")); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	return e.Close()
}

// node turns a value into YAML.
func (f *File) node(v reflect.Value, path string) *yaml.Node {
	switch t := v.Interface().(type) {
	case Secrets:
		return secretsNode(t)
	case map[string]Treatment:
		return f.treatmentsNode(t, path)
	}
	switch {
	case isScalar(v.Type()):
		n := scalarNode(v)
		n.LineComment = f.comment(path)
		return n
	case v.Kind() == reflect.Pointer:
		return f.node(v.Elem(), path)
	case v.Kind() == reflect.Slice:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if v.Len() == 0 || isScalar(v.Type().Elem()) {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			item := f.node(v.Index(i), path+"["+strconv.Itoa(i)+"]")
			if n.Style == yaml.FlowStyle {
				item.LineComment = ""
			}
			n.Content = append(n.Content, item)
		}
		return n
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		field := v.Field(i)
		if key == "" || field.Kind() == reflect.Pointer && field.IsNil() {
			continue
		}
		n.Content = append(n.Content, textNode(key), f.node(field, join(path, key)))
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

// comment says where a value comes from that the file does not hold.
func (f *File) comment(path string) string {
	p, ok := f.origin[path]
	switch {
	case !ok:
		return "default"
	case p.env != "":
		return "from " + p.env
	}
	return ""
}

func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func scalarNode(v reflect.Value) *yaml.Node {
	switch t := v.Interface().(type) {
	case time.Duration:
		if t == 0 {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "0"}
		}
		return textNode(formatDuration(t))
	case netip.Prefix:
		return textNode(t.String())
	case Date:
		return textNode(t.String())
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(v.Int(), 10)}
	case reflect.Float64:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: strconv.FormatFloat(v.Float(), 'f', -1, 64)}
		if n.Value == strconv.FormatInt(int64(v.Float()), 10) {
			n.Tag = "!!int"
		}
		return n
	}
	return textNode(v.String())
}

func secretsNode(s Secrets) *yaml.Node {
	if len(s.refs) == 1 {
		return textNode(s.refs[0])
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, ref := range s.refs {
		n.Content = append(n.Content, textNode(ref))
	}
	return n
}

func (f *File) treatmentsNode(m map[string]Treatment, path string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, class := range CrawlerClasses() {
		t := m[class]
		value := textNode("ordinary")
		switch {
		case t.Exempt:
			value.Value = "exempt"
		case t.Multiply > 0:
			value = &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle, Content: []*yaml.Node{
				textNode("multiply"), {Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(t.Multiply, 10)}}}
		}
		if value.Kind == yaml.ScalarNode {
			value.LineComment = f.comment(join(path, class))
		}
		n.Content = append(n.Content, textNode(class), value)
	}
	return n
}
