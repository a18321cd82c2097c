package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/wire"
)

type doctorCmd struct {
	URL          string        `arg:"" help:"A page of the deployed site."`
	DoctorSecret string        `placeholder:"SECRET" help:"One of the policy's doctor.secrets; better set by the variable, as command lines are seen by others."`
	Expect       string        `placeholder:"ADDR" help:"The public address that this machine has; default: not known, so only what is plainly wrong is found."`
	Policy       string        `placeholder:"FILE" help:"With --store: the policy file; default: the example policy."`
	Store        string        `placeholder:"URL" help:"Also examine this store from here, with the operator's own rights: whether expiry is on."`
	HitLog       string        `placeholder:"FILE" help:"Examine a deployment that is only asked about pages (an authorizer, forward-auth) by its hit log: opens two pages, which count, and looks for their lines in FILE (- = standard input)."`
	Wait         time.Duration `placeholder:"TIME" default:"1m" help:"With --hit-log: how long lines may take to come."`
	MaxAge       time.Duration `placeholder:"TIME" default:"0s" help:"How old crawler ranges may be; default: as the instance's policy says."`
	JSON         bool          `help:"Write the result as JSON."`
}

// Help is shown by --help.
func (doctorCmd) Help() string {
	return "Asks one instance how it sees this very request, and how it is: whoever sends one of the policy's doctor.secrets is told. " +
		"Nothing is counted. A second request lies about its address in every field that proxies use; the instance must not believe it.\n\n" +
		"Behind a balancer one instance answers, and others may be different. An instance with a CDN before it must be reached through it.\n\n" +
		"An authorizer or a forward-auth endpoint has no answer of its own to tell anything in: give its hit log (--hit-log).\n\n" +
		"Exit status 0: all is well. 1: something is not, or could not be found out. 2: wrong use. 3: the URL did not answer, or the log or store could not be read.\n\n" +
		"Examples:\n" +
		"  export STILE_DOCTOR_SECRET=...      (in the policy: doctor: {secrets: env:STILE_DOCTOR_SECRET})\n" +
		"  stile doctor https://www.example.org/\n" +
		"  stile doctor --expect 203.0.113.9 --policy stile.yaml --store firestore://my-project https://www.example.org/\n" +
		"  aws logs tail /aws/lambda/stile --follow --format short | stile doctor --hit-log - --expect 203.0.113.9 https://www.example.org/"
}

// A check is one thing that was examined.
type check struct {
	Name   string `json:"name"`
	Result string `json:"result"` // ok, bad, unknown, or note
	Text   string `json:"text"`
}

type doctorResult struct {
	URL       string          `json:"url"`
	OK        bool            `json:"ok"`
	Checks    []check         `json:"checks"`
	Diagnosis *wire.Diagnosis `json:"diagnosis,omitempty"` // as the instance told it
}

func (r *doctorResult) say(name, result, format string, args ...any) {
	r.Checks = append(r.Checks, check{name, result, fmt.Sprintf(format, args...)})
}

// Run examines one deployment.
func (c *doctorCmd) Run(ctx context.Context, t *terminal) error {
	u, expect, err := c.parse()
	if err != nil {
		return misuse(err)
	}
	r := &doctorResult{URL: u.Redacted()}
	if c.HitLog != "" {
		if err := c.throughLog(ctx, t, u, r, expect); err != nil {
			return err
		}
		return c.conclude(ctx, t, r)
	}
	first, local, err := c.ask(ctx, t, u, nil)
	switch {
	case err != nil:
		return err
	case first.diagnosis == nil:
		r.say("instance", "bad", "%s", first.silence(c.DoctorSecret != ""))
	default:
		r.Diagnosis = first.diagnosis
		r.say("instance", "ok", "site %s, scale %g", first.diagnosis.Site, first.diagnosis.Scale)
		if off := first.diagnosis.Time.Sub(t.now()).Abs(); off > 5*time.Second {
			r.say("clock", "note", "the instance's clock and this machine's are %s apart: windows begin by the instance's", off.Round(time.Second))
		}
		c.mode(r)
		c.client(ctx, t, u, r, expect, local)
		c.store(r)
		c.tables(r)
		for _, w := range first.diagnosis.Warnings {
			r.say("policy", "note", "%s", w)
		}
	}
	return c.conclude(ctx, t, r)
}

// conclude examines the store, if that was asked for, and prints what was found.
func (c *doctorCmd) conclude(ctx context.Context, t *terminal, r *doctorResult) (err error) {
	if c.Store != "" {
		if err := c.examine(ctx, t, r); err != nil {
			return err
		}
	}
	r.OK = true
	for _, k := range r.Checks {
		r.OK = r.OK && (k.Result == "ok" || k.Result == "note")
	}
	if c.JSON {
		err = writeJSON(t.stdout, r)
	} else {
		err = r.print(t.stdout)
	}
	switch {
	case err != nil:
		return err
	case !r.OK:
		return badNews(nil)
	}
	return nil
}

func (c *doctorCmd) parse() (*url.URL, netip.Addr, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, netip.Addr{}, fmt.Errorf("%q: want an address such as https://www.example.org/", plain(c.URL))
	}
	if u.Scheme == "http" && c.DoctorSecret != "" && !onThisMachine(u.Hostname()) {
		return nil, netip.Addr{}, errors.New("a secret is sent over https: only, except to this machine")
	}
	var expect netip.Addr
	if c.Expect != "" {
		a, ok := core.ParseClient(c.Expect)
		if !ok {
			return nil, netip.Addr{}, fmt.Errorf("--expect %q: want an IP address", plain(c.Expect))
		}
		expect = a
	}
	return u, expect, nil
}

func onThisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

func (c *doctorCmd) mode(r *doctorResult) {
	d := r.Diagnosis
	switch {
	case d.Mode == "off":
		r.say("mode", "bad", "off: nobody is limited, nothing is counted")
	case d.Open != "":
		r.say("mode", "bad", "%s, but the operator lets nobody be refused until %s (stile key lift --all --for 0s ends it)", d.Mode, d.Open)
	case d.Mode == "observe":
		r.say("mode", "ok", "observe: pages are counted and logged, nobody is refused")
	default:
		r.say("mode", "ok", "%s", d.Mode)
	}
}

// client judges the one thing on which all counting rests.
func (c *doctorCmd) client(ctx context.Context, t *terminal, u *url.URL, r *doctorResult, expect, local netip.Addr) {
	seen := r.Diagnosis.Client
	a, err := netip.ParseAddr(seen.Addr)
	public := local.IsValid() && local.IsGlobalUnicast() && !local.IsPrivate()
	switch {
	case seen.Problem != "ok":
		r.say("client", "bad", "seen as %s, because client.from: %s is %s", orNobody(seen.Addr), seen.From, seen.Problem)
	case err != nil:
		r.say("client", "bad", "seen as nobody: all such visitors share one budget (client.from: %s)", seen.From)
	case expect.IsValid() && a != expect.Unmap():
		r.say("client", "bad", "seen as %s, expected %s (client.from: %s)", a, expect, seen.From)
	case expect.IsValid():
		r.say("client", "ok", "seen as %s, as expected", a)
	case (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()) && !onThisMachine(u.Hostname()) && public:
		r.say("client", "bad", "seen as %s, which is an address inside of the deployment: every visitor shares it (client.from: %s)", a, seen.From)
	case public && a != local:
		r.say("client", "unknown", "seen as %s; this machine's own address is %s. With a proxy or a NAT between, say --expect", a, local)
	case public || onThisMachine(u.Hostname()):
		r.say("client", "ok", "seen as %s, this machine's own address", a)
	case a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast():
		r.say("client", "unknown", "seen as %s: right only if this machine and the instance are in one network; say --expect", a)
	default:
		r.say("client", "unknown", "seen as %s; whether that is this machine's public address only you can say: --expect %s", a, a)
	}
	again, _, err := c.ask(ctx, t, u, lyingFields())
	switch {
	case err != nil || again.diagnosis == nil:
		r.say("forgery", "unknown", "the instance did not answer a second time, to a request that lies about its address")
	case again.diagnosis.Client.Addr == lie && onThisMachine(u.Hostname()):
		r.say("forgery", "unknown", "believed, as this machine may be a peer that is (client.peers); ask from outside")
	case again.diagnosis.Client.Addr == lie:
		r.say("forgery", "bad", "whoever writes %s into a header field is counted as that address (client.trusted_hops, client.peers)", lie)
	case again.diagnosis.Client.Addr != seen.Addr:
		r.say("forgery", "unknown", "seen as %s a moment later: several ways lead to the instance", orNobody(again.diagnosis.Client.Addr))
	default:
		r.say("forgery", "ok", "an address that is only claimed is not believed")
	}
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

func (c *doctorCmd) store(r *doctorResult) { r.storeChecks("store", r.Diagnosis.Store) }

func (r *doctorResult) storeChecks(name string, s wire.StoreDiagnosis) {
	switch {
	case !s.Reachable:
		r.say(name, "bad", "%s cannot be read (store.on_error: %s): %s", s.Name, s.OnError, s.Error)
	case s.Breaker != "closed":
		r.say(name, "bad", "%s answers now, but did not lately: the breaker is %s", s.Name, s.Breaker)
	default:
		r.say(name, "ok", "%s, read in %.1f ms", s.Name, s.ReadMS)
	}
	if s.Finding != "" && s.Reachable {
		r.say(name, "bad", "%s", s.Finding)
	}
	if !s.Shared {
		r.say(name, "bad", "%s is each instance's own: the limit is as many times higher as there are instances, and a day is forgotten when one ends", s.Name)
	}
	if s.Unknown > 0 || s.Spent > 0 {
		r.say(name, "note", "since it started: %d rows with an unknown outcome, %d not sent because of a spending limit", s.Unknown, s.Spent)
	}
}

func (c *doctorCmd) tables(r *doctorResult) {
	t := r.Diagnosis.Crawlers
	most := time.Duration(t.MaxAgeS * float64(time.Second))
	if c.MaxAge > 0 {
		most = c.MaxAge
	}
	oldest := time.Duration(t.OldestS * float64(time.Second))
	switch {
	case !t.Proving:
		r.say("crawlers", "note", "the policy treats no crawlers specially, so none is proven")
	case t.Empty == t.Lists:
		r.say("crawlers", "bad", "no ranges are held: verified crawlers are limited like anybody")
	case oldest > most:
		r.say("crawlers", "bad", "ranges are %s old, more than %s: stile crawlers update, or let instances reach the lists", days(oldest), days(most))
	case t.Empty > 0:
		r.say("crawlers", "note", "%d of %d lists hold nothing yet; the oldest of the others is %s old", t.Empty, t.Lists, days(oldest))
	default:
		r.say("crawlers", "ok", "%d lists, the oldest %s old", t.Lists, days(oldest))
	}
}

// examine looks at the store from here, with the operator's rights.
func (c *doctorCmd) examine(ctx context.Context, t *terminal, r *doctorResult) error {
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	ready, err := t.counters(ctx, f, c.Store)
	if err != nil {
		return wiringFailure(c.Policy, err)
	}
	defer ready.Close(context.WithoutCancel(ctx))
	r.storeChecks("store, from here", ready.Examine(ctx))
	if r.Diagnosis != nil && r.Diagnosis.Site != f.Site {
		r.say("site", "bad", "the instance counts for %s, the policy given here for %s: different records", r.Diagnosis.Site, f.Site)
	}
	if d, ok := ready.Driver().(interface{ CheckTTL(context.Context) error }); ok {
		if err := d.CheckTTL(ctx); err != nil {
			r.say("expiry", "bad", "%v", err)
		} else {
			r.say("expiry", "ok", "records are deleted when their time is over")
		}
	}
	return nil
}

// print writes the result for people.
func (r *doctorResult) print(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n", plain(r.URL))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	bad := 0
	for _, k := range r.Checks {
		if k.Result == "bad" || k.Result == "unknown" {
			bad++
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", strings.ToUpper(k.Result), k.Name, plain(k.Text))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.OK {
		b.WriteString("\nAll is well.\n")
	} else {
		fmt.Fprintf(&b, "\n%s to look at.\n", count(bad, "thing"))
	}
	_, err := out.Write(b.Bytes())
	return err
}
