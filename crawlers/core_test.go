package crawlers

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/crawlers/signature"
)

// signedBy returns headers of a request to host, signed as the profile asks.
func signedBy(private ed25519.PrivateKey, agent, host string, at time.Time) http.Header {
	public := private.Public().(ed25519.PublicKey)
	params := fmt.Sprintf(`("@authority" "@path" "signature-agent");created=%d;expires=%d;keyid="%s";alg="ed25519";tag="web-bot-auth"`,
		at.Unix(), at.Unix()+60, signature.Thumbprint(public))
	base := fmt.Sprintf("\"@authority\": %s\n\"@path\": /a%%20b\n\"signature-agent\": %q\n\"@signature-params\": %s", host, agent, params)
	return http.Header{"Signature-Agent": {fmt.Sprintf("%q", agent)}, "Signature-Input": {"s=" + params},
		"Signature": {"s=:" + base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(base))) + ":"}}
}

func TestVerifyCrawler(t *testing.T) {
	t.Parallel()
	public, private, _ := ed25519.GenerateKey(nil)
	dir := newListServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/http-message-signatures-directory+json")
		_, _ = io.WriteString(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"`+base64.RawURLEncoding.EncodeToString(public)+`"}]}`)
	})
	k := newClock(day)
	sigs, err := signature.New(signature.Config{Transport: dir.Client().Transport, Now: k.now,
		Agents: []signature.Agent{{Name: "ChatGPT-agent", Class: string(AIUser), Directory: dir.URL + "/keys"}}})
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, Config{NoShipped: true, Catalogue: withoutURLs(), Now: k.now, Signatures: sigs,
		Snapshots: []Snapshot{held(map[string][]string{"google-common": {"66.249.64.0/19"}})}})
	crawler, client := netip.MustParseAddr("66.249.66.1"), netip.MustParseAddr("45.55.1.2")
	ask := func(h core.Header, addr netip.Addr) core.Crawler {
		return v.VerifyCrawler(&core.Request{Method: "GET", Host: "www.example.com", Path: "/a b", Header: h, Time: k.now()}, addr)
	}
	signed := signedBy(private, dir.URL, "www.example.com", day)
	if got, want := ask(signed, client), (core.Crawler{Name: "ChatGPT-agent", Class: "ai-user", Claimed: true}); got != want {
		t.Errorf("before the keys are had: %+v", got)
	}
	if !v.Due() {
		t.Fatal("the directory is not due")
	}
	if err := v.Refresh(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	both := signedBy(private, dir.URL, "www.example.com", day)
	both.Set("User-Agent", uaGooglebot)
	for _, c := range []struct {
		name string
		h    core.Header
		addr netip.Addr
		want core.Crawler
	}{
		{"no header at all", nil, client, core.Crawler{}},
		{"browser", http.Header{"User-Agent": {uaChrome}}, client, core.Crawler{}},
		{"Googlebot", http.Header{"User-Agent": {uaGooglebot}}, crawler, core.Crawler{Name: "Googlebot", Class: "search", Claimed: true, Verified: true, Proof: "range"}},
		{"a claim", http.Header{"User-Agent": {uaGooglebot}}, client, core.Crawler{Name: "Googlebot", Class: "search", Claimed: true}},
		{"signed", signed, client, core.Crawler{Name: "ChatGPT-agent", Class: "ai-user", Claimed: true, Verified: true, Proof: "signature"}},
		{"signed for another host", signedBy(private, dir.URL, "evil.example", day), client, core.Crawler{Name: "ChatGPT-agent", Class: "ai-user", Claimed: true}},
		{"a true signature beats a false claim", both, client, core.Crawler{Name: "ChatGPT-agent", Class: "ai-user", Claimed: true, Verified: true, Proof: "signature"}},
		{"the range needs no signature", both, crawler, core.Crawler{Name: "Googlebot", Class: "search", Claimed: true, Verified: true, Proof: "range"}},
		{"an agent that nobody listed", signedBy(private, "https://other.example", "www.example.com", day), client, core.Crawler{}},
	} {
		if got := ask(c.h, c.addr); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := (&Verifier{}).VerifySignature(&signature.Message{}, day); got != (Match{}) {
		t.Errorf("without signatures: %+v", got)
	}
}

func TestVerifyCrawlerDoesNotAllocate(t *testing.T) {
	sigs, err := signature.New(signature.Config{Agents: signature.Known()})
	if err != nil {
		t.Fatal(err)
	}
	v := newVerifier(t, Config{Signatures: sigs})
	r := &core.Request{Method: "GET", Host: "www.example.com", Path: "/", Header: http.Header{"User-Agent": {uaChrome}}, Time: day}
	addr := netip.MustParseAddr("45.55.1.2")
	if n := testing.AllocsPerRun(100, func() { v.VerifyCrawler(r, addr) }); n != 0 {
		t.Errorf("%v allocations for a browser, want 0", n)
	}
}
