package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/stilehq/stile/hitlog"
)

// Where Stile is only asked about pages (an API Gateway's authorizer, a proxy's
// forward-auth) it has no answer of its own in which to tell the doctor anything.
// Its hit log tells: the doctor opens two pages, as a visitor would, under a name
// that nobody else has, and looks for their lines.

// pollTime is how often a file is read again.
const pollTime = 300 * time.Millisecond

// throughLog examines a deployment by its hit log.
func (c *doctorCmd) throughLog(ctx context.Context, t *terminal, u *url.URL, r *doctorResult, expect netip.Addr) error {
	name := "stile-doctor/" + rand.Text()
	var local netip.Addr
	for i, header := range []http.Header{{}, lyingFields()} {
		header.Set("User-Agent", fmt.Sprintf("%s-%d", name, i))
		header.Set("Accept", "text/html")
		header.Set("Sec-Fetch-Dest", "document")
		quiet := *c
		quiet.DoctorSecret = "" // it is a visitor's page
		got, from, err := quiet.ask(ctx, t, u, header)
		if err != nil {
			return err
		}
		if local = from; i == 0 {
			r.say("page", "note", "answered %d, as a visitor's would be", got.status)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	lines, err := c.ownLines(ctx, t.stdin, name)
	switch {
	case err != nil:
		return err
	case lines[0] == nil:
		r.say("log", "bad", "no line for the page that was opened within %s: Stile was not asked, its mode is off, this is another log, or lines come later (--wait)", c.Wait)
		return nil
	}
	r.say("log", "ok", "site %s has a line for the page: %s, %s", lines[0].Site, lines[0].Event, lines[0].Reason)
	r.logMode(lines[0])
	r.logClient(u, lines[0], lines[1], expect, local)
	r.logStore(lines[0])
	return nil
}

// lyingFields claim an address in every field that proxies use.
func lyingFields() http.Header {
	h := http.Header{}
	for _, name := range lies {
		h.Set(name, lie)
	}
	h.Set("Forwarded", "for="+lie)
	return h
}

// ownLines reads the log until the lines of both pages are there or ctx ends.
func (c *doctorCmd) ownLines(ctx context.Context, stdin io.Reader, name string) (found [2]*hitlog.Entry, err error) {
	if c.HitLog == "-" {
		next := make(chan []byte)
		go func() { // ends with the input, or with the program
			defer close(next)
			for in := bufio.NewScanner(stdin); in.Scan(); {
				select {
				case next <- bytes.Clone(in.Bytes()):
				case <-ctx.Done():
					return
				}
			}
		}()
		for found[0] == nil || found[1] == nil {
			select {
			case line, ok := <-next:
				if !ok {
					return found, nil
				}
				own(line, name, &found)
			case <-ctx.Done():
				return found, nil
			}
		}
		return found, nil
	}
	for tick := time.NewTicker(pollTime); ; {
		file, err := os.Open(c.HitLog)
		if err != nil {
			tick.Stop()
			return found, err
		}
		for in := bufio.NewScanner(file); in.Scan(); {
			own(in.Bytes(), name, &found)
		}
		file.Close()
		select {
		case <-tick.C:
			if found[0] == nil || found[1] == nil {
				continue
			}
		case <-ctx.Done():
		}
		tick.Stop()
		return found, nil
	}
}

// own keeps the line of one of the doctor's pages. What a log's reader writes
// before the JSON, a time and a stream's name, is skipped. A counted page's line
// wins over a store error's, which comes besides.
func own(line []byte, name string, found *[2]*hitlog.Entry) {
	at := bytes.IndexByte(line, '{')
	if at < 0 || !bytes.Contains(line, []byte(name)) {
		return
	}
	e, err := hitlog.Parse(line[at:])
	if err != nil {
		return
	}
	for i := range found {
		if e.UserAgent == fmt.Sprintf("%s-%d", name, i) && (found[i] == nil || found[i].Event == hitlog.StoreError) {
			found[i] = &e
		}
	}
}

func (r *doctorResult) logMode(e *hitlog.Entry) {
	switch e.Event {
	case hitlog.WouldLimit:
		r.say("mode", "ok", "observe, or refusals are lifted: this page was over its limit and passed")
	case hitlog.Limited:
		r.say("mode", "ok", "enforce: this page was refused")
	default:
		r.say("mode", "note", "counted; a page below its limit has the same line in observe and in enforce")
	}
}

func (r *doctorResult) logClient(u *url.URL, e, lying *hitlog.Entry, expect, local netip.Addr) {
	a, err := netip.ParseAddr(e.IP)
	inside := err == nil && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast())
	switch {
	case e.IP == "":
		r.say("client", "bad", "seen as nobody: all such visitors share one budget (client.from)")
	case err != nil:
		r.say("client", "unknown", "the log has no addresses (log.ip): %s", e.IP)
	case expect.IsValid() && a.Unmap() != expect.Unmap():
		r.say("client", "bad", "seen as %s, expected %s", a, expect)
	case expect.IsValid(), onThisMachine(u.Hostname()) && a == local:
		r.say("client", "ok", "seen as %s, as expected", a)
	case inside && !onThisMachine(u.Hostname()):
		r.say("client", "bad", "seen as %s, which is an address inside of the deployment: every visitor shares it (client.from)", a)
	default:
		r.say("client", "unknown", "seen as %s; whether that is this machine's public address only you can say: --expect %s", a, a)
	}
	switch {
	case lying == nil:
		r.say("forgery", "unknown", "no line for the page whose fields lied about its address")
	case lying.IP == lie:
		r.say("forgery", "bad", "whoever writes %s into a header field is counted as that address (client.from, client.trusted_hops, client.peers)", lie)
	case lying.IP != e.IP:
		r.say("forgery", "unknown", "seen as %s a moment later: several ways lead to the instance", orNobody(lying.IP))
	default:
		r.say("forgery", "ok", "an address that is only claimed is not believed")
	}
}

func (r *doctorResult) logStore(e *hitlog.Entry) {
	switch {
	case e.Event == hitlog.StoreError || strings.HasPrefix(e.Reason, "store-error"):
		r.say("store", "bad", "%s failed: %s", e.Store, e.Reason)
	case e.Store == "memory":
		r.say("store", "bad", "memory is each instance's own: the limit is as many times higher as there are instances")
	default:
		r.say("store", "ok", "%s, asked in %.1f ms; whether records expire says --store", e.Store, e.StoreMS)
	}
}
