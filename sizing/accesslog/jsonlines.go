package accesslog

import "bytes"

// A jsonFramer turns pretty-printed JSON and JSON arrays into one object per
// line, as a stream. Text between objects passes through line by line, so a file
// may mix both. It holds no value in memory: only its place in one.
type jsonFramer struct {
	depth   int
	str     bool // inside a string
	esc     bool // after a backslash in one
	text    bool // inside a line that is not JSON
	newline bool // the last byte seen ended a line
}

// frame appends the transformed src to dst.
func (f *jsonFramer) frame(dst, src []byte) []byte {
	for i, c := range src {
		atStart := f.newline
		f.newline = c == '\n'
		switch {
		case f.text:
			dst = append(dst, c)
			f.text = c != '\n'
		case f.depth == 0:
			switch c {
			case ' ', '\t', '\r', '\n', ',', ']':
			case '[':
				if !arrayStart(src[i+1:]) { // "[24/Jan/2022:…": a text line
					dst, f.text = append(dst, c), true
				}
			case '{':
				dst = append(dst, c)
				f.depth = 1
			default:
				dst, f.text = append(dst, c), true
			}
		case atStart && c == '{':
			// An object at the left margin while another is open: that one was cut
			// off. Close its line and begin anew, or one loss would swallow the rest.
			dst = append(dst, '\n', '{')
			f.depth, f.str, f.esc = 1, false, false
		case c == '\n' || c == '\r':
			dst = append(dst, ' ')
			f.esc = false
		case f.str:
			dst = append(dst, c)
			switch {
			case f.esc:
				f.esc = false
			case c == '\\':
				f.esc = true
			case c == '"':
				f.str = false
			}
		default:
			dst = append(dst, c)
			switch c {
			case '"':
				f.str = true
			case '{', '[':
				f.depth++
			case '}', ']':
				if f.depth--; f.depth == 0 {
					dst = append(dst, '\n')
				}
			}
		}
	}
	return dst
}

// arrayStart reports whether what follows "[" begins a JSON array of objects.
// At the very end of a block it cannot be known; a bracket alone is taken for one.
func arrayStart(rest []byte) bool {
	for _, c := range rest {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', ']', '[':
			return true
		}
		return false
	}
	return true
}

// framed reports whether b, which begins at the start of a line, needs the
// framer: some line in it opens an object or array without closing it there.
func framed(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	for len(b) > 0 {
		if opens(b) {
			return true
		}
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return false
		}
		b = b[i+1:]
	}
	return false
}

// opens recognises "{" or "[" alone on a line, "[{" and "[ {".
func opens(b []byte) bool {
	if b[0] != '{' && b[0] != '[' {
		return false
	}
	for _, c := range b[1:] {
		switch c {
		case ' ', '\t', '\r':
			continue
		case '\n':
			return true
		case '{':
			return b[0] == '['
		}
		return false
	}
	return false // the block ends here: it is looked at again with what follows
}
