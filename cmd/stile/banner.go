package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/stilehq/stile/policy"
)

// banner says what the demo site does and what to try. Believes is whether the
// demo's own policy holds, which believes X-Forwarded-For from this machine.
func banner(addr string, f *policy.File, believes bool) string {
	site := "http://" + addr + "/"
	if host, port, err := net.SplitHostPort(addr); err == nil && (host == "::" || host == "0.0.0.0") {
		site = "http://127.0.0.1:" + port + "/"
	}
	var limits []string
	smallest := int64(0)
	for _, b := range f.Buckets {
		n := scaled(b.Limit, f.Scale)
		limits = append(limits, fmt.Sprintf("%d per %s", n, period(b)))
		if smallest == 0 || n < smallest {
			smallest = n
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Stile stands in front of its demo site at %s\n", site)
	fmt.Fprintf(&b, "Pages for each client: %s (mode %s). Assets and prefetches are not counted.\n", strings.Join(limits, ", "), f.Mode)
	b.WriteString("\nTry:\n")
	fmt.Fprintf(&b, "  curl -i %s\n      one page; its RateLimit fields say what is left\n", site)
	if believes {
		fmt.Fprintf(&b, "  scripts/hammer.sh --url %s --limit %d --client-header 'X-Forwarded-For: 198.51.100.1' --second-client-header 'X-Forwarded-For: 198.51.100.9' --crawler-header 'X-Forwarded-For: 66.249.66.1'\n", site, smallest)
	} else {
		fmt.Fprintf(&b, "  scripts/hammer.sh --url %s --limit %d\n", site, smallest)
	}
	b.WriteString("      the proof, with a 429 in a few seconds (from the repository)\n")
	fmt.Fprintf(&b, "  open %s in a browser\n      thirty links: it may prefetch all of them, but only a page that you open counts\n", site)
	b.WriteString("\nTo meet the 429 yourself after 3 pages: STILE_SCALE=0.05 stile serve\n")
	if believes {
		b.WriteString("Demo only: X-Forwarded-For is believed from this machine, so that one computer can play several clients.\n")
	}
	b.WriteString("The hit log follows, one JSON line for each counted page and each refusal.\n\n")
	return b.String()
}

// scaled is the limit that holds: scale multiplies it, rounded up.
func scaled(limit int64, scale float64) int64 {
	n := float64(limit) * scale
	if whole := int64(n); float64(whole) == n {
		return whole
	}
	return int64(n) + 1
}

func period(b policy.Bucket) string {
	switch s := short(b.Window); s {
	case "1h":
		return "hour"
	case "24h":
		return "day"
	case "1m":
		return "minute"
	default:
		return s
	}
}
