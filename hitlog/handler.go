package hitlog

import (
	"io"
	"log/slog"
)

// Names are a platform's own words for our fields. The zero Names are plain.
type Names struct {
	// Rename maps our field name to theirs, for example "event" to "message".
	// [Parse] knows "message", "timestamp", "level" and Cloud Logging's trace.
	Rename map[string]string
	// Severity words a level; nil = SeverityText.
	Severity func(slog.Level) string
	// Trace rewrites a trace id, for example into "projects/P/traces/ID"; nil =
	// as it is.
	Trace func(string) string
}

// NewHandler returns a slog.Handler that writes one JSON line per record under
// a platform's names. Records of other parts of the program may use it too. It
// serialises writes to w and is safe for concurrent use.
func NewHandler(w io.Writer, n Names) slog.Handler {
	if n.Severity == nil {
		n.Severity = SeverityText
	}
	return slog.NewJSONHandler(w, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) > 0 {
				return a
			}
			switch a.Key {
			case slog.LevelKey:
				level, ok := a.Value.Any().(slog.Level)
				if !ok { // somebody's attribute of that name
					return a
				}
				a = slog.String("severity", n.Severity(level))
			case slog.MessageKey:
				a.Key = "event"
			case "trace":
				if n.Trace != nil {
					a.Value = slog.StringValue(n.Trace(a.Value.String()))
				}
			}
			if to, ok := n.Rename[a.Key]; ok {
				a.Key = to
			}
			return a
		},
	})
}

// SeverityText words a level as most log stores do: DEBUG, INFO, WARNING, ERROR.
func SeverityText(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARNING"
	case l >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

func (e Event) level() slog.Level {
	switch e {
	case StoreError:
		return slog.LevelError
	case Limited, WouldLimit:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
