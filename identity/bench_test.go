package identity

import (
	"testing"
)

func BenchmarkCookieVerify(b *testing.B) {
	c := newCookies(b, CookieConfig{})
	r := request("theme=dark; _ga=GA1.2.1234567890.1234567890; __Host-stile=" + c.Issue(morning, client) + "; lang=en")
	b.ReportAllocs()
	for b.Loop() {
		if c.Identify(r, client).Kind == 0 {
			b.Fatal("nobody")
		}
	}
}

func BenchmarkCookieForged(b *testing.B) {
	c := newCookies(b, CookieConfig{})
	value := []byte(c.Issue(morning, client))
	value[40] ^= 3
	r := request("__Host-stile=" + string(value))
	b.ReportAllocs()
	for b.Loop() {
		if c.Identify(r, client).Kind != 0 {
			b.Fatal("somebody")
		}
	}
}

func BenchmarkCookieAbsent(b *testing.B) {
	c := newCookies(b, CookieConfig{})
	r := request("theme=dark; _ga=GA1.2.1234567890.1234567890; lang=en")
	b.ReportAllocs()
	for b.Loop() {
		c.Identify(r, client)
	}
}

func BenchmarkCookieIssue(b *testing.B) {
	c := newCookies(b, CookieConfig{})
	b.ReportAllocs()
	for b.Loop() {
		c.Issue(morning, client)
	}
}
