package edge

import (
	"fmt"
	"net/netip"
	"strings"
)

// awsWAF writes a web ACL. Windows and the least limit are those of AWS WAF's page
// on rate-based rules; a regular expression has at most 512 characters.
type awsWAF struct{}

var _ vendor = awsWAF{}

const wafRegex = 512

// otherDestinations are the values of Sec-Fetch-Dest that are no top-level page.
var otherDestinations = []string{
	"audio", "audioworklet", "embed", "empty", "fencedframe", "font", "frame", "iframe", "image", "json", "manifest", "object", "paintworklet",
	"report", "script", "serviceworker", "sharedworker", "style", "track", "video", "webidentity", "worker", "xslt",
}

func (awsWAF) plan(name string) (capability, error) {
	return noPlans("aws-waf", name, capability{
		windows: []int{60, 120, 300, 600}, least: 10, most: 2_000_000_000, method: true, headers: true,
		limits: []string{
			"The limit is not exact by AWS's own word, and is noticed up to minutes late.",
			"The longest window is ten minutes. No visitor's day.",
			"Every request that the ACL sees is paid for, assets included, not pages alone.",
			"Retry-After is the whole window: the rule does not know when the client may go on.",
		},
	})
}

func (awsWAF) write(_ capability, q request) (string, []string) {
	var b strings.Builder
	v4, v6 := byFamily(q.exempt)
	for _, set := range []struct {
		name, version string
		list          []string
	}{{"exempt_ipv4", "IPV4", v4}, {"exempt_ipv6", "IPV6", v6}} {
		if len(set.list) > 0 {
			fmt.Fprintf(&b, "resource \"aws_wafv2_ip_set\" %s {\n  name               = %s\n  scope              = var.scope\n  ip_address_version = %s\n  addresses          = %s\n}\n\n",
				hcl(set.name), hcl(dashed("stile", q.file.Site, set.name)), hcl(set.version), hclList(set.list))
		}
	}
	fmt.Fprintf(&b, "resource \"aws_wafv2_web_acl\" %s {\n  name  = %s\n  scope = var.scope\n\n  default_action {\n    allow {}\n  }\n\n", hcl(label("stile", q.file.Site)), hcl(dashed("stile", q.file.Site)))
	for i, r := range q.rings {
		fmt.Fprintf(&b, "  rule {\n    name     = %s\n    priority = %d\n\n", hcl(dashed("stile", r.bucket.Name)), i+1)
		if q.observe {
			b.WriteString("    action {\n      count {}\n    }\n\n")
		} else {
			fmt.Fprintf(&b, "    action {\n      block {\n        custom_response {\n          response_code = 429\n          response_header {\n            name  = \"Retry-After\"\n            value = \"%d\"\n          }\n          response_header {\n            name  = \"Cache-Control\"\n            value = \"no-store\"\n          }\n        }\n      }\n    }\n\n", r.window)
		}
		fmt.Fprintf(&b, "    statement {\n      rate_based_statement {\n        limit                 = %d\n        evaluation_window_sec = %d\n        aggregate_key_type    = \"IP\"\n\n        scope_down_statement {\n          and_statement {\n", r.held, r.window)
		for _, s := range wafStatements(q, r, v4, v6) {
			b.WriteString(indent(12, "statement {\n"+indent(2, s)+"}\n"))
		}
		b.WriteString("          }\n        }\n      }\n    }\n\n")
		b.WriteString(wafVisibility(4, dashed("stile", r.bucket.Name)))
		b.WriteString("  }\n\n")
	}
	b.WriteString(wafVisibility(2, dashed("stile", q.file.Site)))
	b.WriteString("}\n\nvariable \"scope\" {\n  description = \"REGIONAL for API Gateway and load balancers; CLOUDFRONT (in us-east-1) for CloudFront.\"\n  type        = string\n}\n")
	return b.String(), []string{"Attach it: aws_wafv2_web_acl_association, or web_acl_id of the CloudFront distribution."}
}

func byFamily(list []netip.Prefix) (v4, v6 []string) {
	for _, p := range list {
		if p.Addr().Is4() {
			v4 = append(v4, p.String())
		} else {
			v6 = append(v6, p.String())
		}
	}
	return v4, v6
}

func wafVisibility(n int, metric string) string {
	return indent(n, fmt.Sprintf("visibility_config {\n  cloudwatch_metrics_enabled = true\n  metric_name                = %s\n  sampled_requests_enabled   = true\n}\n", hcl(metric)))
}

func wafStatements(q request, r ring, v4, v6 []string) (list []string) {
	var methods []string
	for _, m := range q.pages.methods {
		methods = append(methods, wafMatch("method {}\n", "EXACTLY", m, "NONE"))
	}
	list = append(list, wafAny(methods))
	list = append(list, wafMatch(wafHeader("accept"), "CONTAINS", "text/html", "LOWERCASE"))
	// A field that is absent matches nothing, so not being one of the others says
	// document or absent; the provider takes no or within a not.
	list = append(list, wafNot(wafRegexMatch(wafHeader("sec-fetch-dest"), "^("+strings.Join(otherDestinations, "|")+")$", "LOWERCASE")))
	list = append(list, wafNot(wafMatch(wafHeader("sec-purpose"), "CONTAINS", "prefetch", "LOWERCASE")))
	uri := "uri_path {}\n"
	asked := func(p paths) string {
		var or []string
		for _, re := range p.joined(wafRegex) {
			or = append(or, wafRegexMatch(uri, re, "URL_DECODE"))
		}
		return wafAny(or)
	}
	if !q.pages.include.none() {
		list = append(list, asked(q.pages.include))
	}
	if !r.paths.none() {
		list = append(list, asked(r.paths))
	}
	if !q.pages.exclude.none() {
		for _, re := range q.pages.exclude.joined(wafRegex) {
			list = append(list, wafNot(wafRegexMatch(uri, re, "URL_DECODE")))
		}
	}
	if len(v4) > 0 {
		list = append(list, wafNot("ip_set_reference_statement {\n  arn = aws_wafv2_ip_set.exempt_ipv4.arn\n}\n"))
	}
	if len(v6) > 0 {
		list = append(list, wafNot("ip_set_reference_statement {\n  arn = aws_wafv2_ip_set.exempt_ipv6.arn\n}\n"))
	}
	return list
}

func wafHeader(name string) string {
	return fmt.Sprintf("single_header {\n  name = %s\n}\n", hcl(name))
}

func wafMatch(field, how, text, transform string) string {
	return fmt.Sprintf("byte_match_statement {\n  positional_constraint = %s\n  search_string         = %s\n  field_to_match {\n%s  }\n  text_transformation {\n    priority = 0\n    type     = %s\n  }\n}\n",
		hcl(how), hcl(text), indent(4, field), hcl(transform))
}

func wafRegexMatch(field, re, transform string) string {
	return fmt.Sprintf("regex_match_statement {\n  regex_string = %s\n  field_to_match {\n%s  }\n  text_transformation {\n    priority = 0\n    type     = %s\n  }\n}\n",
		hcl(re), indent(4, field), hcl(transform))
}

func wafNot(statement string) string {
	return "not_statement {\n  statement {\n" + indent(4, statement) + "  }\n}\n"
}

// wafAny is an or of statements; the provider wants two or more in one.
func wafAny(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	var b strings.Builder
	b.WriteString("or_statement {\n")
	for _, s := range list {
		b.WriteString("  statement {\n" + indent(4, s) + "  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}
