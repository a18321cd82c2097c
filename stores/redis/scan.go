package redis

import (
	"bytes"
	"errors"
)

// errProtocol marks a connection whose bytes are not the replies to what was
// asked: the client library would end the process on some of them.
var errProtocol = errors.New("the server's bytes are no replies to what was asked")

// Bounds of one value. Replies of this package are some integers, a page of
// INFO, or the slots of a cluster.
const (
	maxLine  = 64 << 10
	maxBulk  = 16 << 20
	maxArray = 1 << 20
)

// A scanner counts the complete RESP2 messages in a stream of bytes, whatever
// the pieces in which they come. It keeps none of them. The zero scanner stands
// at the beginning of a message.
//
// It watches over both directions of a connection, since the client library
// trusts the server: a reply that nobody waits for, or a negative length, is a
// panic in a goroutine of its own, where nobody can recover it. See [conn].
type scanner struct {
	need   int64 // values still to come until the message is complete
	skip   int64 // bytes left of a bulk string and its line end
	kind   byte  // of the value whose first line is being read; 0 = none
	number int64 // of that line, for a length
	digits int   // read of that line
	minus  bool
}

// scan reads on and returns the number of messages that became complete, and
// whether all of it was RESP2.
func (s *scanner) scan(p []byte) (messages int64, ok bool) {
	for len(p) > 0 {
		switch {
		case s.skip > 0:
			n := min(s.skip, int64(len(p)))
			s.skip -= n
			p = p[n:]
			if s.skip == 0 {
				messages += s.end()
			}
		case s.kind == 0:
			switch p[0] {
			case '+', '-', ':', '$', '*':
			default:
				return messages, false
			}
			s.kind, s.number, s.digits, s.minus = p[0], 0, 0, false
			if s.need == 0 {
				s.need = 1
			}
			p = p[1:]
		case s.kind == '$' || s.kind == '*':
			c := p[0]
			p = p[1:]
			switch {
			case c >= '0' && c <= '9':
				s.number = s.number*10 + int64(c-'0')
				s.digits++
				if s.number > maxBulk {
					return messages, false
				}
			case c == '-' && s.digits == 0 && !s.minus:
				s.minus = true
			case c == '\r':
			case c == '\n':
				n, good := s.length()
				if !good {
					return messages, false
				}
				messages += n
			default:
				return messages, false
			}
		default: // a line whose content does not matter
			n := bytes.IndexByte(p, '\n')
			if n < 0 {
				s.digits += len(p)
				return messages, s.digits <= maxLine
			}
			p = p[n+1:]
			messages += s.end()
		}
	}
	return messages, true
}

// length takes note of a length that has been read to its end.
func (s *scanner) length() (messages int64, ok bool) {
	switch {
	case s.digits == 0 || s.minus && s.number != 1:
		return 0, false
	case s.minus: // null
	case s.kind == '$':
		s.skip = s.number + 2
		return 0, true
	default:
		if s.need += s.number; s.need > maxArray {
			return 0, false
		}
	}
	return s.end(), true
}

// end counts a value that is complete; 1 says that the message is, too.
func (s *scanner) end() int64 {
	s.kind = 0
	if s.need--; s.need == 0 {
		return 1
	}
	return 0
}
