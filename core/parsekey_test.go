package core

import (
	"testing"

	"github.com/stilehq/stile/core/rows"
)

func TestParseKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"203.0.113.9":                   "address 203.0.113.9",
		"address 203.0.113.9":           "address 203.0.113.9",
		"  address   203.0.113.9 ":      "address 203.0.113.9",
		"address ::ffff:203.0.113.9":    "address 203.0.113.9",
		"address 2001:db8:1:2:3::4":     "address 2001:db8:1:2::/64",
		"2001:db8:1:2::/64":             "address 2001:db8:1:2::/64",
		"address 2001:db8:1:2::/64":     "address 2001:db8:1:2::/64",
		"address unidentified":          "address unidentified",
		"203.0.113.0/24":                "network 203.0.113.0/24",
		"network 203.0.113.9":           "network 203.0.113.0/24",
		"network 2001:db8:1::/48":       "network 2001:db8:1::/48",
		"user alice":                    "user alice",
		"user alice and bob":            "user alice and bob",
		"cookie AbC-_9":                 "cookie AbC-_9",
		"api-key partner":               "api-key partner",
		"asn 64500":                     "asn 64500",
		"header X-Ja4:t13d1516h2":       "header X-Ja4:t13d1516h2",
		"global":                        "global ",
		"":                              "",
		"address":                       "",
		"global x":                      "",
		"alice":                         "",
		"address 203.0.113.0/24":        "",
		"network 203.0.113.0/25":        "",
		"network 203.0.113.9/24":        "",
		"address 203.0.113.256":         "",
		"address fe80::1%eth0, 1.2.3.4": "",
	} {
		k, err := ParseKey(text, 0)
		if got := k.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	if k, err := ParseKey("2001:db8:1:200::/56", 56); err != nil || k.String() != "address 2001:db8:1:200::/56" {
		t.Errorf("with households: %v, %v", k, err)
	}
	// What counting makes of an address is what is parsed.
	for _, a := range []string{"203.0.113.9", "2001:db8:1:2:3::4"} {
		if k, err := ParseKey(a, 0); err != nil || k != addressKey(a) {
			t.Errorf("%s: %+v, %v; counted as %+v", a, k, err, addressKey(a))
		}
	}
	if k, err := ParseKey("global", 0); err != nil || k != (Key{Kind: rows.Global}) {
		t.Errorf("global: %+v, %v", k, err)
	}
}
