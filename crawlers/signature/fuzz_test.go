package signature

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// FuzzVerify: only the two published signatures can be verified, whatever the
// headers hold, since nobody here has the private key at hand.
func FuzzVerify(f *testing.F) {
	f.Add(dictInput, dictSig, dictAgent, "example.com")
	f.Add(textInput, textSig, textAgent, "EXAMPLE.com:443")
	f.Add(textInput+", "+strings.Replace(dictInput, "sig2", "sig1", 1), textSig+", "+strings.Replace(dictSig, "sig2", "sig1", 1), dictAgent, "example.com")
	f.Add(`a=("@authority";req "x" "@query-param";name="\"");tag="web-bot-auth";created=1;expires=2;keyid=""`, `a=:AA==:`, `a="https://signature-agent.test";type=directory`, "")
	f.Add(`a=%"x", b=?1, c=@12`, `a=:`, `"`, "[::1]:443")
	v := holding(f, Config{AllowTestKey: true, MaxLifetime: century}, vectorTime, testKey(f))
	known := map[string]bool{} // the signatures' own bytes, in base64
	for _, s := range []string{dictSig, textSig} {
		known[strings.Trim(strings.TrimPrefix(s, "sig2="), ":")] = true
	}
	f.Fuzz(func(t *testing.T, input, sig, agent, authority string) {
		m := message(input, sig, agent)
		m.Authority = authority
		r := v.Verify(m, vectorTime)
		if r.Outcome != r.Reason.outcome() {
			t.Fatalf("outcome %v for reason %q", r.Outcome, r.Reason)
		}
		if r.Outcome != Verified {
			return
		}
		found := false
		for k := range known {
			found = found || strings.Contains(sig, k)
		}
		if !found || r.Agent != "tester" || m.authority() != "example.com" {
			t.Fatalf("verified %+v for %q by %q", r, authority, sig)
		}
	})
}

// FuzzSplit: what is cut out of a field holds, read by itself, what the library
// reads in the whole.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{dictInput, textSig, dictAgent, `a=1,b="x,\"y\"";p=2 , c=("d" "e,f");g`, `a=%"x%22,y", b`, `a,a`, `a=1,`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		members, ok := split(s)
		d, err := httpsfv.UnmarshalDictionary([]string{strings.Trim(s, " \t")})
		if !ok || err != nil || len(d.Names()) != len(members) {
			return
		}
		for _, m := range members {
			got, fine := one(m)
			if m.raw == "" { // a bare key: true, which no field of the profile uses
				continue
			}
			whole, there := d.Get(m.name)
			if !fine || !there {
				continue
			}
			a, err1 := marshalMember(got)
			b, err2 := marshalMember(whole)
			if (err1 == nil) != (err2 == nil) || a != b {
				t.Fatalf("%q: member %q reads %q alone and %q in the whole", s, m.name, a, b)
			}
		}
	})
}

// FuzzDirectory: a directory gives between one and maxKeys keys under their own
// thumbprints, never the public test key, or an error.
func FuzzDirectory(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"` + testX + `"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","nbf":1735689600000,"exp":4889289600,"use":"sig"}]}`))
	f.Add([]byte(`{"keys":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, err := parseDirectory(b, false)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for id, k := range keys {
			if id == TestKeyID || id != Thumbprint(k.public) || k.notBefore < 0 || k.until < 0 {
				t.Fatalf("key %s: %+v", id, k)
			}
		}
	})
}
