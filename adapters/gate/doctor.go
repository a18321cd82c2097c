package gate

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stilehq/stile/core"
)

// DoctorHeader is the field in which `stile doctor` sends its secret.
const DoctorHeader = "Stile-Doctor"

// A Diagnoser is a [Limiter] that can say how it sees a request, and how it is.
// A gate asks it when a request carries [DoctorHeader].
type Diagnoser interface {
	// Diagnose returns what to answer as JSON. It reports false for whoever has
	// not proven that they may know: then the request is treated as any other, so
	// that a stranger does not even learn that the question exists.
	Diagnose(ctx context.Context, r *core.Request) (any, bool)
}

// diagnose answers the operator's question about this very request, which is
// neither counted nor passed on; false when nobody has asked who may.
func (g *gate) diagnose(w http.ResponseWriter, r *http.Request) bool {
	d, ok := g.Limiter.(Diagnoser)
	if !ok {
		return false
	}
	q := &core.Request{
		Method: r.Method, Host: r.Host, Path: orDefault(r.URL.Path, "/"), RawQuery: r.URL.RawQuery,
		Header: r.Header, Peer: peerAddr(r), Time: g.Now(),
	}
	if g.Platform != nil {
		q.Platform = g.Platform(r)
	}
	found, ok := d.Diagnose(r.Context(), q)
	if !ok {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(found) // the client may have left
	return true
}
