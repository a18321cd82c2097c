package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/hitlog"
)

// verdictOf reads both forms of an authorizer's answer.
type verdictOf struct {
	PrincipalID    string
	PolicyDocument struct {
		Version   string
		Statement []struct{ Action, Effect, Resource string }
	}
	IsAuthorized *bool
	Context      map[string]any
}

func (v *verdictOf) allowed() bool {
	if v.IsAuthorized != nil {
		return *v.IsAuthorized
	}
	return len(v.PolicyDocument.Statement) == 1 && v.PolicyDocument.Statement[0].Effect == "Allow"
}

func TestRESTAuthorizer(t *testing.T) {
	t.Parallel()
	f, log := build(t, map[string]string{"STILE_POLICY": policyOf("{from: remote}", 3, "")})
	for i := range 4 {
		var v verdictOf
		if err := invoke(t, f, fixture(t, "rest-authorizer"), &v); err != nil {
			t.Fatal(err)
		}
		if v.allowed() != (i < 3) || v.PrincipalID == "" || v.PolicyDocument.Version != "2012-10-17" {
			t.Fatalf("navigation %d: %+v", i+1, v)
		}
		s := v.PolicyDocument.Statement[0]
		if s.Action != "execute-api:Invoke" || s.Resource != "arn:aws:execute-api:eu-west-1:123456789012:abc123/prod/*" {
			t.Errorf("statement %+v", s)
		}
		for k, value := range v.Context {
			if text, ok := value.(string); !ok || strings.ContainsAny(text, "$\\<>\n") {
				t.Errorf("context.%s = %v: want text that is safe in a template", k, value)
			}
		}
		if i < 3 {
			if v.Context[keyLimited] != "0" || v.Context[keyOutcome] != "allow" || v.Context[keyXRemaining] != string(rune('2'-i)) {
				t.Errorf("context %v", v.Context)
			}
			continue
		}
		for k, want := range map[string]string{keyLimited: "1", keyOutcome: "limited", keyRule: "3 pages per hour", keyXRemaining: "0", keyXLimit: "3"} {
			if v.Context[k] != want {
				t.Errorf("context.%s = %v, want %q", k, v.Context[k], want)
			}
		}
		ref, _ := v.Context[keyRef].(string)
		if !answer.ValidRef(ref) || !strings.Contains(log.String(), ref) {
			t.Errorf("reference %q is not in the log", ref)
		}
		for _, k := range []string{keyRetryAfter, keyWait, keyUntil, keyRateLimit, keyRatePolicy, keyXReset} {
			if v.Context[k] == "" {
				t.Errorf("context.%s is empty on a refusal", k)
			}
		}
	}
	lines := 0
	for line := range strings.Lines(log.String()) {
		e, err := hitlog.Parse([]byte(line))
		if err != nil {
			continue
		}
		lines++
		if e.Trace != "1-6929a1c0-0123456789abcdef01234567" || e.IP != "198.51.100.7" || e.Event == hitlog.Limited && (e.Status != 429 || e.Severity != "WARN") {
			t.Errorf("line %+v", e)
		}
	}
	if lines != 4 {
		t.Errorf("%d lines in the hit log, want 4", lines)
	}
}

// TestAuthorizersHandTheCookieOut: an authorizer makes no answer, so the visitor
// cookie is in its context for whoever does.
func TestAuthorizersHandTheCookieOut(t *testing.T) {
	t.Parallel()
	f, _ := build(t, map[string]string{
		"STILE_POLICY":  policyOf("{from: remote}", 3, "identify: {cookie: {name: __Host-stile, secrets: env:COOKIE_SECRET}}\n"),
		"COOKIE_SECRET": strings.Repeat("s", 40),
	})
	var v verdictOf
	if err := invoke(t, f, fixture(t, "rest-authorizer"), &v); err != nil {
		t.Fatal(err)
	}
	cookie, _ := v.Context[keySetCookie].(string)
	if !strings.HasPrefix(cookie, "__Host-stile=") || !strings.Contains(cookie, "HttpOnly") || strings.ContainsAny(cookie, "$<>\\\n\"") {
		t.Errorf("context.%s = %q", keySetCookie, cookie)
	}
}

// TestLongPathsAndContexts: neither a visitor's path nor many buckets take the
// answer over the documented bounds.
func TestLongPathsAndContexts(t *testing.T) {
	t.Parallel()
	var more strings.Builder
	for i := range 30 { // with the two below, the most that a policy may have
		more.WriteString("  - {name: " + strings.Repeat("b", 30) + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ", key: address, algorithm: fixed-window, limit: 500, window: 1h}\n")
	}
	text := strings.Replace(policyOf("{from: remote}", 1, ""), "exempt:", more.String()+"exempt:", 1)
	f, log := build(t, map[string]string{"STILE_POLICY": text})
	var e map[string]any
	if err := json.Unmarshal(fixture(t, "rest-authorizer"), &e); err != nil {
		t.Fatal(err)
	}
	e["methodArn"] = "arn:aws:execute-api:eu-west-1:123456789012:abc123/prod/GET/" + strings.Repeat("long/", 300)
	payload, _ := json.Marshal(e)
	for range 2 {
		r, err := f.Invoke(t.Context(), payload)
		if err != nil {
			t.Fatal(err, log)
		}
		out, _ := io.ReadAll(r)
		var v verdictOf
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatal(err)
		}
		if len(out) > 8000 || len(v.PolicyDocument.Statement[0].Resource) > 512 {
			t.Errorf("answer of %d bytes, resource of %d", len(out), len(v.PolicyDocument.Statement[0].Resource))
		}
		size := 0
		for k, text := range v.Context {
			size += len(k) + len(text.(string))
		}
		if size > 4096 || v.Context[keyXLimit] == "" {
			t.Errorf("context of %d bytes: %v", size, v.Context)
		}
	}
}

func TestHTTPAuthorizers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"http-authorizer-1.0", "http-authorizer-2.0"} {
		for _, deny := range []string{"", "context", "forbid"} {
			f, log := build(t, map[string]string{"STILE_POLICY": policyOf("{from: remote}", 1, ""), "STILE_HTTP_API_DENY": deny})
			for i := range 2 {
				var v verdictOf
				if err := invoke(t, f, fixture(t, name), &v); err != nil {
					t.Fatal(err)
				}
				if want := i == 0 || deny != "forbid"; v.allowed() != want || (v.IsAuthorized != nil) != (name == "http-authorizer-2.0") {
					t.Errorf("%s, %q, navigation %d: %+v", name, deny, i+1, v)
				}
				if want := string(rune('0' + i)); v.Context[keyLimited] != want {
					t.Errorf("%s, %q: context.limited %v, want %s", name, deny, v.Context[keyLimited], want)
				}
			}
			if forbidden := strings.Contains(log.String(), `"status":403`); forbidden != (deny == "forbid") {
				t.Errorf("%s, %q: the log says 403: %v", name, deny, forbidden)
			}
		}
	}
}

func TestObserveRefusesNobody(t *testing.T) {
	t.Parallel()
	f, log := build(t, map[string]string{"STILE_POLICY": policyOf("{from: remote}", 1, ""), "STILE_MODE": "observe"})
	for range 3 {
		var v verdictOf
		if err := invoke(t, f, fixture(t, "rest-authorizer"), &v); err != nil || !v.allowed() || v.Context[keyLimited] != "0" {
			t.Fatalf("%v %+v", err, v)
		}
	}
	if !strings.Contains(log.String(), "would-limit") {
		t.Error("no would-limit in the log")
	}
}

// limiter misbehaves as a limiter never should.
type limiter struct {
	policy core.Policy
	decide func(context.Context) core.Decision
}

func (l *limiter) Decide(ctx context.Context, _ *core.Request) core.Decision { return l.decide(ctx) }
func (l *limiter) Answered(context.Context, *core.Request, *core.Decision, core.Answer) bool {
	return false
}
func (l *limiter) Settle(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
func (l *limiter) Policy() *core.Policy             { return &l.policy }

// TestTheAuthorizerAnswersInTime: whatever a limiter does, visitors get the
// answer of store.on_error, and in time.
func TestTheAuthorizerAnswersInTime(t *testing.T) {
	t.Parallel()
	panics := func(context.Context) core.Decision { panic("boom") }
	hangs := func(context.Context) core.Decision { select {} }
	leftovers := func(context.Context) core.Decision {
		return core.Decision{Outcome: core.Admit, Class: core.Counted, Binding: -1, States: make([]core.State, 1)}
	}
	for _, c := range []struct {
		name   string
		decide func(context.Context) core.Decision
		mode   core.FailureMode
		allow  bool
	}{
		{"panic open", panics, core.FailOpen, true},
		{"panic closed", panics, core.FailClosed, false},
		{"hang open", hangs, core.FailOpen, true},
		{"hang closed", hangs, core.FailClosed, false},
		{"settle hangs", leftovers, core.FailOpen, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := limiterFor(t, "")
			f.site.Limiter = &limiter{policy: core.Policy{OnError: c.mode}, decide: c.decide}
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			r, err := f.Invoke(ctx, fixture(t, "rest-authorizer"))
			if ctx.Err() != nil {
				t.Fatal("out of time")
			}
			if !c.allow {
				// A policy that fails closed is a 503, by way of AUTHORIZER_FAILURE.
				if !errors.Is(err, errUnavailable) {
					t.Fatalf("error %v, want %v", err, errUnavailable)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var v verdictOf
			if err := json.NewDecoder(r).Decode(&v); err != nil || !v.allowed() {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

func TestClosedPolicyOnHTTPAPI(t *testing.T) {
	t.Parallel()
	for _, deny := range []string{"context", "forbid"} {
		f, _ := build(t, map[string]string{"STILE_POLICY": policyOf("{from: remote}", 1, ""), "STILE_HTTP_API_DENY": deny})
		f.site.Limiter = &limiter{policy: core.Policy{OnError: core.FailClosed}, decide: func(context.Context) core.Decision {
			return core.Decision{Outcome: core.Unavailable, Class: core.Counted, Binding: -1, Reason: core.ReasonStoreClosed, Err: errors.New("down")}
		}}
		var v verdictOf
		if err := invoke(t, f, fixture(t, "http-authorizer-2.0"), &v); err != nil || v.allowed() != (deny == "context") || v.Context[keyOutcome] != answer.OutcomeUnavailable || v.Context[keyLimited] != "0" {
			t.Errorf("%s: %+v, %v", deny, v, err)
		}
	}
}

// TestBrokenConfigurationAllows: a mistake in the policy locks nobody out.
func TestBrokenConfigurationAllows(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"no policy":    {},
		"wrong policy": {"STILE_POLICY": "version: 2\n"},
		"wrong store":  {"STILE_POLICY": policyOf("{from: remote}", 1, ""), "STILE_STORE": "firestore://project"},
	} {
		f, log := build(t, env)
		for _, event := range []string{"rest-authorizer", "http-authorizer-1.0", "http-authorizer-2.0", "rest-authorizer-token", "websocket-authorizer"} {
			for range 3 {
				var v verdictOf
				if err := invoke(t, f, fixture(t, event), &v); err != nil || !v.allowed() {
					t.Errorf("%s, %s: %+v, %v", name, event, v, err)
				}
			}
		}
		if !strings.Contains(log.String(), "NOTHING IS LIMITED") || !strings.Contains(log.String(), `"level":"ERROR"`) {
			t.Errorf("%s: the log does not say so: %s", name, log)
		}
	}
}

func TestResource(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{
		"arn:aws:execute-api:us-east-1:1:abc/test/GET/a/b":      "arn:aws:execute-api:us-east-1:1:abc/test/*",
		"arn:aws-cn:execute-api:cn-north-1:1:abc/$default/GET/": "arn:aws-cn:execute-api:cn-north-1:1:abc/$default/*",
		"arn:aws:execute-api:us-east-1:1:abc":                   "*",
		"":                                                      "*", "x/y": "*",
		"arn:" + strings.Repeat("x", 600) + "/test/GET/": "*",
	} {
		if got := resource(arn); got != want {
			t.Errorf("%.80s: %s, want %s", arn, got, want)
		}
	}
}

func TestEscape(t *testing.T) {
	t.Parallel()
	if got := escape("a<b>\"c\" $d \\e\n\x00'"); strings.ContainsAny(got, "<>\"$\\\n\x00'") {
		t.Errorf("%q", got)
	}
}
