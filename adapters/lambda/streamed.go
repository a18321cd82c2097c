package lambda

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

// streamed answers while the origin does. The response's head goes first, as
// JSON, then eight zero bytes, then the body as it comes.
func (f *Function) streamed(ctx context.Context, e *event) io.Reader {
	ctx, cancel := context.WithCancel(ctx)
	r := e.incoming(ctx)
	out, in := io.Pipe()
	w := &streamWriter{header: http.Header{}, pipe: in, ready: make(chan struct{})}
	s := &stream{body: out, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		err := f.serve(w, r)
		w.WriteHeader(http.StatusOK) // a handler that wrote nothing
		if err != nil {
			f.logger.Error("stile: an answer was cut off", "error", err)
		}
		// Everything is settled by now. An error here is told to the platform in a
		// trailer: it resets the client's connection.
		_ = in.CloseWithError(err)
	}()
	<-w.ready
	s.head.Write(w.head)
	return s
}

// stream is the answer as the Runtime API takes it.
type stream struct {
	head   bytes.Buffer
	body   *io.PipeReader
	cancel context.CancelFunc
	done   chan struct{}
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	if s.head.Len() > 0 {
		return s.head.Read(p)
	}
	return s.body.Read(p)
}

// Close ends the request and waits for its end: whatever it has left to do
// would not be done once the next event is asked for.
func (s *stream) Close() error {
	s.cancel()
	err := s.body.Close()
	<-s.done
	return err
}

// ContentType is the answer's type for the Runtime API.
func (*stream) ContentType() string { return "application/vnd.awslambda.http-integration-response" }

// MarshalJSON makes the runtime take the value as a reader.
func (*stream) MarshalJSON() ([]byte, error) { return nil, errors.New("lambda: a reader") }

// streamWriter is the http.ResponseWriter over a stream.
type streamWriter struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
	head   []byte // valid once ready is closed
}

// Header implements http.ResponseWriter.
func (w *streamWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter. Informational answers are dropped:
// the head goes out once.
func (w *streamWriter) WriteHeader(status int) {
	if status < 200 {
		return
	}
	w.once.Do(func() {
		h := w.header.Clone()
		head := struct {
			StatusCode int               `json:"statusCode"`
			Headers    map[string]string `json:"headers,omitempty"`
			Cookies    []string          `json:"cookies,omitempty"`
		}{StatusCode: status, Cookies: h["Set-Cookie"]}
		h.Del("Set-Cookie")
		head.Headers = joined(h)
		text, _ := json.Marshal(head) // of strings and a number
		w.head = append(text, 0, 0, 0, 0, 0, 0, 0, 0)
		close(w.ready)
	})
}

// Write implements io.Writer.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements http.Flusher: nothing is held back.
func (w *streamWriter) Flush() { w.WriteHeader(http.StatusOK) }
