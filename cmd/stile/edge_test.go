package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/edge"
)

// runEdge runs the command as the command line does, apart from parsing.
func runEdge(t *testing.T, c edgeCmd) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := c.Run(&terminal{
		lookup: func(string) (string, bool) { return "", false },
		stdin:  strings.NewReader(""), stdout: &out, stderr: &out,
		now: func() time.Time { return time.Date(2026, 10, 5, 12, 20, 0, 0, time.UTC) },
	})
	return out.String(), err
}

func TestEdgeWritesEveryProduct(t *testing.T) {
	t.Parallel()
	for _, product := range edge.Products {
		text, err := runEdge(t, edgeCmd{Product: product})
		if err != nil || !strings.Contains(text, "# What this product cannot do:") || !strings.Contains(text, "resource \"") {
			t.Errorf("%s: %v\n%s", product, err, text)
		}
		out, err := runEdge(t, edgeCmd{Product: product, JSON: true})
		var r edge.Rule
		if err != nil || json.Unmarshal([]byte(out), &r) != nil || r.Product != product || r.Terraform == "" || len(r.Limits) == 0 {
			t.Errorf("%s as JSON: %v\n%s", product, err, out)
		}
	}
}

func TestEdgeRefusals(t *testing.T) {
	t.Parallel()
	global := write(t, "global.yaml", "version: 1\nsite: x\nbuckets: [{name: all, key: global, limit: 9, window: 1h}]\n")
	for _, c := range []struct {
		cmd  edgeCmd
		code int
	}{
		{edgeCmd{Product: "cloudflare", Plan: "gold"}, exitMisuse},
		{edgeCmd{Product: "aws-waf", Policy: global}, exitBadNews},
		{edgeCmd{Product: "aws-waf", Policy: write(t, "bad.yaml", badPolicy)}, exitBadNews},
	} {
		text, err := runEdge(t, c.cmd)
		var s *status
		if !errors.As(err, &s) || s.code != c.code || text != "" {
			t.Errorf("%+v: %v and %q, want exit status %d and no rule", c.cmd, err, text, c.code)
		}
	}
}
