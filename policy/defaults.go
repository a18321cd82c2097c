package policy

import (
	"slices"
	"time"

	"github.com/stilehq/stile/core"
)

// defaults returns what holds where the file says nothing. Every default of the
// product's configuration is here; they are merged before anything is checked.
// No client source that trusts a header is among them.
func defaults() *File {
	return &File{
		Version: 1,
		Site:    "stile",
		Mode:    ModeEnforce,
		Scale:   1,
		Client:  Client{From: "remote", IPv6Prefix: 64, ASN: "none", ASNList: ASNListHosting},
		Count: Count{
			Methods:      []string{"GET"},
			Include:      []string{"/**"},
			Exclude:      slices.Clone(core.DefaultExcludeList),
			Claims:       ClaimsEnforce,
			ClaimsFactor: 20,
		},
		Exempt: Exempt{Crawlers: map[string]Treatment{
			"search":      {Exempt: true},
			"ai-search":   {},
			"ai-training": {},
			"ai-user":     {},
			"preview":     {Multiply: 10},
			"archive":     {},
			"monitor":     {},
			"seo":         {},
		}},
		Store: Store{
			Timeout:        150 * time.Millisecond,
			ConnectTimeout: 2 * time.Second,
			OnError:        "open",
			Keys:           KeysPlain,
			MaxKeys:        1_000_000,
			Control:        30 * time.Second,
		},
		Crawlers: Crawlers{MaxAge: 30 * 24 * time.Hour},
		Answer:   Answer{Headers: HeadersPrivateOnly},
		Log:      Log{IP: LogIPFull},
	}
}

// The defaults of the parts that a file may have none or several of.
func (b *Bucket) setDefaults() {
	*b = Bucket{Key: "address", Algorithm: "sliding-window-counter", Zone: "UTC", Day: DayCalendar}
}
func (c *Cookie) setDefaults() { *c = Cookie{Name: "__Host-stile"} }
func (j *JWT) setDefaults() {
	*j = JWT{Algorithms: []string{"RS256", "ES256"}, Header: "Authorization", Claim: "sub", Leeway: 30 * time.Second}
}
func (a *APIKeys) setDefaults() { *a = APIKeys{Header: "X-Api-Key"} }
func (k *APIKey) setDefaults()  { *k = APIKey{Tier: 1} }

// defaulter is a part with defaults of its own.
type defaulter interface{ setDefaults() }
