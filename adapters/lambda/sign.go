package lambda

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// credentials are what Lambda hands a function for its role.
type credentials struct{ key, secret, token string }

// sign adds AWS's Signature Version 4 to a request without a query, of which it
// signs every field that is set, and the host. AWS's library would do the same; it is the
// DynamoDB store's, and this one call needs no more of it than these lines.
func sign(r *http.Request, body []byte, c credentials, region, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	if c.token != "" {
		r.Header.Set("X-Amz-Security-Token", c.token)
	}
	fields := map[string]string{"host": r.URL.Host}
	for name, lines := range r.Header {
		fields[strings.ToLower(name)] = strings.TrimSpace(strings.Join(lines, ","))
	}
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + path + "\n\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + fields[name] + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + digest(body))

	scope := stamp[:8] + "/" + region + "/" + service + "/aws4_request"
	key := []byte("AWS4" + c.secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	signature := mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+digest([]byte(canonical.String())))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+c.key+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(signature))
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
