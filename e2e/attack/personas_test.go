package attack_test

import (
	"fmt"
	"testing"
	"time"
)

// A persona is a hostile client: what it says, and what it may get in one day.
type persona struct {
	name string
	says string // for the table
	next func(i int) shot
	// promise is the most pages that the policy lets it have, by mode; -1 = no
	// promise: Stile does not stop it.
	promise [2]int
}

func saying(fields ...string) func(int) shot {
	return func(i int) shot { return shot{path: article(i), fields: fields} }
}

const unlimited = -1

// personas are the rows of the table, in its order.
var personas = []persona{
	{
		"plain crawler", "nothing: curl, Python, Go, Scrapy",
		saying(), [2]int{perDay, perDay},
	},
	{
		"browser crawler", "what a browser says: headless Chromium, a fresh profile for each page",
		saying("Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Site: none", "Sec-Fetch-User: ?1", "Upgrade-Insecure-Requests: 1", "Accept: text/html"),
		[2]int{perDay, perDay},
	},
	{
		"slow crawler", fmt.Sprintf("nothing; %d pages an hour, evenly, below every hourly limit", slowPerHour),
		func(i int) shot {
			return shot{path: article(i), at: time.Duration(i) * time.Hour / slowPerHour}
		}, [2]int{perDay, perDay},
	},
	{
		"garbled liar", "`Sec-Fetch-Dest: IMAGE`, a value that no browser sends",
		saying("Sec-Fetch-Dest: IMAGE"), [2]int{perDay, perDay},
	},
	{
		"router liar without a browser", "`RSC: 1` alone",
		saying("RSC: 1", "Next-Router-State-Tree: x"), [2]int{perDay, perDay},
	},
	{
		"agent liar", "`User-Agent: Googlebot`",
		saying("User-Agent: Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"), [2]int{perDay, perDay},
	},
	{
		"XFF forger", "another `X-Forwarded-For` and `X-Real-IP` each time, before the proxy's own entry",
		func(i int) shot {
			forged := fmt.Sprintf("198.51.%d.%d", i/250%250, i%250+1)
			return shot{path: article(i), fields: []string{"X-Forwarded-For: " + forged, "X-Real-Ip: " + forged, "Forwarded: for=" + forged, "True-Client-Ip: " + forged, "Cf-Connecting-Ip: " + forged}}
		}, [2]int{perDay, perDay},
	},
	{
		"key collider", "one address in eight spellings: port, brackets, mapped IPv6, quotes, blanks",
		func(i int) shot {
			forms := []string{"203.0.113.9", "203.0.113.9:443", "203.0.113.9:50111", "::ffff:203.0.113.9", "::ffff:cb00:7109", "[::ffff:203.0.113.9]:443", `"203.0.113.9"`, "  203.0.113.9\t"}
			return shot{path: article(i), from: forms[i%len(forms)]}
		}, [2]int{perDay, perDay},
	},
	{
		"path dresser", "the same articles as `/a;x.css`, `//a`, `/static/../a`, `/%61…`, `/a?x.css`, `/a/`",
		func(i int) shot {
			forms := []string{"/article/%d;x.css", "//article//%d", "/static/../article/%d", "/%%61rticle/%d", "/article/%d?x.css", "/article/%d/", "/static/%%2e%%2e/article/%d", "/article/%d%%3Bx.css"}
			return shot{path: fmt.Sprintf(forms[i%len(forms)], i)}
		}, [2]int{perDay, perDay},
	},
	{
		"image liar", "`Sec-Fetch-Dest: image` (style, script, font, audio, video, track alike)",
		func(i int) shot {
			words := []string{"image", "style", "script", "font", "audio", "video", "track"}
			return shot{path: article(i), fields: []string{"Sec-Fetch-Dest: " + words[i%len(words)]}}
		}, [2]int{perDay, claimsPerDay},
	},
	{
		"frame liar", "`Sec-Fetch-Dest: iframe`",
		saying("Sec-Fetch-Dest: iframe"), [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"fetch liar", "`Sec-Fetch-Dest: empty`, `RSC: 1`",
		saying("Sec-Fetch-Dest: empty", "Sec-Fetch-Mode: cors", "RSC: 1"), [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"prefetch liar", "`Sec-Purpose: prefetch`",
		saying("Sec-Fetch-Dest: document", "Sec-Purpose: prefetch;prerender"), [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"accept liar", "`Accept: image/avif,image/webp`",
		saying("Accept: image/avif,image/webp"), [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"data reader", "`/_next/data/…json` with `Sec-Fetch-Dest: empty`",
		func(i int) shot {
			return shot{path: fmt.Sprintf("/_next/data/build/article/%d.json", i), fields: []string{"Sec-Fetch-Dest: empty"}}
		}, [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"socket liar", "`Upgrade: websocket` on every page",
		saying("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="),
		[2]int{claimsPerDay, claimsPerDay},
	},
	{
		"extension liar", "`/article/1.pdf`, at a site that answers any ending with the page; `Sec-Fetch-Dest: image`",
		func(i int) shot {
			return shot{path: article(i) + ".pdf", fields: []string{"Sec-Fetch-Dest: image"}}
		}, [2]int{perDay, unlimited},
	},
	{
		"silent extension liar", "the same, saying nothing",
		func(i int) shot { return shot{path: article(i) + ".pdf"} }, [2]int{claimsPerDay, unlimited},
	},
	{
		"feed liar", "`/article/1?feed=rss2`, at a site that ignores the query",
		func(i int) shot {
			forms := []string{"%s?feed=rss2", "%s?page=backend"}
			return shot{path: fmt.Sprintf(forms[i%len(forms)], article(i))}
		}, [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"feed path liar", "`/article/1/feed`, `/feed/article/1`, at a site that answers any path with the page",
		func(i int) shot {
			forms := []string{"%s/feed", "/feed%s"}
			return shot{path: fmt.Sprintf(forms[i%len(forms)], article(i))}
		}, [2]int{claimsPerDay, claimsPerDay},
	},
	{
		"all lies", "claims, and pages as often as a claim is refused",
		func(i int) shot {
			return shot{path: article(i), fields: []string{"Sec-Fetch-Dest: empty"}, instead: []string{}}
		}, [2]int{claimsPerDay + perDay, claimsPerDay + perDay},
	},
	{
		"IPv6 /64 sprayer", "another address of one /64 each time",
		func(i int) shot { return shot{path: article(i), from: fmt.Sprintf("2001:db8:1:2::%x", i+1)} },
		[2]int{perDay, perDay},
	},
	{
		"IPv6 /48 sprayer", "another /64 of one /48 each time",
		func(i int) shot { return shot{path: article(i), from: fmt.Sprintf("2001:db8:1:%x::1", i%65536)} },
		[2]int{perNetwork, perNetwork},
	},
	{
		"IPv4 /24 sprayer", "another address of one /24 each time",
		func(i int) shot { return shot{path: article(i), from: fmt.Sprintf("198.51.100.%d", i%254+1)} },
		[2]int{perNetwork, perNetwork},
	},
	{
		"proxy pool", "another address of 25 networks each time",
		func(i int) shot { return shot{path: article(i), from: fmt.Sprintf("198.18.%d.7", i%25)} },
		[2]int{25 * perDay, 25 * perDay},
	},
}

// A result is what a persona got, by mode.
type result struct {
	persona *persona
	got     [2]int
}

func measure(t *testing.T) []result {
	results := make([]result, len(personas))
	t.Run("day", func(t *testing.T) {
		for i := range personas {
			p := &personas[i]
			results[i].persona = p
			for _, m := range []mode{through, beside} {
				t.Run(fmt.Sprintf("%s/%d", p.name, m), func(t *testing.T) {
					t.Parallel()
					got := newArena(t, m, policyText).day(p.next)
					results[i].got[m] = got
					switch most := p.promise[m]; {
					case most == unlimited && got != mostAsked:
						t.Errorf("%d pages of %d: Stile stops this after all; say so in the table", got, mostAsked)
					case most != unlimited && got > most:
						t.Errorf("%d pages in a day, and the policy promises at most %d", got, most)
					case most != unlimited && got < most:
						t.Errorf("%d pages in a day, less than the %d of the policy: people would get less, too", got, most)
					}
				})
			}
		}
	})
	return results
}

// TestSlowCrawler: 21 pages an hour stays under every hourly limit, and the day
// ends it at 200, also when each page meets a fresh instance.
func TestSlowCrawler(t *testing.T) {
	t.Parallel()
	a := newArena(t, through, policyText)
	for day := range 3 {
		got := 0
		for i := range 24 * slowPerHour {
			a.at(midnight.AddDate(0, 0, day).Add(time.Duration(i) * time.Hour / slowPerHour))
			if page, _ := a.fire(shot{path: article(i)}); page {
				got++
			}
		}
		if got != perDay {
			t.Errorf("day %d: %d of %d pages, want %d", day, got, 24*slowPerHour, perDay)
		}
	}
}

const slowPerHour = 21

// inVictimsName is how many requests TestVictim's attacker makes.
const inVictimsName = 1000

// TestVictim: nobody can use up another's budget or slow it down.
func TestVictim(t *testing.T) {
	t.Parallel()
	a := newArena(t, through, policyText)
	const victim = "192.0.2.1"
	for i := range inVictimsName {
		a.fire(shot{path: article(i), from: "203.0.113.9", fields: []string{"X-Forwarded-For: " + victim, "X-Real-Ip: " + victim, "True-Client-Ip: " + victim}})
	}
	if got := a.day(func(i int) shot { return shot{path: article(i), from: victim} }); got != perDay {
		t.Errorf("after %d requests in its name a victim gets %d pages, want %d", inVictimsName, got, perDay)
	}
}
