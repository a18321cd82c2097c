package gate_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stilehq/stile/adapters/gate"
)

// TestTrailersThatSpeakOfTheClient: what the origin is told about the client in
// the header is not told otherwise after the body, whether it was announced or
// not; other trailers arrive.
func TestTrailersThatSpeakOfTheClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, hourly(1000), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(w).Encode(map[string]any{"body": string(body), "trailer": r.Trailer})
	}), func(c *gate.Config) {
		c.PeerSecretHeader, c.PeerSecrets = "X-Edge-Secret", []string{"a-secret-of-thirty-two-characters"}
	})
	for name, sent := range map[string]string{
		"announced":   "Trailer: X-Sum, X-Forwarded-For, X-Forwarded-Proto, X-Real-Ip, Forwarded, X_Forwarded_For, X-Edge-Secret\r\n",
		"unannounced": "Trailer: X-Sum\r\n",
		"nothing":     "",
		"only these":  "Trailer: X-Forwarded-For\r\n",
	} {
		_, br := r.raw("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n" + sent + "\r\n5\r\nhello\r\n0\r\n" +
			"X-Sum: 41\r\nX-Sum: 42\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Real-Ip: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX_Forwarded_For: 192.0.2.1\r\nX-Edge-Secret: guess\r\n\r\n")
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got struct {
			Body    string
			Trailer http.Header
		}
		if err := json.NewDecoder(res.Body).Decode(&got); err != nil || got.Body != "hello" {
			t.Fatalf("%s: %v %+v", name, err, got)
		}
		want := 0
		if name == "announced" || name == "unannounced" {
			want = 1
			if sum := got.Trailer["X-Sum"]; len(sum) != 2 || sum[1] != "42" {
				t.Errorf("%s: the trailer X-Sum arrived as %q", name, sum)
			}
		}
		if len(got.Trailer) != want {
			t.Errorf("%s: the site was told %v", name, got.Trailer)
		}
	}
}
