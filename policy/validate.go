package policy

import (
	"fmt"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/stilehq/stile/core"
)

// A validator checks a decoded File. It reports everything that it finds.
type validator struct {
	*reader
	f   *File
	now time.Time

	include, exclude *core.Patterns // nil when they do not compile
}

func (v *validator) all() {
	v.top()
	v.client()
	v.count()
	v.buckets()
	v.measured()
	v.identify()
	v.exempt()
	v.lent()
	v.crawlers()
	v.store()
	v.answer()
}

// fail reports an error at path, unless the value there has one already, or a
// part around it could not be read.
func (v *validator) fail(path, problem, remedy string) {
	if !v.spoilt(path) {
		v.reportAt(path, problem, remedy)
	}
}

// warn reports a warning at path, unless the value there has an error.
func (v *validator) warn(path, problem, remedy string) {
	if !v.spoilt(path) {
		p := v.place(path)
		v.warnings = append(v.warnings, Warning{Line: p.line, Env: p.env, Path: path, Problem: problem, Remedy: remedy})
	}
}

func (v *validator) spoilt(path string) bool {
	if v.bad[path] {
		return true
	}
	for path != "" {
		if v.broken[path] {
			return true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return false
}

// given reports whether the value at path is not just a default.
func (v *validator) given(path string) bool {
	_, ok := v.origin[path]
	return ok
}

var siteForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

func (v *validator) top() {
	f := v.f
	switch {
	case !v.given("version"):
		v.fail("version", "is missing", "write version: 1 at the top")
	case f.Version != 1:
		v.fail("version", fmt.Sprintf("%d is not known to this release", f.Version), "write version: 1")
	}
	if len(f.Site) > 63 || !siteForm.MatchString(f.Site) {
		v.fail("site", fmt.Sprintf("%q is no name", f.Site), "write up to 63 letters, digits, dots, dashes or underscores")
	}
	switch {
	case f.Scale <= 0:
		v.fail("scale", fmt.Sprintf("%v admits nobody", f.Scale), "write 1 for the limits as they stand, or use mode: observe")
	case f.Scale > maxScale:
		v.fail("scale", fmt.Sprintf("%v is no limit any more", f.Scale), fmt.Sprintf("write %d or less, or use mode: observe", maxScale))
	case f.Scale < 1:
		v.warn("scale", fmt.Sprintf("%v makes every limit smaller", f.Scale), "a rollout begins above 1")
	}
	if f.Mode == ModeOff {
		v.warn("mode", "off limits nobody, and counts and logs nothing", "write observe to keep counting")
	}
	if f.Contact == "" {
		v.warn("contact", "is empty: who is refused cannot ask why", "write mailto: and an address, or the https: address of a page")
	} else if problem, remedy := checkContact(f.Contact); problem != "" {
		v.fail("contact", problem, remedy)
	}
}

// maxScale bounds scale: beyond it mode: observe says better what is meant.
const maxScale = 1_000_000

func checkContact(s string) (problem, remedy string) {
	u, err := url.Parse(s)
	switch {
	case err == nil && u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"):
		return "", ""
	case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "":
		return "", ""
	case !strings.Contains(s, ":") && strings.Contains(s, "@"):
		return fmt.Sprintf("%q is no URL", s), "write mailto:" + s
	}
	return fmt.Sprintf("%q is no contact", s), "write mailto:ops@example.org or https://example.org/contact"
}

func (v *validator) client() {
	c := &v.f.Client
	provesPeers := len(c.Peers) > 0 || c.PeerSecret.Header != ""
	hops, ranges := c.TrustedHops > 0, len(c.TrustedProxies) > 0
	if c.TrustedHops < 0 || c.TrustedHops > 16 {
		v.fail("client.trusted_hops", fmt.Sprintf("%d is no number of proxies", c.TrustedHops), "write how many proxies append to X-Forwarded-For in front of Stile")
	}
	switch {
	case c.From == "xff":
		switch {
		case !hops && !ranges:
			v.fail("client.from", "xff needs to know which entry of X-Forwarded-For is the client", "write trusted_hops: 1 (one proxy in front), or list trusted_proxies")
		case hops && ranges:
			v.warn("client.trusted_hops", "has no effect: trusted_proxies wins", "keep one of them")
		}
		if !provesPeers {
			v.warn("client.peers", "is empty: whoever reaches Stile without your proxy writes its own address", "list the proxies' ranges, or set peer_secret, or close the port to everyone else")
		}
	case c.From.argument() != "":
		v.clientHeader(provesPeers)
	default:
		if hops || ranges {
			v.warn("client.from", fmt.Sprintf("%s does not read X-Forwarded-For: trusted_hops and trusted_proxies have no effect", c.From), "write from: xff if a proxy is in front")
		}
	}
	for i, p := range c.TrustedProxies {
		if p.Bits() == 0 {
			v.fail(fmt.Sprintf("client.trusted_proxies[%d]", i), p.String()+" holds every client", "list the proxies' own ranges")
		}
	}
	for i, p := range c.Peers {
		if p.Bits() == 0 {
			v.warn(fmt.Sprintf("client.peers[%d]", i), p.String()+" believes everybody", "list the proxies' own ranges")
		}
	}
	if c.PeerSecret.Header != "" {
		c.PeerSecret.Header = v.fieldName("client.peer_secret.header", c.PeerSecret.Header)
		v.strength("client.peer_secret.secrets", c.PeerSecret.Secrets, 1, 4)
	} else if c.PeerSecret.Secrets.Len() > 0 {
		v.fail("client.peer_secret.header", "is missing", "name the field that carries the secret")
	}
	if c.IPv6Prefix < 32 || c.IPv6Prefix > 64 {
		v.fail("client.ipv6_prefix", fmt.Sprintf("/%d is not what one network is given", c.IPv6Prefix), "write 32 to 64; 64 is one network, 56 one household")
	}
	if c.ASNList == "" {
		v.fail("client.asn_list", "is empty", "write hosting, all, or the path of a list of your own")
	}
	if name := c.ASN.argument(); c.ASN.Header() != "" {
		c.ASN = ASNFrom("header:" + v.fieldName("client.asn", name))
		if !provesPeers {
			v.warn("client.asn", "anyone can write "+c.ASN.Header(), "set client.peers or client.peer_secret")
		}
	}
}

func (v *validator) clientHeader(provesPeers bool) {
	name := v.fieldName("client.from", v.f.Client.From.argument())
	v.f.Client.From = ClientFrom("header:" + name)
	switch {
	case name == "X-Forwarded-For":
		v.fail("client.from", "X-Forwarded-For is a list that clients can begin", "write from: xff")
	case name == "Forwarded":
		v.fail("client.from", "Forwarded is a list that clients can begin", "have the proxy write the address into a field of its own")
	case !provesPeers:
		v.warn("client.from", "anyone can write "+name, "set client.peers or client.peer_secret, so that only your proxy is believed")
	}
}

// fieldName checks the name of a header field and returns its canonical form.
func (v *validator) fieldName(path, name string) string {
	ok := name != "" && len(name) <= 64
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0)
	}
	if !ok {
		v.fail(path, fmt.Sprintf("%q is no name of a header field", name), "write one like X-Real-IP")
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

// strength checks a number of secrets and their lengths, naming no value.
func (v *validator) strength(path string, s Secrets, least, most int) {
	for p := range v.bad {
		if strings.HasPrefix(p, path+"[") {
			return // a reference that does not resolve has been reported
		}
	}
	switch {
	case s.Len() < least:
		v.fail(path, "is missing", "put the secret into an environment variable, and write env:NAME")
	case s.Len() > most:
		v.fail(path, fmt.Sprintf("holds %d secrets", s.Len()), fmt.Sprintf("write at most %d, the newest first", most))
	}
	for _, value := range s.values {
		if len(value) < minSecret {
			v.fail(path, fmt.Sprintf("holds a secret shorter than %d characters, which can be guessed", minSecret), "make one with: openssl rand -base64 32")
		}
	}
}

// minSecret is 128 bits in base64, without padding.
const minSecret = 22

func (v *validator) store() {
	s := &v.f.Store
	if s.Timeout <= 0 {
		v.fail("store.timeout", fmt.Sprintf("%s leaves no time", formatDuration(s.Timeout)), "write a duration like 150ms")
	} else if s.Timeout > 5*time.Second {
		v.warn("store.timeout", fmt.Sprintf("every visitor may wait %s for a store that is down", formatDuration(s.Timeout)), "150ms is enough within one region")
	}
	if s.ConnectTimeout <= 0 {
		v.fail("store.connect_timeout", fmt.Sprintf("%s leaves no time", formatDuration(s.ConnectTimeout)), "write a duration like 2s")
	} else if s.ConnectTimeout < s.Timeout {
		v.warn("store.connect_timeout", "is shorter than store.timeout", "connecting takes longer than asking: 2s is usual")
	}
	for _, k := range []struct {
		path  string
		value int64
	}{{"store.max_ops_per_second", s.MaxOpsPerSecond}, {"store.max_ops_per_day", s.MaxOpsPerDay}} {
		if k.value < 0 {
			v.fail(k.path, fmt.Sprintf("%d is negative", k.value), "write 0 for no bound")
		}
	}
	if s.MaxOpsPerSecond > 0 && s.MaxOpsPerDay > 0 && s.MaxOpsPerDay < s.MaxOpsPerSecond {
		v.warn("store.max_ops_per_day", "is spent within one second at max_ops_per_second", "write a day's worth")
	}
	v.control()
	if s.MaxKeys < 1000 {
		v.fail("store.max_keys", fmt.Sprintf("%d keys are full at once", s.MaxKeys), "write 1000 or more; a key takes about 64 bytes")
	}
	switch {
	case s.Keys == KeysHMAC:
		v.keySecrets()
	case s.KeySecrets.Len() > 0:
		v.warn("store.key_secrets", "has no effect with keys: plain", "write keys: hmac")
	}
}

func (v *validator) keySecrets() {
	s := &v.f.Store
	v.strength("store.key_secrets", s.KeySecrets, 1, 2)
	if v.spoilt("store.key_secrets") || s.KeySecrets.Len() == 0 {
		return
	}
	list, err := keySecrets(s.KeySecrets.values)
	if err != nil {
		v.fail(err.Path, err.Problem, err.Remedy)
	}
	for _, k := range list {
		if len(k.Secret) < minSecret {
			v.fail("store.key_secrets", fmt.Sprintf("holds a secret shorter than %d characters, which can be guessed", minSecret), "make one with: openssl rand -base64 32")
		}
	}
}

func (v *validator) control() {
	switch c := v.f.Store.Control; {
	case c == 0:
		v.warn("store.control", "0 never asks: what `stile key lift` lifts is refused on until it ends where it is remembered", "write 30s, which costs a read per 30 s while somebody is refused")
	case c < time.Second || c > time.Hour:
		v.fail("store.control", fmt.Sprintf("%s is no time to wait for the operator's word", formatDuration(c)), "write 1s to 1h, or 0 to ask never")
	}
}

func (v *validator) answer() {
	if v.f.Doctor.Secrets.Len() > 0 {
		v.strength("doctor.secrets", v.f.Doctor.Secrets, 1, 4)
	}
	l := &v.f.Log
	switch {
	case l.IP == LogIPHMAC:
		v.strength("log.secret", l.Secret, 1, 1)
	case l.Secret.Len() > 0:
		v.warn("log.secret", "has no effect with ip: "+string(l.IP), "write ip: hmac")
	}
}
