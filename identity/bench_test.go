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

func BenchmarkToken(b *testing.B) {
	for _, alg := range []struct{ name, kid, key string }{{"RS256", "r1", "rsa"}, {"ES256", "e1", "ec"}, {"EdDSA", "d1", "ed"}} {
		text := signed(alg.kid, alg.name, signers()[alg.key], claims())
		r := bearing("Authorization", "Bearer "+text, morning)
		b.Run(alg.name+"/first", func(b *testing.B) {
			tokens := newTokens(b, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokens.verify(text, morning); err != nil {
					b.Fatal("nobody")
				}
			}
		})
		b.Run(alg.name+"/again", func(b *testing.B) {
			tokens := newTokens(b, nil)
			b.ReportAllocs()
			for b.Loop() {
				if tokens.Identify(r, client).Kind == 0 {
					b.Fatal("nobody")
				}
			}
		})
	}
}

// BenchmarkTokenExpired is a client whose session has ended, page after page.
func BenchmarkTokenExpired(b *testing.B) {
	tokens := newTokens(b, nil)
	r := bearing("Authorization", signed("e1", "ES256", signers()["ec"], claims("exp", 1)), morning)
	b.ReportAllocs()
	for b.Loop() {
		if tokens.Identify(r, client).Kind != 0 {
			b.Fatal("somebody")
		}
	}
}

func BenchmarkAPIKey(b *testing.B) {
	keys := must(NewAPIKeys("X-Api-Key", []APIKey{{Hash: hashOf("0123456789abcdef0123456789abcdef"), Name: "partner"}}))
	r := bearing("X-Api-Key", "0123456789abcdef0123456789abcdef", morning)
	b.ReportAllocs()
	for b.Loop() {
		if keys.Identify(r, client).Kind == 0 {
			b.Fatal("nobody")
		}
	}
}
