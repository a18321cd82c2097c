package hitlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// ErrForeign marks a line that is not from the hit log: other JSON, or none.
// Whoever reads a mixed log passes it over.
var ErrForeign = errors.New("hitlog: not a line of the hit log")

// aliases are the names under which platforms want or store our fields.
type aliases struct {
	Entry
	Message   Event           `json:"message"`
	Timestamp *time.Time      `json:"timestamp"`
	Level     string          `json:"level"`
	GCPTrace  string          `json:"logging.googleapis.com/trace"`
	Payload   json.RawMessage `json:"jsonPayload"`
}

// Parse reads one line, with or without its line end, as written by any adapter
// or exported by Cloud Logging (which wraps it in jsonPayload). It returns
// ErrForeign, wrapped, for whatever else may be in such a file; it never panics.
func Parse(line []byte) (Entry, error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return Entry{}, ErrForeign
	}
	var a aliases
	if err := json.Unmarshal(line, &a); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	if a.Event == "" && len(a.Payload) > 0 && a.Payload[0] == '{' {
		outer := a
		a = aliases{}
		if err := json.Unmarshal(outer.Payload, &a); err != nil {
			return Entry{}, fmt.Errorf("%w: %w", ErrForeign, err)
		}
		if a.Time.IsZero() && outer.Timestamp != nil {
			a.Time = *outer.Timestamp
		}
		a.Severity = either(a.Severity, outer.Severity)
		a.Trace = either(a.Trace, outer.Trace)
	}
	e := a.Entry
	if e.Event == "" {
		e.Event = a.Message
	}
	if e.Time.IsZero() && a.Timestamp != nil {
		e.Time = *a.Timestamp
	}
	e.Severity = either(e.Severity, a.Level)
	e.Trace = either(e.Trace, a.GCPTrace)
	switch {
	case !e.Event.Valid():
		return Entry{}, ErrForeign
	case e.Time.IsZero():
		return Entry{}, fmt.Errorf("%w: no time", ErrForeign)
	}
	e.Time = e.Time.UTC()
	e.LeftOut = max(0, e.LeftOut)
	return e, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
