package policy

import (
	"net/netip"
	"path/filepath"
	"time"
)

// A File is the whole effective configuration: the policy file with defaults
// merged and environment overrides applied. It is read-only once parsed and
// then safe for concurrent use. The yaml tags are the file's keys; docs/policy.md
// has their meaning, unit and default.
type File struct {
	Version  int              `yaml:"version"`
	Site     string           `yaml:"site"`
	Mode     Mode             `yaml:"mode"`
	Scale    float64          `yaml:"scale"`
	Contact  string           `yaml:"contact"`
	Client   Client           `yaml:"client"`
	Count    Count            `yaml:"count"`
	Buckets  []Bucket         `yaml:"buckets"`
	Measured *Measured        `yaml:"measured"` // nil = not measured
	Identify Identify         `yaml:"identify"`
	Exempt   Exempt           `yaml:"exempt"`
	Crawlers Crawlers         `yaml:"crawlers"`
	Store    Store            `yaml:"store"`
	Answer   Answer           `yaml:"answer"`
	Log      Log              `yaml:"log"`
	Doctor   Doctor           `yaml:"doctor"`
	name     string           // as given to Parse
	origin   map[string]place // where each value that is no default came from
}

// Client says where the client's address comes from.
type Client struct {
	From           ClientFrom     `yaml:"from"`
	TrustedHops    int            `yaml:"trusted_hops"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies"`
	Peers          []netip.Prefix `yaml:"peers"`
	PeerSecret     PeerSecret     `yaml:"peer_secret"`
	IPv6Prefix     int            `yaml:"ipv6_prefix"`
	ASN            ASNFrom        `yaml:"asn"`
	ASNList        string         `yaml:"asn_list"` // one of the two words, or a path; see [File.Path]
}

// PeerSecret proves a peer by a header instead of by its address.
type PeerSecret struct {
	Header  string  `yaml:"header"` // canonical; empty = not used
	Secrets Secrets `yaml:"secrets"`
}

// Count says which requests are navigations.
type Count struct {
	Methods      []string   `yaml:"methods"`
	Include      []string   `yaml:"include"`
	Exclude      []string   `yaml:"exclude"`
	Claims       ClaimsMode `yaml:"claims"`
	ClaimsFactor int64      `yaml:"claims_factor"`
}

// A Bucket is a named limit over one key.
type Bucket struct {
	Name       string        `yaml:"name"`
	Key        KeyWord       `yaml:"key"`
	Algorithm  Algorithm     `yaml:"algorithm"`
	Limit      int64         `yaml:"limit"`
	Window     time.Duration `yaml:"window"`
	Burst      int64         `yaml:"burst"`
	Zone       string        `yaml:"zone"`
	Day        DayStart      `yaml:"day"`
	FlushEvery time.Duration `yaml:"flush_every"`
	Paths      []string      `yaml:"paths"`
}

// Measured is what `stile size` saw when it proposed the limits. Nothing is
// decided by it, but limits that contradict it are warned of.
type Measured struct {
	Period           string `yaml:"period"`              // FIRST/LAST, dates
	HumanP999PerHour int64  `yaml:"human_p999_per_hour"` // navigations; 0 = unknown
	HumanP999PerDay  int64  `yaml:"human_p999_per_day"`
	AbuserPerHour    int64  `yaml:"abuser_per_hour"`
	AbuserPerDay     int64  `yaml:"abuser_per_day"`
}

// Identify says how clients prove who they are; nil parts are not used.
type Identify struct {
	Cookie  *Cookie  `yaml:"cookie"`
	JWT     *JWT     `yaml:"jwt"`
	APIKeys *APIKeys `yaml:"api_keys"`
}

// Cookie configures the visitor cookie that Stile signs.
type Cookie struct {
	Name    string  `yaml:"name"`
	Secrets Secrets `yaml:"secrets"` // the first signs, both verify
}

// JWT configures signed-in users.
type JWT struct {
	JWKS       string        `yaml:"jwks"`      // URL
	JWKSFile   string        `yaml:"jwks_file"` // path; see [File.Path]
	Issuer     string        `yaml:"issuer"`
	Audience   string        `yaml:"audience"`
	Algorithms []string      `yaml:"algorithms"`
	Header     string        `yaml:"header"` // canonical; empty when Cookie is set
	Cookie     string        `yaml:"cookie"`
	Claim      string        `yaml:"claim"`
	Leeway     time.Duration `yaml:"leeway"`
}

// APIKeys configures API keys, which are stored as hashes only.
type APIKeys struct {
	Header string   `yaml:"header"` // canonical
	File   string   `yaml:"file"`   // path; see [File.Path] and [ParseAPIKeys]
	Keys   []APIKey `yaml:"keys"`
}

// An APIKey is one known key.
type APIKey struct {
	Hash string `yaml:"hash"` // SHA-256 of the key, 64 lower-case hex digits
	Name string `yaml:"name"` // what counters and logs call it
	Tier int64  `yaml:"tier"` // multiplies the limits; 1 = ordinary
}

// Exempt says who is not, or not ordinarily, limited.
type Exempt struct {
	Networks []Network            `yaml:"networks"`
	Crawlers map[string]Treatment `yaml:"crawlers"` // every class of [CrawlerClasses]
}

// A Network is one configured address range.
type Network struct {
	CIDR     netip.Prefix `yaml:"cidr"`
	Reason   string       `yaml:"reason"`
	Until    Date         `yaml:"until"`
	Multiply int64        `yaml:"multiply"` // 0 = exempt
}

// Store configures how the store is used; which store it is says its URL.
type Store struct {
	Timeout         time.Duration `yaml:"timeout"`
	ConnectTimeout  time.Duration `yaml:"connect_timeout"`
	OnError         OnError       `yaml:"on_error"`
	Keys            KeyNames      `yaml:"keys"`
	KeySecrets      Secrets       `yaml:"key_secrets"`
	MaxOpsPerSecond int64         `yaml:"max_ops_per_second"`
	MaxOpsPerDay    int64         `yaml:"max_ops_per_day"`
	MaxKeys         int64         `yaml:"max_keys"`
	Control         time.Duration `yaml:"control"`
}

// Answer configures the 429 and the RateLimit fields.
type Answer struct {
	Headers HeadersMode `yaml:"headers"`
	HTML    string      `yaml:"html"` // path of a template; see [File.Path]
	JSON    string      `yaml:"json"`
}

// Log configures the hit log.
type Log struct {
	IP     LogIP   `yaml:"ip"`
	Secret Secrets `yaml:"secret"` // exactly one value when IP is hmac
}

// Name returns the name that the policy was parsed under.
func (f *File) Name() string { return f.name }

// Path resolves a path of the policy file: relative paths begin at the policy
// file's own folder. The empty path stays empty.
func (f *File) Path(p string) string {
	if p == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(filepath.Dir(f.name), p)
}
