package main

import (
	"errors"
	"io"

	"github.com/stilehq/stile/edge"
)

type edgeCmd struct {
	Product string `arg:"" enum:"cloudflare,cloud-armor,aws-waf,vercel" help:"cloudflare, cloud-armor, aws-waf or vercel."`
	Policy  string `placeholder:"FILE" help:"Policy file; default: the example policy."`
	Plan    string `placeholder:"NAME" help:"What you pay for: free, pro, business or enterprise; default: business at Cloudflare, pro at Vercel."`
	JSON    bool   `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (edgeCmd) Help() string {
	return "Writes, in Terraform's language, the product's rate rule that counts what the policy counts, and says before it " +
		"what the product cannot do. It is a coarse ring outside of Stile, not a replacement.\n\n" +
		"Examples:\n  stile edge cloudflare --policy stile.yaml > ratelimit.tf\n  stile edge aws-waf --policy stile.yaml --json | jq .limits"
}

// Run writes one product's rule.
func (c *edgeCmd) Run(t *terminal) error {
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	r, err := edge.New(c.Product, c.Plan, f, t.now())
	switch {
	case errors.Is(err, edge.ErrPlan) || errors.Is(err, edge.ErrProduct):
		return misuse(err)
	case err != nil:
		return badNews(err)
	case c.JSON:
		return writeJSON(t.stdout, r)
	}
	_, err = io.WriteString(t.stdout, r.Text())
	return err
}
