package lambda

import (
	"encoding/json"
	"html"
	"net/http"
	"strings"

	"github.com/stilehq/stile/adapters/serverless"
	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
)

// maxContext bounds the names and values that an authorizer hands on, together.
// API Gateway documents 8 KB for the whole answer; the half is enough.
const maxContext = 4000

// The keys of the authorizer's context, for $context.authorizer.KEY in gateway
// responses and parameter mappings. On a refusal all of them are set, and the
// RateLimit fields always. All values are digits, ASCII tokens, or words that were escaped for HTML and JSON here,
// since gateway responses cannot escape.
const (
	keyLimited     = "limited"    // "1" or "0"
	keyOutcome     = "outcome"    // "allow", "limited", "unavailable"
	keyRetryAfter  = "retryAfter" // seconds
	keyRef         = "ref"        // the reference id, as in the log
	keyRule        = "rule"       // "60 pages per hour"
	keyWait        = "wait"       // "24 minutes"
	keyUntil       = "until"      // "15:04 UTC"
	keyRateLimit   = "rateLimit"
	keyRatePolicy  = "rateLimitPolicy"
	keyXLimit      = "xRateLimitLimit"
	keyXRemaining  = "xRateLimitRemaining"
	keyXReset      = "xRateLimitReset"
	keySetCookie   = "setCookie" // the visitor cookie's whole field value; empty when none is due
	outcomeAllowed = "allow"
)

// rateFields are the response fields that a mapping can set from the context.
var rateFields = [...]struct{ key, field string }{
	{keyRateLimit, "Ratelimit"}, {keyRatePolicy, "Ratelimit-Policy"},
	{keyXLimit, "X-Ratelimit-Limit"}, {keyXRemaining, "X-Ratelimit-Remaining"}, {keyXReset, "X-Ratelimit-Reset"},
}

const wordsTemplate = `{"rule":"{{rule}}","wait":"{{wait}}","until":"{{until}}"}`

// refusalTexts words refusals as every other answer of Stile's does, without a
// page around the words. The template is a constant, so it compiles.
func refusalTexts(s *serverless.Site) *answer.Writer {
	c := answer.Config{JSON: wordsTemplate}
	if s.Policy != nil {
		c.Headers, _ = answer.ParseHeaders(string(s.Policy.Answer.Headers))
	}
	w, err := answer.New(c)
	if err != nil {
		return s.Answer
	}
	return w
}

// refused is the context of a refusal.
func (f *Function) refused(d *core.Decision, r *core.Request, ref string) map[string]string {
	a := f.texts.Limited(d, answer.Request{Accept: []string{"application/json"}, Ref: ref, Now: r.Time})
	var words struct{ Rule, Wait, Until string }
	_ = json.Unmarshal(a.Body, &words) // it is the template above
	out := map[string]string{
		keyLimited: "1", keyOutcome: answer.OutcomeLimited, keyRef: ref, keyRetryAfter: a.Header.Get("Retry-After"),
		keyRule: escape(words.Rule), keyWait: escape(words.Wait), keyUntil: escape(words.Until),
	}
	return withFields(out, a.Header)
}

// withCookie adds the visitor cookie, which only the integration or the gateway
// can set. Its value is a token of ours and holds nothing to escape.
func withCookie(out map[string]string, cookie string) map[string]string {
	out[keySetCookie] = cookie // also when empty: see withFields
	return out
}

// allowed is the context of an admission: what the integration may add to its
// answer. A REST API's authorizer cannot add anything itself.
func (f *Function) allowed(d *core.Decision) map[string]string {
	out := map[string]string{keyLimited: "0", keyOutcome: outcomeAllowed}
	h := http.Header{}
	f.texts.Fields(h, d)
	return withFields(out, h)
}

// withFields adds the RateLimit fields as far as they fit, and the rest as empty:
// what a mapping makes of a key that is not there is documented nowhere.
func withFields(out map[string]string, h http.Header) map[string]string {
	size := 0
	for k, v := range out {
		size += len(k) + len(v)
	}
	for _, f := range rateFields {
		v := strings.Join(h[f.field], ", ")
		if size += len(f.key) + len(v); size > maxContext {
			size -= len(v)
			v = ""
		}
		out[f.key] = v
	}
	return out
}

// escape makes text safe inside an HTML page and inside a JSON string, and
// without the one character that starts a variable there.
func escape(s string) string {
	s = html.EscapeString(s)
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.NewReplacer("$", "&#36;", `\`, "&#92;").Replace(s))
}
