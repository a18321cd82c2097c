package hitlog

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stilehq/stile/core"
)

// Event is the kind of a line.
type Event string

// The events. What fail2ban and the like look for is "limited".
const (
	Hit        Event = "hit"         // a counted navigation
	Limited    Event = "limited"     // refused with 429
	WouldLimit Event = "would-limit" // refused, had the policy not been observing
	StoreError Event = "store-error" // the store failed; what it meant for the visitor is in reason
)

// Valid reports whether e is one of the events above.
func (e Event) Valid() bool {
	switch e {
	case Hit, Limited, WouldLimit, StoreError:
		return true
	}
	return false
}

// An Entry is one line. Empty fields are not written.
type Entry struct {
	Time     time.Time `json:"time"`
	Severity string    `json:"severity,omitempty"`
	Event    Event     `json:"event"`
	Reason   string    `json:"reason,omitempty"` // core.Reason
	Ref      string    `json:"ref,omitempty"`    // as in the answer that the visitor saw
	Site     string    `json:"site,omitempty"`
	Host     string    `json:"host,omitempty"`
	// IP is the client as log.ip has it: "203.0.113.9", "203.0.113.0/24", or a
	// keyed digest "h:…". Empty when the client could not be found.
	IP        string `json:"ip,omitempty"`
	KeyType   string `json:"key_type,omitempty"` // core.Kind
	Key       string `json:"key,omitempty"`      // what was charged, as log.ip has it
	UserAgent string `json:"user_agent,omitempty"`
	Method    string `json:"method,omitempty"`
	// Path is the percent-encoded path. The query is not logged: it may hold
	// what a visitor typed.
	Path         string `json:"path,omitempty"`
	SecFetchDest string `json:"sec_fetch_dest,omitempty"`
	// Status is what the client got; 0 when nobody knows (an authorizer allowed
	// it, the client left).
	Status  int     `json:"status,omitempty"`
	Buckets Buckets `json:"buckets,omitempty"`
	Store   string  `json:"store,omitempty"`
	StoreMS float64 `json:"store_ms,omitempty"` // milliseconds spent in the store
	Trace   string  `json:"trace,omitempty"`
	// LeftOut is how many more lines like this one were not written since the
	// last one of the same key: a line stands for 1 + LeftOut requests.
	LeftOut int64 `json:"left_out,omitempty"`
	// Error is the store's error; store-error only.
	Error string `json:"error,omitempty"`
}

// A Bucket is one limit's state right after the hit.
type Bucket struct {
	Name      string `json:"name"`
	Count     int64  `json:"count"`
	Limit     int64  `json:"limit"`
	Remaining int64  `json:"remaining"`
	ResetS    int64  `json:"reset_s"` // seconds, rounded up
}

// Buckets is the list as written.
type Buckets []Bucket

// MarshalJSON writes the list without reflection; it is in every line.
func (bs Buckets) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 2+len(bs)*96)
	b = append(b, '[')
	for i := range bs {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"name":"`...)
		b = appendQuoted(b, bs[i].Name)
		b = append(b, `","count":`...)
		b = strconv.AppendInt(b, bs[i].Count, 10)
		b = append(b, `,"limit":`...)
		b = strconv.AppendInt(b, bs[i].Limit, 10)
		b = append(b, `,"remaining":`...)
		b = strconv.AppendInt(b, bs[i].Remaining, 10)
		b = append(b, `,"reset_s":`...)
		b = strconv.AppendInt(b, bs[i].ResetS, 10)
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// appendQuoted writes the inside of a JSON string; names are cleaned already,
// so quote, backslash and stray control bytes are all there is to escape.
func appendQuoted(b []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, `\u00`...)
			b = append(b, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func buckets(states []core.State) Buckets {
	if len(states) == 0 {
		return nil
	}
	out := make(Buckets, len(states))
	for i := range states {
		s := &states[i]
		reset := int64(s.Reset / time.Second)
		if s.Reset%time.Second > 0 {
			reset++
		}
		out[i] = Bucket{Name: s.Bucket, Count: s.Count, Limit: s.Limit, Remaining: s.Remaining, ResetS: reset}
	}
	return out
}

// The most bytes of each field that a client can fill. A longer one ends in an
// ellipsis.
const (
	maxPath  = 1024
	maxAgent = 512
	maxHost  = 255
	maxKey   = 256
	maxShort = 64
	maxError = 300
)

// clean makes every text of an entry fit for a log: no byte that could begin a
// new line or drive a terminal, no broken UTF-8, bounded.
func (e *Entry) clean() {
	for _, f := range []struct {
		s   *string
		max int
	}{
		{&e.Reason, maxShort}, {&e.Ref, maxShort}, {&e.Site, maxHost}, {&e.Host, maxHost}, {&e.IP, maxShort},
		{&e.KeyType, maxShort}, {&e.Key, maxKey}, {&e.UserAgent, maxAgent}, {&e.Method, maxShort}, {&e.Path, maxPath},
		{&e.SecFetchDest, maxShort}, {&e.Store, maxShort}, {&e.Trace, maxKey}, {&e.Error, maxError},
	} {
		*f.s = cleanText(*f.s, f.max)
	}
	for i := range e.Buckets {
		e.Buckets[i].Name = cleanText(e.Buckets[i].Name, maxShort)
	}
}
