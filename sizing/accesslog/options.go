package accesslog

import (
	"net/netip"
	"strings"
	"time"
)

// Options tune reading. The zero value finds formats by itself, believes each
// format's own address field and takes times without a zone for UTC.
type Options struct {
	// Layout is the site's own line layout, tried before the known formats; nil
	// for none. See ParseLayout.
	Layout *Layout
	// Client says which address in a line is the visitor's.
	Client ClientRule
	// Location is the zone of times that carry none (HAProxy, IIS local time).
	// Nil means UTC.
	Location *time.Location
	// Now bounds believable times: later than a day after it is absurd. The zero
	// value is the time at which the parser is made.
	Now time.Time
	// MaxLine is the longest line in bytes; 0 means 1 MiB. Longer lines are
	// counted as Oversized and skipped without being held in memory.
	MaxLine int
	// Workers is the number of parsing goroutines; 0 means GOMAXPROCS. With 1
	// the records of one input arrive in the order of its lines.
	Workers int
	// Progress, if set, is called from the reading goroutine after each block.
	Progress func(Progress)
}

// ClientRule says which address in a line is the visitor's. The zero value takes
// each format's own field: the peer, or what the platform itself says. A header
// is believed only when it is named here, since visitors write headers.
type ClientRule struct {
	// Hops > 0 takes the Hops-th address from the right of X-Forwarded-For, where
	// the line has that list. A shorter list is counted in Stats.ShortChains and
	// the format's own field is used.
	Hops int
	// Trusted, if not empty, takes the first address from the right of
	// X-Forwarded-For that lies outside these ranges. It overrides Hops.
	Trusted []netip.Prefix
	// Header names one request header that holds the address, such as
	// CF-Connecting-IP. It overrides both, where the line has it.
	Header string
}

// Progress tells how far a scan is.
type Progress struct {
	Bytes int64 // bytes read of the inputs, as stored (compressed)
	Total int64 // bytes of all inputs; 0 when unknown (standard input)
	Lines int64 // lines cut so far
}

const (
	defaultMaxLine = 1 << 20
	// blockSize balances cache use against hand-over cost: some 1,200 lines.
	blockSize = 256 << 10
)

func (o Options) maxLine() int {
	if o.MaxLine <= 0 {
		return defaultMaxLine
	}
	return max(o.MaxLine, 256)
}

// Stats is what a scan saw. Lines = Records + the sum of Skipped.
type Stats struct {
	Inputs      int
	Lines       int64
	Bytes       int64 // after decompression
	Records     int64
	Skipped     [NumKinds]int64
	Formats     [NumFormats]int64
	Has         Signal // the signals that at least one record carried
	Lacking     Signal // the signals that at least one record lacked
	NoAddress   int64  // records whose Client is not valid
	LocalTimes  int64  // records whose time had no zone
	ShortChains int64  // records whose X-Forwarded-For was shorter than the rule asks
	// Examples holds the first line of each kind of fault, at most 200 bytes.
	Examples [NumKinds]string
	// Errors are inputs that could not be read to their end; the rest was.
	Errors []error
}

// Faults is the number of lines that the log should not have.
func (s *Stats) Faults() int64 {
	var n int64
	for k := range NumKinds {
		if k.Bad() {
			n += s.Skipped[k]
		}
	}
	return n
}

// add merges another worker's counts.
func (s *Stats) add(o *Stats) {
	s.Lines += o.Lines
	s.Bytes += o.Bytes
	s.Records += o.Records
	s.NoAddress += o.NoAddress
	s.LocalTimes += o.LocalTimes
	s.ShortChains += o.ShortChains
	s.Has |= o.Has
	s.Lacking |= o.Lacking
	for i := range s.Skipped {
		s.Skipped[i] += o.Skipped[i]
		if s.Examples[i] == "" {
			s.Examples[i] = o.Examples[i]
		}
	}
	for i := range s.Formats {
		s.Formats[i] += o.Formats[i]
	}
	s.Errors = append(s.Errors, o.Errors...)
}

// skip counts one line that is no request.
func (s *Stats) skip(k Kind, line string) {
	s.Skipped[k]++
	if s.Examples[k] == "" && k != Blank {
		if len(line) > 200 {
			line = line[:200]
		}
		s.Examples[k] = strings.ToValidUTF8(strings.Clone(line), "?")
	}
}
