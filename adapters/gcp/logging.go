package gcp

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/stilehq/stile/hitlog"
)

// The fields that Cloud Logging takes out of a JSON line and understands.
const (
	fieldTrace   = "logging.googleapis.com/trace"
	fieldRequest = "httpRequest"
)

// NewHitLog returns a handler for the hit log in Cloud Logging's names:
// severity, the request as httpRequest, and the trace under which the platform
// logs the same request, if project is known. The other fields keep their own
// names, so that one query serves every platform (jsonPayload.event="limited").
func NewHitLog(w io.Writer, project string) slog.Handler {
	return requestLogger{hitlog.NewHandler(w, names(project))}
}

func names(project string) hitlog.Names {
	if project == "" {
		return hitlog.Names{}
	}
	return hitlog.Names{
		Rename: map[string]string{"trace": fieldTrace},
		Trace:  func(id string) string { return "projects/" + project + "/traces/" + id },
	}
}

// NewOperatorLog returns a logger for what an operator must know: its text is
// the line's message.
func NewOperatorLog(w io.Writer) *slog.Logger {
	return slog.New(hitlog.NewHandler(w, hitlog.Names{Rename: map[string]string{"event": "message"}}))
}

// requestLogger adds httpRequest to records that describe a request.
type requestLogger struct{ slog.Handler }

func (h requestLogger) Handle(ctx context.Context, r slog.Record) error {
	var attrs [5]slog.Attr
	request := attrs[:0]
	var host, path string
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "method":
			request = append(request, slog.String("requestMethod", a.Value.String()))
		case "host":
			host = a.Value.String()
		case "path":
			path = a.Value.String()
		case "status":
			request = append(request, slog.Int64("status", a.Value.Int64()))
		case "user_agent":
			request = append(request, slog.String("userAgent", a.Value.String()))
		case "ip":
			// A prefix or a digest, as log.ip may have it, is no address.
			if _, err := netip.ParseAddr(a.Value.String()); err == nil {
				request = append(request, slog.String("remoteIp", a.Value.String()))
			}
		}
		return true
	})
	if path != "" {
		request = append(request, slog.String("requestUrl", "https://"+host+path))
	}
	if len(request) > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Attr{Key: fieldRequest, Value: slog.GroupValue(request...)})
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h requestLogger) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLogger{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h requestLogger) WithGroup(name string) slog.Handler {
	return requestLogger{h.Handler.WithGroup(name)}
}

// Trace returns the id by which Google's own logs know a request: of
// X-Cloud-Trace-Context (TRACE/SPAN;o=1), else of a W3C traceparent; "" when
// there is none, or none in the right form: clients can send these fields too.
func Trace(r *http.Request) string {
	if id, _, _ := strings.Cut(r.Header.Get("X-Cloud-Trace-Context"), "/"); isTrace(id) {
		return id
	}
	if v := r.Header.Get("Traceparent"); len(v) >= 55 && v[2] == '-' && v[35] == '-' && isTrace(v[3:35]) {
		return v[3:35]
	}
	return ""
}

func isTrace(id string) bool {
	if len(id) != 32 {
		return false
	}
	for i := 0; i < len(id); i++ {
		if c := id[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}

// metadata is where an instance on Google Cloud asks who it is.
const metadata = "http://metadata.google.internal"

// project finds the project's id for trace names: from the environment, else,
// on the platform, from its metadata server. "" = unknown.
func project(ctx context.Context, getenv func(string) string, server string) string {
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", "GCP_PROJECT"} {
		if id := getenv(name); id != "" {
			return id
		}
	}
	if getenv("K_SERVICE") == "" {
		return "" // not on the platform: nobody would answer
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/computeMetadata/v1/project/project-id", nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Metadata-Flavor", "Google")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	id, err := io.ReadAll(io.LimitReader(res.Body, 128))
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Metadata-Flavor") != "Google" {
		return ""
	}
	return strings.TrimSpace(string(id))
}
