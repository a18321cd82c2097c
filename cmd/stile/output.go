package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// writeJSON writes a result for programs: one indented document.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// plain makes text that a client may have written safe for a terminal: control
// and invisible characters are shown as escapes.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) && r != ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
