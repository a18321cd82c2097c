package signature

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The public test key of RFC 9421 B.1.4 and the profile's published vectors.
const (
	testX     = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"
	dictInput = `sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`
	dictSig   = `sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:`
	dictAgent = `agent2="https://signature-agent.test"`
	textInput = `sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`
	textSig   = `sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:`
	textAgent = `"https://signature-agent.test"`
)

var vectorTime = time.Unix(1735689700, 0)

func message(input, sig, agent string) *Message {
	h := http.Header{}
	for name, v := range map[string]string{"Signature-Input": input, "Signature": sig, "Signature-Agent": agent} {
		if v != "" {
			h.Set(name, v)
		}
	}
	return &Message{Header: h, Method: "GET", Authority: "example.com", TLS: true, Path: "/"}
}

// holding returns a verifier of one agent with keys as if fetched at now.
func holding(tb testing.TB, cfg Config, now time.Time, keys ...ed25519.PublicKey) *Verifier {
	tb.Helper()
	if cfg.Agents == nil {
		cfg.Agents = []Agent{{Name: "tester", Class: "ai-user", Directory: "https://signature-agent.test/.well-known/http-message-signatures-directory"}}
	}
	v, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	set := &keySet{byID: map[string]key{}, confirmed: now}
	for _, k := range keys {
		set.byID[Thumbprint(k)] = key{public: k}
	}
	v.agents[0].keys.Store(set)
	return v
}

func testKey(tb testing.TB) ed25519.PublicKey {
	tb.Helper()
	x, err := base64.RawURLEncoding.DecodeString(testX)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

const century = 100 * 366 * 24 * time.Hour

func TestPublishedVectors(t *testing.T) {
	t.Parallel()
	if got := Thumbprint(testKey(t)); got != TestKeyID {
		t.Fatalf("thumbprint %s, want %s", got, TestKeyID)
	}
	v := holding(t, Config{AllowTestKey: true, MaxLifetime: century}, vectorTime, testKey(t))
	for name, m := range map[string]*Message{
		"dictionary": message(dictInput, dictSig, dictAgent),
		"text":       message(textInput, textSig, textAgent),
	} {
		r := v.Verify(m, vectorTime)
		if r.Outcome != Verified || r.Agent != "tester" || r.KeyID != TestKeyID || r.Nonce == "" {
			t.Errorf("%s: %+v, want verified", name, r)
		}
	}
	production := holding(t, Config{MaxLifetime: century}, vectorTime, testKey(t))
	if r := production.Verify(message(textInput, textSig, textAgent), vectorTime); r.Outcome != Invalid || r.Reason != ReasonTestKey {
		t.Errorf("test key in production: %+v", r)
	}
}

func TestVectorsRefused(t *testing.T) {
	t.Parallel()
	v := holding(t, Config{AllowTestKey: true, MaxLifetime: century}, vectorTime, testKey(t))
	swap := strings.NewReplacer(`;keyid="`+TestKeyID+`";alg="ed25519"`, `;alg="ed25519";keyid="`+TestKeyID+`"`)
	for _, c := range []struct {
		name    string
		m       *Message
		at      time.Time
		outcome Outcome
		reason  Reason
	}{
		{"nothing signed", message("", "", ""), vectorTime, Unverified, ReasonNone},
		{"another profile", message(strings.Replace(textInput, "web-bot-auth", "other", 1), textSig, textAgent), vectorTime, Unverified, ReasonNone},
		{"parameters in another order", message(swap.Replace(textInput), textSig, textAgent), vectorTime, Invalid, ReasonFalse},
		{"another host", func() *Message { m := message(textInput, textSig, textAgent); m.Authority = "example.org"; return m }(), vectorTime, Invalid, ReasonFalse},
		{"agent header gone", message(textInput, textSig, ""), vectorTime, Unverified, ReasonNoAgent},
		{"agent not on the list", message(textInput, textSig, `"https://evil.example"`), vectorTime, Unverified, ReasonUnknownAgent},
		{"agent by http", message(textInput, textSig, `"http://signature-agent.test"`), vectorTime, Unverified, ReasonUnknownAgent},
		{"agent that is a number", message(textInput, textSig, `7`), vectorTime, Invalid, ReasonMalformed},
		{"agent of another type", message(dictInput, dictSig, dictAgent+`;type=cimd`), vectorTime, Unverified, ReasonUnsupported},
		{"member not there", message(dictInput, dictSig, `agent1="https://signature-agent.test"`), vectorTime, Invalid, ReasonMalformed},
		{"expired", message(textInput, textSig, textAgent), vectorTime.Add(2 * time.Hour), Invalid, ReasonExpired},
		{"not yet", message(textInput, textSig, textAgent), vectorTime.Add(-time.Hour), Invalid, ReasonEarly},
		{"signature gone", message(textInput, "", textAgent), vectorTime, Invalid, ReasonMalformed},
		{"signature of another label", message(textInput, strings.Replace(textSig, "sig2", "sig1", 1), textAgent), vectorTime, Invalid, ReasonMalformed},
		{"signature cut", message(textInput, `sig2=:AAAA:`, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"signature of the other vector", message(textInput, dictSig, textAgent), vectorTime, Invalid, ReasonFalse},
		{"label twice", message(textInput+", "+textInput, textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"garbage", message(`sig2=((((`, textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"8 KB", message(textInput+strings.Repeat(" ", maxHeader)+",a=1", textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"another algorithm", message(strings.Replace(textInput, "ed25519", "hmac-sha256", 1), textSig, textAgent), vectorTime, Invalid, ReasonAlgorithm},
		{"agent unsigned", message(strings.Replace(textInput, ` "signature-agent"`, ``, 1), textSig, textAgent), vectorTime, Invalid, ReasonNotCovered},
		{"authority unsigned", message(strings.Replace(textInput, `"@authority" `, ``, 1), textSig, textAgent), vectorTime, Invalid, ReasonNotCovered},
		{"component twice", message(strings.Replace(textInput, `"@authority"`, `"@authority" "@authority"`, 1), textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"unknown component", message(strings.Replace(textInput, `"@authority"`, `"@authority" "@query-param";name="a"`, 1), textSig, textAgent), vectorTime, Unverified, ReasonUnsupported},
		{"signed field absent", message(strings.Replace(textInput, `"@authority"`, `"@authority" "x-absent"`, 1), textSig, textAgent), vectorTime, Invalid, ReasonNotCovered},
		{"no expiry", message(strings.Replace(textInput, `;expires=1735693200`, ``, 1), textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"no key id", message(strings.Replace(textInput, `;keyid="`+TestKeyID+`"`, ``, 1), textSig, textAgent), vectorTime, Invalid, ReasonMalformed},
		{"unknown key", message(strings.Replace(textInput, TestKeyID, "abc", 1), textSig, textAgent), vectorTime, Unverified, ReasonUnknownKey},
		{"keys too old", message(dictInput, dictSig, dictAgent), vectorTime.Add(8 * 24 * time.Hour), Unverified, ReasonNoKeys},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := v.Verify(c.m, c.at); r.Outcome != c.outcome || r.Reason != c.reason {
				t.Errorf("%v (%v), want %v (%v)", r.Outcome, r.Reason, c.outcome, c.reason)
			}
		})
	}
	short := holding(t, Config{AllowTestKey: true}, vectorTime, testKey(t))
	if r := short.Verify(message(dictInput, dictSig, dictAgent), vectorTime); r.Reason != ReasonLifetime {
		t.Errorf("valid for a century: %+v", r)
	}
	other := holding(t, Config{AllowTestKey: true, Hosts: []string{"www.example.com"}}, vectorTime, testKey(t))
	if r := other.Verify(message(textInput, textSig, textAgent), vectorTime); r.Reason != ReasonForeignHost {
		t.Errorf("replayed from another host: %+v", r)
	}
}

// sign makes a message as a signer of the profile would, over any components.
func sign(private ed25519.PrivateKey, m *Message, components string, created, expires int64) {
	public := private.Public().(ed25519.PublicKey)
	params := fmt.Sprintf(`(%s);created=%d;expires=%d;keyid="%s";tag="web-bot-auth"`, components, created, expires, Thumbprint(public))
	h := m.Header.(http.Header)
	h.Set("Signature-Input", "s="+params)
	in, _, reason := parseInput(member{"s", params})
	if reason != "" {
		panic(reason)
	}
	base, reason := m.base(in.covered, params)
	if reason != "" {
		panic(reason)
	}
	h.Set("Signature", "s=:"+base64.StdEncoding.EncodeToString(ed25519.Sign(private, base))+":")
}

// TestBase checks every component against lines written by hand.
func TestBase(t *testing.T) {
	t.Parallel()
	m := message("", "", `a="https://x.test", b="https://y.test";type="directory"`)
	m.Authority, m.Path, m.RawQuery = "Example.COM:443", "/a%20b", "q=1&r"
	h := m.Header.(http.Header)
	h.Add("X-Two", " one ")
	h.Add("X-Two", "two\t")
	in, _, reason := parseInput(member{"s", `("@method" "@authority" "@scheme" "@target-uri" "@request-target" "@path" "@query" "x-two" "signature-agent";key="b");created=1;expires=2;keyid="k";tag="web-bot-auth"`})
	if reason != "" {
		t.Fatal(reason)
	}
	base, reason := m.base(in.covered, in.raw)
	if reason != "" {
		t.Fatal(reason)
	}
	want := strings.Join([]string{
		`"@method": GET`, `"@authority": example.com`, `"@scheme": https`, `"@target-uri": https://example.com/a%20b?q=1&r`,
		`"@request-target": /a%20b?q=1&r`, `"@path": /a%20b`, `"@query": ?q=1&r`, `"x-two": one, two`,
		`"signature-agent";key="b": "https://y.test";type="directory"`, `"@signature-params": ` + in.raw,
	}, "\n")
	if string(base) != want {
		t.Errorf("base\n%s\nwant\n%s", base, want)
	}
}

func TestFieldsCannotForgeLines(t *testing.T) {
	t.Parallel()
	m := message("", "", textAgent)
	m.Path = "/x\n\"@authority\": other.example"
	if _, reason := m.base([]component{{id: `"@path"`, name: "@path"}}, "()"); reason != ReasonMalformed {
		t.Errorf("a line break in a path: %q", reason)
	}
}

func TestTwoAgentsDoNotShareKeys(t *testing.T) {
	t.Parallel()
	public, private, _ := ed25519.GenerateKey(nil)
	v := holding(t, Config{Agents: []Agent{
		{Name: "one", Directory: "https://one.test/keys"}, {Name: "two", Directory: "https://two.test/keys"},
	}}, vectorTime, public)
	v.agents[1].keys.Store(&keySet{byID: map[string]key{}, confirmed: vectorTime})
	at := vectorTime.Unix()
	for agent, want := range map[string]Reason{`"https://one.test"`: ReasonVerified, `"https://two.test"`: ReasonUnknownKey} {
		m := message("", "", agent)
		sign(private, m, `"@target-uri" "signature-agent"`, at, at+60)
		if r := v.Verify(m, vectorTime); r.Reason != want {
			t.Errorf("%s: %v, want %v", agent, r.Reason, want)
		}
	}
}

func TestOneGoodSignatureAmongOthers(t *testing.T) {
	t.Parallel()
	public, private, _ := ed25519.GenerateKey(nil)
	v := holding(t, Config{}, vectorTime, public)
	m := message("", "", textAgent)
	sign(private, m, `"@authority" "signature-agent"`, vectorTime.Unix(), vectorTime.Unix()+60)
	h := m.Header.(http.Header)
	h.Set("Signature-Input", `other=("@method");created=1;tag="x", `+strings.Replace(textInput, TestKeyID, "gone", 1)+", "+h.Get("Signature-Input"))
	if r := v.Verify(m, vectorTime); r.Outcome != Verified {
		t.Errorf("%+v", r)
	}
}

func TestConfigFaults(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Agents: []Agent{
		{Name: "", Directory: "https://a.test/k"}, {Name: "b", Directory: "http://b.test/k"}, {Name: "c", Directory: "https://a.test/other"},
		{Name: "d", Directory: "https://d.test/k", SignatureAgents: []string{"https://u:p@d.test"}},
	}})
	if err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("want four faults, got %v", err)
	}
	if _, err := New(Config{Agents: Known()}); err != nil {
		t.Error(err)
	}
}

func BenchmarkVerify(b *testing.B) {
	public, private, _ := ed25519.GenerateKey(nil)
	v := holding(b, Config{}, vectorTime, public)
	m := message("", "", textAgent)
	sign(private, m, `"@authority" "signature-agent"`, vectorTime.Unix(), vectorTime.Unix()+60)
	unsigned := message("", "", "")
	b.Run("verified", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v.Verify(m, vectorTime).Outcome != Verified {
				b.Fatal("not verified")
			}
		}
	})
	b.Run("unsigned", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if v.Verify(unsigned, vectorTime).Outcome != Unverified {
				b.Fatal("verified")
			}
		}
	})
}
