package firestore

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// A call watches one RPC. gRPC answers UNAVAILABLE both for a refused dial and
// for a connection that broke after the server had applied the write, and a
// deadline may pass in either place. The only proof that nothing was applied is
// that no headers were ever queued on a connection, which gRPC tells its stats
// handler and nobody else.
type call struct{ sent atomic.Bool }

type callKey struct{}

// watch returns a context whose RPC reports to the call.
func watch(ctx context.Context) (context.Context, *call) {
	c := new(call)
	return context.WithValue(ctx, callKey{}, c), c
}

// sentHandler marks a call as soon as its headers are queued on a connection.
type sentHandler struct{}

var _ stats.Handler = sentHandler{}

func (sentHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.sent.Store(true)
	}
}

func (sentHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (sentHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (sentHandler) HandleConn(context.Context, stats.ConnStats)                       {}
