package accesslog

import "strings"

func (p *Parser) knownLayouts(line string, r *Record) Kind {
	for _, l := range knownLayouts {
		// Text that nobody announced is taken for this layout only when all of it fits.
		if k := l.parse(p, line, r); k != notMine && k != Truncated {
			return k
		}
		*r = Record{}
	}
	return notMine
}

// knownLayouts are custom layouts in public use that have no name.
var knownLayouts = []*Layout{
	mustLayout(`%v,%p,%h,%l,%u,%t,%I,%O,%S,%B,%{ms}T,%D,%^FB,%>s,"%H","%m","%U","%q","%{Referer}i","%{User-Agent}i",`),
}

func mustLayout(s string) *Layout {
	l, err := ParseLayout(s)
	if err != nil {
		panic(err) // a constant of this package: its test parses it
	}
	return l
}

// parse reads a line by the layout. A line that does not have the layout's fixed
// text in its places is not its own; a line that has it up to some point and
// then ends is truncated.
func (l *Layout) parse(p *Parser, line string, r *Record) Kind {
	if !strings.HasPrefix(line, l.head) {
		return notMine
	}
	r.Format = FormatCustom
	var v values
	rest := line[len(l.head):]
	for i, part := range l.parts {
		end := len(rest)
		if part.until != "" {
			end = part.find(rest)
			if end < 0 {
				if i < len(l.parts)/2 || part.until == " " {
					return notMine
				}
				return Truncated
			}
		}
		v[part.field] = rest[:end]
		if part.field == fTime && part.strftime != "" {
			v[fTimeShape] = part.strftime
		}
		if end += len(part.until); end > len(rest) {
			end = len(rest)
		}
		rest = rest[end:]
	}
	return p.fromValues(l, &v, r)
}

// find returns where the field ends. A field in quotes ends at an unescaped one.
func (part *layoutPart) find(s string) int {
	from := 0
	for {
		i := strings.Index(s[from:], part.until)
		if i < 0 {
			return -1
		}
		i += from
		if part.until[0] != '"' {
			return i
		}
		b := i
		for b > 0 && s[b-1] == '\\' {
			b--
		}
		if (i-b)%2 == 0 {
			return i
		}
		from = i + 1
	}
}

// fromValues fills a record from the fields of a custom layout.
func (p *Parser) fromValues(l *Layout, v *values, r *Record) Kind {
	if !p.customTime(r, v) {
		// Where even the time is no time, the layout only happened to fit.
		return notMine
	}
	p.setClient(r, v[fClient], v[fXFF], p.wantedValue(l, v))
	r.setHost(v[fHost])
	if l.has[fStatus] && !r.setStatus(v[fStatus]) {
		return Malformed
	}
	r.setBytes(v[fBytes])
	if l.has[fAgent] {
		r.setAgent(v[fAgent])
	}
	if l.has[fReferer] {
		r.setReferer(v[fReferer])
	}
	set := func(f field, to *string, has Signal) {
		if l.has[f] {
			*to = none(v[f])
			r.Has |= has
		}
	}
	set(fAccept, &r.Accept, HasAccept)
	set(fDest, &r.SecFetchDest, HasSecFetch)
	set(fFetchUser, &r.SecFetchUser, 0)
	set(fPurpose, &r.SecPurpose, HasSecPurpose)
	set(fInsecure, &r.UpgradeInsecure, 0)
	set(fType, &r.ContentType, HasContentType)
	set(fRequestID, &r.RequestID, 0)
	if l.has[fCache] {
		r.setCache(v[fCache])
	}
	if l.has[fASN] {
		r.setASN(v[fASN])
	}
	r.Upgrade = strings.EqualFold(v[fUpgrade], "websocket")
	if l.has[fDuration] {
		r.setDuration(v[fDuration], l.unit)
	}
	if l.has[fRequest] {
		return r.setRequest(v[fRequest])
	}
	r.Method = "GET"
	if l.has[fMethod] {
		if !isMethod(v[fMethod]) {
			if none(v[fMethod]) == "" {
				return NoRequest
			}
			return NotHTTP
		}
		r.Method = v[fMethod]
		r.Has |= HasMethod
	}
	k := r.setTarget(v[fTarget])
	if q := none(v[fQuery]); k == Parsed && r.Query == "" && q != "" {
		r.Query = strings.TrimPrefix(q, "?")
	}
	return k
}

func (p *Parser) wantedValue(l *Layout, v *values) string {
	if p.header == "" || p.header != l.header {
		return ""
	}
	return v[fHeader]
}

func (p *Parser) customTime(r *Record, v *values) bool {
	if shape := v[fTimeShape]; shape != "" {
		return p.strftime(r, v[fTime], shape)
	}
	return p.setTime(r, v[fTime])
}
