package policy

import (
	"net/textproto"
	"strings"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// Mode says whether limits are enforced.
type Mode string

// The modes.
const (
	ModeEnforce Mode = "enforce" // refuse with 429
	ModeObserve Mode = "observe" // decide, charge and log the same, never refuse
	ModeOff     Mode = "off"     // let everything through, counting and logging nothing
)

func (Mode) words() []string {
	return []string{string(ModeEnforce), string(ModeObserve), string(ModeOff)}
}

// The words of client.asn_list; anything else is a path.
const (
	ASNListHosting = "hosting" // the built-in list of hosting networks
	ASNListAll     = "all"     // every network
)

// ClaimsMode is count.claims.
type ClaimsMode string

// The claims modes.
const (
	ClaimsEnforce ClaimsMode = "enforce"
	ClaimsLog     ClaimsMode = "log"
	ClaimsOff     ClaimsMode = "off"
)

func (ClaimsMode) words() []string { return []string{"enforce", "log", "off"} }

func (m ClaimsMode) core() core.ClaimsMode {
	switch m {
	case ClaimsLog:
		return core.ClaimsLog
	case ClaimsOff:
		return core.ClaimsOff
	}
	return core.ClaimsEnforce
}

// Algorithm is buckets[].algorithm, spelt as [core.AlgorithmKind] prints it.
type Algorithm string

// Kind returns core's constant; 0 for an unknown word.
func (a Algorithm) Kind() core.AlgorithmKind {
	for k := core.FixedWindow; k <= core.GCRA; k++ {
		if k.String() == string(a) {
			return k
		}
	}
	return 0
}

func (Algorithm) words() (w []string) {
	for k := core.FixedWindow; k <= core.GCRA; k++ {
		w = append(w, k.String())
	}
	return w
}

// DayStart is buckets[].day.
type DayStart string

// Where a window of a day begins.
const (
	DayCalendar DayStart = "calendar" // at midnight of the bucket's zone
	DayVisitor  DayStart = "visitor"  // at the hour of the cookie's issue
)

func (DayStart) words() []string { return []string{"calendar", "visitor"} }

// OnError is store.on_error.
type OnError string

func (OnError) words() []string { return []string{"open", "closed", "local"} }

// Mode returns core's constant.
func (o OnError) Mode() core.FailureMode {
	switch o {
	case "closed":
		return core.FailClosed
	case "local":
		return core.FailLocal
	}
	return core.FailOpen
}

// KeyNames is store.keys.
type KeyNames string

// How keys are named in the store.
const (
	KeysPlain KeyNames = "plain"
	KeysHMAC  KeyNames = "hmac"
)

func (KeyNames) words() []string { return []string{"plain", "hmac"} }

// HeadersMode is answer.headers.
type HeadersMode string

// When responses carry the RateLimit fields.
const (
	HeadersPrivateOnly HeadersMode = "private-only" // never on what a shared cache may store
	HeadersAlways      HeadersMode = "always"
	HeadersLimitedOnly HeadersMode = "limited-only" // on 429 only
)

func (HeadersMode) words() []string { return []string{"private-only", "always", "limited-only"} }

// LogIP is log.ip.
type LogIP string

// How the hit log writes addresses.
const (
	LogIPFull   LogIP = "full"
	LogIPPrefix LogIP = "prefix"
	LogIPHMAC   LogIP = "hmac"
)

func (LogIP) words() []string { return []string{"full", "prefix", "hmac"} }

// ClientFrom is client.from: remote, xff, platform or header:NAME.
type ClientFrom string

func (ClientFrom) words() []string    { return []string{"remote", "xff", "platform", "header:NAME"} }
func (f ClientFrom) argument() string { return argument(string(f)) }

// Header returns the canonical field name of header:NAME, else "".
func (f ClientFrom) Header() string {
	if name, ok := strings.CutPrefix(string(f), "header:"); ok {
		return textproto.CanonicalMIMEHeaderKey(name)
	}
	return ""
}

func (f ClientFrom) core() core.ClientFrom {
	switch {
	case f == "xff":
		return core.FromXFF
	case f == "platform":
		return core.FromPlatform
	case f.Header() != "":
		return core.FromHeader
	}
	return core.FromRemote
}

// ASNFrom is client.asn: none, header:NAME or file:PATH.
type ASNFrom string

func (ASNFrom) words() []string    { return []string{"none", "header:NAME", "file:PATH"} }
func (f ASNFrom) argument() string { return argument(string(f)) }

// Header returns the canonical field name of header:NAME, else "".
func (f ASNFrom) Header() string { return ClientFrom(f).Header() }

// File returns the path of file:PATH, else "". See [File.Path].
func (f ASNFrom) File() string {
	p, _ := strings.CutPrefix(string(f), "file:")
	if p == string(f) {
		return ""
	}
	return p
}

// KeyWord is buckets[].key: a kind of key, or header:NAME.
type KeyWord string

func (k KeyWord) argument() string { return argument(string(k)) }

func (KeyWord) words() (w []string) {
	for k := rows.Address; k <= rows.Global; k++ {
		if k == rows.Header {
			w = append(w, "header:NAME")
			continue
		}
		w = append(w, k.String())
	}
	return w
}

// Kind returns what the bucket counts; 0 for an unknown word.
func (k KeyWord) Kind() core.Kind {
	if k.Header() != "" {
		return rows.Header
	}
	for kind := rows.Address; kind <= rows.Global; kind++ {
		if kind.String() == string(k) && kind != rows.Header {
			return kind
		}
	}
	return 0
}

// Header returns the canonical field name of header:NAME, else "".
func (k KeyWord) Header() string { return ClientFrom(k).Header() }

// Treatment is what a verified crawler of a class gets.
type Treatment struct {
	Exempt   bool
	Multiply int64 // 0 = ordinary; else the limits are multiplied
}

// CrawlerClasses lists the keys of exempt.crawlers in the order in which they
// are documented and shown.
func CrawlerClasses() []string {
	return []string{"search", "ai-search", "ai-training", "ai-user", "preview", "archive", "monitor", "seo"}
}

// argument returns what follows the colon of header:NAME or file:PATH.
func argument(s string) string {
	_, arg, _ := strings.Cut(s, ":")
	return arg
}
