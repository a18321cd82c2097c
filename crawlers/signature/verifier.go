package signature

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehq/stile/crawlers/internal/fetch"
)

// An Outcome says what a request's signature proves. Only Verified may exempt
// or identify; the others mean an ordinary client, never a block.
type Outcome uint8

// The outcomes.
const (
	Unverified Outcome = iota // no signature of this profile, or none that can be judged here and now
	Invalid                   // a signature that is malformed, out of its time or false
	Verified                  // made by the named agent of the allow-list
)

// String returns the outcome as logs and tools write it.
func (o Outcome) String() string {
	switch o {
	case Verified:
		return "verified"
	case Invalid:
		return "invalid"
	default:
		return "unverified"
	}
}

// A Reason says why, for logs and tools; a fixed set.
type Reason string

// The reasons. Those above ReasonMalformed leave a signature unverified, the
// others make it invalid.
const (
	ReasonNone         Reason = "none"                  // no signature with this profile's tag
	ReasonNoAgent      Reason = "no-agent"              // no Signature-Agent
	ReasonUnknownAgent Reason = "unknown-agent"         // not on the allow-list
	ReasonNoKeys       Reason = "keys-not-held"         // the directory was not fetched yet, or too long ago
	ReasonUnknownKey   Reason = "unknown-key"           // the agent's directory holds no such key
	ReasonUnsupported  Reason = "unsupported-component" // it covers something that is not computed here
	ReasonForeignHost  Reason = "foreign-authority"     // signed for another host than this site's
	ReasonMalformed    Reason = "malformed"
	ReasonNotCovered   Reason = "not-covered"   // authority or agent unsigned, or a signed field absent
	ReasonAlgorithm    Reason = "algorithm"     // not ed25519
	ReasonEarly        Reason = "created-later" // created in the future
	ReasonExpired      Reason = "expired"
	ReasonLifetime     Reason = "lifetime" // valid for longer than is accepted
	ReasonTestKey      Reason = "test-key" // the key that everyone has
	ReasonFalse        Reason = "false"    // the signature does not fit the message
	ReasonVerified     Reason = "verified"
)

func (r Reason) outcome() Outcome {
	switch r {
	case ReasonVerified:
		return Verified
	case ReasonNone, ReasonNoAgent, ReasonUnknownAgent, ReasonNoKeys, ReasonUnknownKey, ReasonUnsupported, ReasonForeignHost:
		return Unverified
	default:
		return Invalid
	}
}

// An Agent is one signer of the allow-list.
type Agent struct {
	Name string // unique; the signer's identity in keys, logs and policies
	// Class is a class of package crawlers, "ai-user" for instance; it is not interpreted here.
	Class string
	// Directory is the pinned https URL of the agent's keys. It is never taken
	// from a request.
	Directory string
	// SignatureAgents are the values of Signature-Agent that mean this agent;
	// empty means the origin of Directory.
	SignatureAgents []string
}

// Known returns agents whose operators document that they sign. None is
// trusted until it is put into a Config.
func Known() []Agent {
	return []Agent{{ // OpenAI's help page on the ChatGPT agent's allow-listing, read 2026-10
		Name: "ChatGPT-agent", Class: "ai-user", Directory: "https://chatgpt.com/.well-known/http-message-signatures-directory",
	}}
}

// Config configures a [Verifier].
type Config struct {
	Agents []Agent // the allow-list
	// Hosts are the site's own authorities. A signature over @authority can be
	// replayed by the host that received it, to a server that answers under any
	// name: list the names here, or have the front proxy refuse others. Empty
	// accepts every authority.
	Hosts        []string
	Transport    http.RoundTripper // for directories; nil = direct, public addresses only
	Logger       *slog.Logger      // nil = slog.Default()
	Now          func() time.Time  // for refreshing; nil = time.Now
	MaxLifetime  time.Duration     // from created to expires; 0 = 24 h
	Leeway       time.Duration     // of clocks; 0 = 1 min
	MaxStale     time.Duration     // keys unconfirmed for longer prove nothing; 0 = 7 days
	AllowTestKey bool              // accept [TestKeyID]; never in production
}

// A Result is what a request's signature says.
type Result struct {
	Outcome Outcome
	Reason  Reason
	Agent   string    // the agent's name when it is on the allow-list, verified or not
	Class   string    // of that agent
	KeyID   string    // as named by the signature, when it could be read
	Nonce   string    // of a verified signature; may be empty
	Expires time.Time // of a verified signature: until then it can be repeated by whoever saw it
}

// A Verifier verifies signatures with keys that it holds. Safe for concurrent
// use; Verify does no I/O.
type Verifier struct {
	cfg     Config
	agents  []*agent
	byURL   map[string]*agent
	hosts   map[string]bool
	fetcher fetch.Client
	flight  sync.Mutex
	pauseAt atomic.Int64
}

// agent is one signer with its keys.
type agent struct {
	Agent
	keys atomic.Pointer[keySet]
	want atomic.Bool // a request named a key that is not held
	// Unix nanoseconds: of the next fetch, and of the last attempt.
	due, tried atomic.Int64
	// Guarded by Verifier.flight.
	failures int
}

type keySet struct {
	byID      map[string]key
	confirmed time.Time
	etag      string
}

// New returns a verifier without keys; [Verifier.Refresh] fetches them. The
// error reports every fault of cfg at once.
func New(cfg Config) (*Verifier, error) {
	if cfg.MaxLifetime <= 0 {
		cfg.MaxLifetime = 24 * time.Hour
	}
	if cfg.Leeway <= 0 {
		cfg.Leeway = time.Minute
	}
	if cfg.MaxStale <= 0 {
		cfg.MaxStale = 7 * 24 * time.Hour
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	v := &Verifier{cfg: cfg, byURL: map[string]*agent{}, hosts: map[string]bool{}, fetcher: fetch.Client{Transport: cfg.Transport}}
	var errs []error
	names := map[string]bool{}
	for _, a := range cfg.Agents {
		if a.Name == "" || names[a.Name] {
			errs = append(errs, fmt.Errorf("signature: agent %q: name empty or used twice", a.Name))
		}
		names[a.Name] = true
		u, err := url.Parse(a.Directory)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			errs = append(errs, fmt.Errorf("signature: agent %q: directory must be an https URL", a.Name))
			continue
		}
		ag := &agent{Agent: a}
		values := a.SignatureAgents
		if len(values) == 0 {
			values = []string{"https://" + u.Host}
		}
		for _, s := range values {
			n, ok := normalURL(s)
			if !ok || v.byURL[n] != nil {
				errs = append(errs, fmt.Errorf("signature: agent %q: %q is no https URL, or names two agents", a.Name, s))
				continue
			}
			v.byURL[n] = ag
		}
		v.agents = append(v.agents, ag)
	}
	for _, h := range cfg.Hosts {
		v.hosts[strings.ToLower(h)] = true
	}
	return v, errors.Join(errs...)
}

// normalURL makes Signature-Agent values comparable; false for all but https.
func normalURL(s string) (string, bool) {
	if len(s) > 512 {
		return "", false
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", false
	}
	return "https://" + strings.TrimSuffix(strings.ToLower(u.Host), ":443") + strings.TrimSuffix(u.EscapedPath(), "/"), true
}

// Verify judges the signatures of m at the time now. It does no I/O, never
// fails, and returns at once when no signature of this profile is there. With
// several, one that verifies wins.
func (v *Verifier) Verify(m *Message, now time.Time) Result {
	if len(m.Header.Values("Signature-Input")) == 0 {
		return Result{Reason: ReasonNone}
	}
	fields, ok := m.field("Signature-Input")
	if !ok || len(fields) > maxHeader {
		return Result{Outcome: Invalid, Reason: ReasonMalformed}
	}
	members, ok := split(fields)
	if !ok {
		return Result{Outcome: Invalid, Reason: ReasonMalformed}
	}
	worst := Result{Reason: ReasonNone}
	for _, mem := range members {
		in, ours, reason := parseInput(mem)
		if !ours {
			continue
		}
		r := Result{Reason: reason, KeyID: in.keyID}
		if reason == "" {
			r = v.judge(m, in, now)
		}
		r.Outcome = r.Reason.outcome()
		if r.Outcome == Verified {
			return r
		}
		if worst.Reason == ReasonNone {
			worst = r
		}
	}
	return worst
}

// judge applies the cheap checks first: the costly one is about 0.1 ms of CPU that
// anybody can ask for, so it is made only for keys that are held.
func (v *Verifier) judge(m *Message, in input, now time.Time) Result {
	r := Result{KeyID: in.keyID}
	end := func(why Reason) Result { r.Reason = why; return r }
	authority, agentPart := false, -1
	for i, c := range in.covered {
		switch {
		case c.name == "@authority" || c.name == "@target-uri":
			authority = true
		case c.name == "signature-agent" && agentPart < 0:
			agentPart = i
		}
	}
	field, ok := m.field("Signature-Agent")
	switch {
	case !ok:
		return end(ReasonNoAgent)
	case len(field) > maxHeader:
		return end(ReasonMalformed)
	case !authority || agentPart < 0:
		return end(ReasonNotCovered)
	}
	claimed, why := agentURL(field, in.covered[agentPart].key)
	if why != "" {
		return end(why)
	}
	normal, ok := normalURL(claimed)
	if !ok {
		return end(ReasonUnknownAgent)
	}
	a := v.byURL[normal]
	if a == nil {
		return end(ReasonUnknownAgent)
	}
	r.Agent, r.Class = a.Name, a.Class
	if in.alg != "" && in.alg != "ed25519" {
		return end(ReasonAlgorithm)
	}
	if in.keyID == TestKeyID && !v.cfg.AllowTestKey {
		return end(ReasonTestKey)
	}
	if why := v.times(in, now); why != "" {
		return end(why)
	}
	if len(v.hosts) > 0 && !v.hosts[m.authority()] {
		return end(ReasonForeignHost)
	}
	keys := a.keys.Load()
	if keys == nil || now.Sub(keys.confirmed) > v.cfg.MaxStale {
		return end(ReasonNoKeys)
	}
	k, ok := keys.byID[in.keyID]
	if !ok {
		a.want.Store(true) // perhaps it has rotated: Refresh asks, at most every few minutes
		return end(ReasonUnknownKey)
	}
	if !k.validAt(now) {
		return end(ReasonUnknownKey)
	}
	sigs, _ := m.field("Signature")
	if len(sigs) > maxHeader {
		return end(ReasonMalformed)
	}
	sig, ok := signatureOf(sigs, in.label)
	if !ok || len(sig) != ed25519.SignatureSize {
		return end(ReasonMalformed)
	}
	base, why := m.base(in.covered, in.raw)
	if why != "" {
		return end(why)
	}
	if !ed25519.Verify(k.public, base, sig) {
		return end(ReasonFalse)
	}
	r.Nonce, r.Expires = in.nonce, time.Unix(in.expires, 0)
	return end(ReasonVerified)
}

func (v *Verifier) times(in input, now time.Time) Reason {
	at, leeway := now.Unix(), int64(v.cfg.Leeway/time.Second)
	switch {
	case in.created > at+leeway:
		return ReasonEarly
	case in.expires <= at-leeway, in.expires <= in.created:
		return ReasonExpired
	case in.expires-in.created > int64(v.cfg.MaxLifetime/time.Second):
		return ReasonLifetime
	}
	return ""
}
