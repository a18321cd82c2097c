package accesslog

import (
	"strconv"
	"strings"
	"time"
)

// json reads one JSON object on a line. Which format it is follows from the keys
// that occurred.
func (p *Parser) json(line string, r *Record, depth int) Kind {
	p.slots = slots{}
	w := walker{s: line, out: &p.slots, header: p.header, nginx: p.nginxHd}
	if p.header == "" {
		w.nginx = ""
	}
	if k := w.object(gRoot, 0); k != Parsed {
		return k
	}
	if rest := strings.TrimLeft(line[w.i:], " \t,]"); rest != "" {
		return Spliced
	}
	s := &p.slots
	switch {
	case w.seen&gHTTP != 0:
		return p.google(s, r)
	case w.seen&gRequest != 0 && s[sRemote]+s[sClientIP] != "":
		r.Format = FormatCaddy
		if w.seen&gHeaders != 0 {
			r.Has |= hasHeaders
		}
		if w.seen&gRespHeaders != 0 {
			r.Has |= HasContentType
		}
	case w.seen&gProxy != 0:
		return p.vercel(s, r)
	case w.seen&gCloudflare != 0 && s[sClientIP] != "":
		if s[sSub] == "true" {
			return SubRequest
		}
		r.Format = FormatCloudflare
	case w.seen&gTraefik != 0:
		r.Format = FormatTraefikJSON
	case w.seen&gEnvoy != 0 && s[sTime] != "":
		r.Format = FormatEnvoyJSON
		s[sMillis], s[sSeconds] = s[sSeconds], ""
	case s[sKeyType]+s[sSite] != "" && s[sEvent]+s[sInner] != "":
		return p.stile(s, r)
	case w.seen&gGateway != 0:
		r.Format = FormatAPIGateway
		gatewayRoute(s)
	case s[sClientIP]+s[sRemote] != "" && s[sRequest]+s[sURI]+s[sPath]+s[sURL] != "" && s[sStatus]+s[sMethod]+s[sAgent] != "":
		r.Format = FormatJSON
	default:
		return p.inner(s, r, depth)
	}
	return p.fill(s, r)
}

// inner parses a line that a shipper put into a string.
func (p *Parser) inner(s *slots, r *Record, depth int) Kind {
	line := strings.Trim(s[sInner], " \t\r\n\x00")
	if line == "" || depth >= 3 {
		return Foreign
	}
	k := p.shape(line, r, depth+1)
	switch k {
	case notMine, Unrecognised, Blank, Directive:
		return Foreign
	}
	return k
}

// fill moves slots into the record, in the order of preference that all JSON
// formats share.
func (p *Parser) fill(s *slots, r *Record) Kind {
	if !p.jsonTime(s, r) {
		return BadTime
	}
	own := s[sClientIP]
	if none(own) == "" {
		own = s[sRemote]
	}
	p.setClient(r, own, s[sXFF], s[sWanted])
	r.setHost(s[sHost])
	if r.Host == "" {
		r.setHost(s[sHostOther])
	}
	if !r.setStatus(s[sStatus]) {
		return Malformed
	}
	p.jsonSignals(s, r)
	return p.jsonTarget(s, r)
}

func (p *Parser) jsonTime(s *slots, r *Record) bool {
	for _, v := range [...]string{s[sTime], s[sTimeOther], s[sTimeLast]} {
		if v != "" && p.setTime(r, v) {
			return true
		}
	}
	return false
}

func (p *Parser) jsonSignals(s *slots, r *Record) {
	r.setBytes(s[sBytes])
	set := func(to *string, has Signal, v string) {
		if v != "" {
			*to = none(v)
			r.Has |= has
		}
	}
	set(&r.UserAgent, HasUserAgent, s[sAgent])
	set(&r.Referer, HasReferer, s[sReferer])
	set(&r.Accept, HasAccept, s[sAccept])
	set(&r.SecFetchDest, HasSecFetch, s[sDest])
	set(&r.SecFetchUser, HasSecFetch, s[sFetchUser])
	set(&r.SecPurpose, HasSecPurpose, s[sPurpose])
	set(&r.UpgradeInsecure, 0, s[sInsecure])
	set(&r.ContentType, HasContentType, s[sType])
	set(&r.RequestID, 0, s[sRequestID])
	r.Upgrade = strings.EqualFold(s[sUpgrade], "websocket")
	if s[sCache] != "" {
		r.setCache(s[sCache])
	}
	if s[sASN] != "" {
		r.setASN(s[sASN])
	}
	switch {
	case s[sSeconds] != "":
		r.setDuration(strings.TrimSuffix(s[sSeconds], "s"), time.Second)
	case s[sMillis] != "":
		r.setDuration(s[sMillis], time.Millisecond)
	case s[sNanos] != "":
		r.setDuration(s[sNanos], time.Nanosecond)
	}
}

// jsonTarget finds method and target: own keys first, then a whole request line,
// then a URL.
func (p *Parser) jsonTarget(s *slots, r *Record) Kind {
	if m := none(s[sMethod]); m != "" {
		if !isMethod(m) {
			return NotHTTP
		}
		r.Method = m
		r.Has |= HasMethod
	}
	uri := none(s[sURI])
	if uri == "" {
		uri = none(s[sPath])
	}
	if req := s[sRequest]; req != "" {
		var line Record
		switch k := line.setRequest(req); {
		case k == Parsed:
			if r.Method == "" {
				r.Method = line.Method
				r.Has |= HasMethod
			}
			if uri == "" {
				uri = line.Target()
			}
		case uri != "" || s[sURL] != "":
		case req[0] == '/':
			uri = req
		default:
			return k
		}
	}
	if uri == "" {
		uri = none(s[sURL])
	}
	if r.Method == "" {
		if uri == "" {
			return NoRequest
		}
		r.Method = "GET"
	}
	k := r.setTarget(uri)
	if a := none(s[sArgs]); k == Parsed && r.Query == "" && a != "" {
		r.Query = strings.TrimPrefix(a, "?")
	}
	return k
}

// google reads Cloud Load Balancing and Cloud Run request entries, and any other
// entry with an httpRequest.
func (p *Parser) google(s *slots, r *Record) Kind {
	r.Format = FormatGoogleLB
	if s[sResource] == "cloud_run_revision" || s[sResource] == "cloud_function" {
		r.Format = FormatCloudRun
	}
	// "timestamp" is the request's start. The payload may hold clocks of its own.
	s[sTime], s[sTimeOther] = "", ""
	s[sURI], s[sPath], s[sRequest] = "", "", ""
	s[sRequestID] = s[sInsertID]
	switch {
	case s[sCacheHit] == "true":
		s[sCache] = "HIT"
	case s[sCacheLookup] == "true":
		s[sCache] = "MISS"
	}
	r.Has |= HasUserAgent | HasReferer // left out when the visitor sent none
	return p.fill(s, r)
}

// vercel reads log drain rows. A request has one row per message; rows of the
// build have none at all, and middleware has a row beside the page's own.
func (p *Parser) vercel(s *slots, r *Record) Kind {
	if s[sRowType] == "middleware-invocation" || s[sRowType] == "middleware" {
		return SubRequest
	}
	r.Format = FormatVercel
	s[sPath] = "" // the function's path, not the visitor's
	if s[sURI] == "" {
		return NoRequest
	}
	r.Has |= HasUserAgent | HasReferer
	return p.fill(s, r)
}

// stile reads Stile's own hit log: a counted navigation or a refusal per line.
func (p *Parser) stile(s *slots, r *Record) Kind {
	if s[sEvent] == "" { // Cloud Logging's name for it
		s[sEvent] = s[sInner]
	}
	switch s[sEvent] {
	case "hit", "limited", "would-limit":
	default:
		return Foreign // the store's errors stand in the same log
	}
	if n, err := strconv.ParseInt(s[sLeftOut], 10, 64); err == nil && n > 0 {
		r.LeftOut = min(n, maxLeftOut)
	}
	r.Format = FormatStile
	r.Event, r.Reason, r.KeyType, r.Key = s[sEvent], s[sReason], s[sKeyType], s[sKey]
	r.Has |= HasUserAgent | HasSecFetch
	return p.fill(s, r)
}

// maxLeftOut bounds what one line can claim to stand for.
const maxLeftOut = 1 << 20

// gatewayRoute completes API Gateway lines that have a route instead of a path.
func gatewayRoute(s *slots) {
	if p := none(s[sPath]); p != "" {
		s[sURI] = p // the path asked for, before the resource's pattern
	}
	if m, path, ok := strings.Cut(s[sRoute], " "); ok {
		if s[sMethod] == "" {
			s[sMethod] = m
		}
		if none(s[sURI]) == "" {
			s[sURI] = path
		}
	}
}
