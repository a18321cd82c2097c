package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	keys := must(NewAPIKeys("X-Api-Key", []APIKey{{Hash: hashOf("alpha"), Name: "one", Tier: 5}, {Hash: strings.ToUpper(hashOf("beta")), Name: "two"}}))
	for sent, want := range map[string]core.Identity{
		"alpha":                    {Kind: rows.APIKey, ID: "one", Tier: 5, Proof: "api-key"},
		"beta":                     {Kind: rows.APIKey, ID: "two", Proof: "api-key"},
		"":                         {},
		"alph":                     {},
		"alpha\x00":                {},
		" alpha":                   {},
		"one":                      {},
		hashOf("alpha"):            {}, // whoever read the file has no key
		strings.Repeat("a", 513):   {},
		strings.Repeat("a", 1<<20): {},
	} {
		if got := keys.Identify(bearing("X-Api-Key", sent, morning), client); got != want {
			t.Errorf("%.20q: %+v, want %+v", sent, got, want)
		}
	}
	r := &core.Request{Header: http.Header{"X-Api-Key": {"alpha", "alpha"}}}
	if got := keys.Identify(r, client); got.Kind != 0 {
		t.Errorf("two fields: %+v", got)
	}
	if got := keys.Identify(&core.Request{}, client); got.Kind != 0 {
		t.Errorf("no header at all: %+v", got)
	}
}

func TestAPIKeyConfig(t *testing.T) {
	t.Parallel()
	_, err := NewAPIKeys("", []APIKey{
		{Hash: "plain-text-key", Name: "a"}, {Hash: hashOf("b")}, {Hash: hashOf("c"), Name: "c", Tier: -1}, {Hash: hashOf("c"), Name: "d"},
	})
	for _, want := range []string{"header field", "key 0: the hash", "key 1: a name of 0", "key 2: tier -1", "key 3 is listed twice"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "plain-text-key") {
		t.Errorf("the error tells the key: %v", err)
	}
}

func TestPlatformUser(t *testing.T) {
	t.Parallel()
	var none http.Header
	if h := WithPlatformUser(none, ""); h == nil || h.Values("A") != nil {
		t.Error("an empty user changed the header")
	}
	h := WithPlatformUser(http.Header{"A": {"b"}}, "alice")
	if v := h.Values("A"); len(v) != 1 || v[0] != "b" {
		t.Errorf("the fields behind the user: %v", v)
	}
	if v := WithPlatformUser(nil, "alice").Values("A"); v != nil {
		t.Errorf("no fields: %v", v)
	}
	for header, want := range map[core.Header]string{
		WithPlatformUser(nil, "alice"): "alice", WithPlatformUser(nil, strings.Repeat("a", 257)): "", WithPlatformUser(nil, "\xff"): "",
	} {
		if got := (PlatformUsers{}).Identify(&core.Request{Header: header}, client); got.ID != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}
