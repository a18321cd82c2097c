package main

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/stilehq/stile/policy"
)

type policyCmd struct {
	Check policyCheckCmd `cmd:"" help:"Say everything that is wrong with a policy file."`
	Show  policyShowCmd  `cmd:"" help:"Show the effective policy with every default."`
}

type policyCheckCmd struct {
	File string `arg:"" help:"Policy file; - is standard input."`
	JSON bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (policyCheckCmd) Help() string {
	return "Exit status 0: the policy can be used, though there may be warnings. 1: it cannot. " +
		"Environment overrides (STILE_MODE and so on) and secrets (env:NAME) are part of what is checked.\n\n" +
		"Examples:\n  stile policy check stile.yaml\n  stile policy check --json stile.yaml | jq .errors"
}

// finding is one error or warning in JSON.
type finding struct {
	Line    int    `json:"line,omitempty"`
	Env     string `json:"env,omitempty"`
	Path    string `json:"path,omitempty"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy,omitempty"`
}

type checkResult struct {
	Valid    bool      `json:"valid"`
	Errors   []finding `json:"errors"`
	Warnings []finding `json:"warnings"`
}

// Run checks one file.
func (c *policyCheckCmd) Run(t *terminal) error {
	f, warnings, err := t.loadPolicy(c.File)
	if err != nil && !invalid(err) {
		return policyFailure(c.File, err)
	}
	r := checkResult{Valid: err == nil, Errors: []finding{}, Warnings: []finding{}}
	for _, e := range problems(err) {
		r.Errors = append(r.Errors, findingOf(e))
	}
	for _, w := range warnings {
		r.Warnings = append(r.Warnings, finding(w))
	}
	if c.JSON {
		if err := writeJSON(t.stdout, r); err != nil {
			return err
		}
	} else if err := c.print(t, f, err, warnings); err != nil {
		return err
	}
	if !r.Valid {
		return badNews(nil)
	}
	return nil
}

func findingOf(err error) finding {
	var e *policy.Error
	if errors.As(err, &e) {
		return finding(*e)
	}
	return finding{Problem: err.Error()}
}

func (c *policyCheckCmd) print(t *terminal, f *policy.File, err error, warnings []policy.Warning) error {
	var b bytes.Buffer
	bad := problems(err)
	for _, e := range bad {
		fmt.Fprintf(&b, "error:   %s\n", plain(e.Error()))
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", plain(w.String()))
	}
	if f == nil {
		fmt.Fprintf(&b, "%s cannot be used: %s\n", plain(c.File), count(len(bad), "error"))
	} else {
		fmt.Fprintf(&b, "%s is fine: site %s, mode %s, %s, %s\n", plain(c.File), plain(f.Site), f.Mode,
			count(len(f.Buckets), "bucket"), count(len(warnings), "warning"))
	}
	_, werr := t.stdout.Write(b.Bytes())
	return werr
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

type policyShowCmd struct {
	File string `arg:"" optional:"" help:"Policy file; - is standard input; default: the example policy."`
	JSON bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (policyShowCmd) Help() string {
	return "The output is a policy file itself: what is a default or comes from the environment is marked in a comment. " +
		"Secrets are shown as their references.\n\n" +
		"Examples:\n  stile policy show stile.yaml\n  stile policy show > stile.yaml      (a file to begin with)"
}

// Run shows one policy.
func (c *policyShowCmd) Run(t *terminal) error {
	f, _, err := t.loadPolicy(c.File)
	if err != nil {
		return policyFailure(c.File, err)
	}
	if !c.JSON {
		return f.Show(t.stdout)
	}
	var b bytes.Buffer
	if err := f.Show(&b); err != nil {
		return err
	}
	var root yaml.Node
	if err := yaml.Unmarshal(b.Bytes(), &root); err != nil {
		return err
	}
	v, err := jsonOf(&root)
	if err != nil {
		return err
	}
	return writeJSON(t.stdout, v)
}

// jsonOf turns the policy file's own YAML into what JSON has. Dates stay the text
// that they are in the file.
func jsonOf(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return jsonOf(n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, err := jsonOf(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := jsonOf(item)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	if n.Tag == "!!timestamp" {
		return n.Value, nil
	}
	var v any
	err := n.Decode(&v)
	return v, err
}
