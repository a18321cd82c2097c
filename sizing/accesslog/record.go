package accesslog

import (
	"net/netip"
	"time"
)

// A Record is one request as a log line told it. The parser reuses the struct:
// it is valid until the next line is parsed. The strings are immutable, but most
// of them are cut out of a block of input (256 KiB or more), so a caller that
// keeps one keeps its block alive: use strings.Clone for anything that outlives
// the call.
//
// A field is empty when the format does not carry it, and also when the line
// says "-"; Has tells the two apart.
type Record struct {
	// Time is the request's time in UTC. Servers differ in whether they mean its
	// start or its end; the difference is the request's duration.
	Time time.Time
	// Client is the visitor's address: unmapped, without zone and port. It is
	// not valid when the line holds none (a host name, a socket, a digest, "-");
	// ClientRaw then says what stood there.
	Client    netip.Addr
	ClientRaw string

	Method string // as written; "GET" when the format has no method (see HasMethod)
	Host   string // virtual host or Host header, without port
	Path   string // path of the request target as sent: not decoded, not cleaned
	Query  string // what follows the first "?", without it
	Status int    // 0: none (client went away, handler wrote nothing)
	Bytes  int64  // bytes sent, with or without headers as the format has it; 0: none

	UserAgent       string
	Referer         string
	Accept          string
	SecFetchDest    string
	SecFetchUser    string
	SecPurpose      string // Sec-Purpose, or the older Purpose and X-Moz
	UpgradeInsecure string // Upgrade-Insecure-Requests
	ContentType     string // of the answer

	Cache     Cache
	RequestID string // the platform's own id, equal in all rows of one request
	ASN       uint32 // 0: not told
	Duration  time.Duration
	Upgrade   bool // a WebSocket

	Format Format
	Has    Signal

	// Of Stile's own hit log; empty in every other format.
	Event, Reason, KeyType, Key string
	// LeftOut is how many more requests like this one the hit log did not write
	// one by one: the line stands for 1 + LeftOut.
	LeftOut int64
}

// Target returns path and query as one request target.
func (r *Record) Target() string {
	if r.Query == "" {
		return r.Path
	}
	return r.Path + "?" + r.Query
}

// A Signal is a set of facts that a line carries, be they empty or not.
type Signal uint16

// The signals that matter for telling a page from anything else.
const (
	HasMethod Signal = 1 << iota
	HasHost
	HasUserAgent
	HasReferer
	HasAccept
	HasSecFetch // Sec-Fetch-Dest; with it a navigation is known, not guessed
	HasSecPurpose
	HasContentType
	HasCache
	HasDuration
	HasASN
	HasStatus
	HasQuery

	hasHeaders = HasUserAgent | HasReferer | HasAccept | HasSecFetch | HasSecPurpose
)

var signalNames = [...]string{
	"method", "host", "user-agent", "referer", "accept", "sec-fetch-dest", "sec-purpose",
	"content-type", "cache", "duration", "asn", "status", "query",
}

// Names lists the signals of s in a fixed order.
func (s Signal) Names() []string {
	var out []string
	for i, n := range signalNames {
		if s&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// Cache says whether a cache answered, so that the origin never saw the request.
type Cache uint8

// The cache states. CacheUnknown covers formats without one, errors and bypasses
// whose meaning differs by vendor.
const (
	CacheUnknown Cache = iota
	CacheHit
	CacheMiss
)

func (c Cache) String() string {
	switch c {
	case CacheHit:
		return "hit"
	case CacheMiss:
		return "miss"
	}
	return "unknown"
}

// cacheOf maps the words of nginx, Cloudflare, CloudFront and Vercel.
func cacheOf(s string) Cache {
	switch s {
	case "HIT", "Hit", "hit", "RefreshHit", "STALE", "stale", "UPDATING", "updating", "REVALIDATED", "revalidated",
		"PRERENDER", "OriginShieldHit":
		return CacheHit
	case "MISS", "Miss", "miss", "EXPIRED", "expired", "BYPASS", "bypass", "dynamic", "DYNAMIC":
		return CacheMiss
	}
	return CacheUnknown
}

// Format names the shape in which a line was recognised.
type Format uint8

// The formats. FormatCustom is the layout given by the caller, or a known one
// that has no name of its own.
const (
	FormatUnknown Format = iota
	FormatCombined
	FormatCommon
	FormatTraefikCLF
	FormatCustom
	FormatJSON // nginx escape=json and its like: keys differ per site
	FormatCaddy
	FormatTraefikJSON
	FormatEnvoyJSON
	FormatEnvoyText
	FormatCloudFront
	FormatALB
	FormatELB
	FormatS3
	FormatAPIGateway
	FormatGoogleLB
	FormatCloudRun
	FormatCloudflare
	FormatVercel
	FormatW3C
	FormatHAProxy
	FormatProxyManager
	FormatStile
	NumFormats
)

var formatNames = [NumFormats]string{
	"unknown", "combined", "common", "traefik-clf", "custom", "json", "caddy", "traefik-json", "envoy-json", "envoy-text",
	"cloudfront", "alb", "elb", "s3", "api-gateway", "google-lb", "cloud-run", "cloudflare", "vercel", "w3c", "haproxy",
	"nginx-proxy-manager", "stile",
}

func (f Format) String() string {
	if f < NumFormats {
		return formatNames[f]
	}
	return "unknown"
}

// A Kind says why a line yielded no Record.
type Kind uint8

// The kinds. Parsed is the zero value: the line is a request.
const (
	Parsed       Kind = iota
	Blank             // nothing on the line
	Directive         // a comment or W3C directive
	Unrecognised      // no known shape
	Foreign           // a message of the same program that is no request: errors, start-up, build output
	LimitNotice       // a message that an existing limiter refused somebody
	Truncated         // the line ends inside a field
	Malformed         // a known shape with impossible content
	Spliced           // two records written into one line
	Oversized         // longer than Options.MaxLine
	NoRequest         // a connection without a request: pre-connect, time-out, TCP row
	NotHTTP           // another protocol's bytes where the request line belongs
	BadTime           // no readable time
	AbsurdTime        // a time before 1995 or in the future
	SubRequest        // made by the platform for a request that has a row of its own
	DuplicateRow      // a further row of a request already seen
	NumKinds
)

var kindNames = [NumKinds]string{
	"parsed", "blank", "directive", "unrecognised", "foreign", "limit-notice", "truncated", "malformed", "spliced",
	"oversized", "no-request", "not-http", "bad-time", "absurd-time", "sub-request", "duplicate-row",
}

func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "not-mine"
}

// Bad reports whether lines of this kind are faults of the log. The others are
// ordinary content that is just no request.
func (k Kind) Bad() bool {
	switch k {
	case Unrecognised, Truncated, Malformed, Spliced, Oversized, BadTime, AbsurdTime:
		return true
	}
	return false
}

// notMine is how a reader of one format says that the line has another shape.
const notMine Kind = 255
