package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/stilehq/stile/answer"
	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/stores/all"
	"github.com/stilehq/stile/wire"
)

type explainCmd struct {
	Policy string   `placeholder:"FILE" help:"Policy file; default: the example policy."`
	Store  string   `placeholder:"URL" help:"Store whose counts are read; default: an empty one in memory."`
	Client string   `placeholder:"ADDR" help:"The client's address, whatever the policy's client source would find."`
	Peer   string   `placeholder:"ADDR" default:"127.0.0.1" help:"The connection's other end, from where the policy's client source starts."`
	Header []string `placeholder:"'NAME: VALUE'" sep:"none" help:"A header line of the request; repeatable."`
	JSON   bool     `help:"Write the result as JSON."`
	Method string   `arg:"" help:"Method, such as GET."`
	URL    string   `arg:"" help:"Address or path of the page."`
}

// Help is shown by --help.
func (explainCmd) Help() string {
	return "Nothing is charged: the store is read once for each row. Without headers the request is one that a simple bot sends. " +
		"Crawlers are verified by the built-in ranges and those of crawlers.file, without network. " +
		"Exit status 1: a verified crawler would be limited.\n\n" +
		"Examples:\n" +
		"  stile explain --client 203.0.113.9 GET https://example.org/articles/1\n" +
		"  stile explain --header 'Sec-Fetch-Dest: image' GET /articles/1\n" +
		"  stile explain --policy stile.yaml --peer 10.0.0.2 --header 'X-Forwarded-For: 203.0.113.9' GET /"
}

// Run explains one request.
func (c *explainCmd) Run(ctx context.Context, t *terminal) error {
	f, _, err := t.loadPolicy(c.Policy)
	if err != nil {
		return policyFailure(c.Policy, err)
	}
	q, err := c.request(t.now())
	if err != nil {
		return misuse(err)
	}
	if c.Client != "" {
		f.Client.From = "remote"
	}
	registry, err := all.Registry()
	if err != nil {
		return err
	}
	// Of every class, also of those that the policy treats ordinarily and an
	// instance therefore does not prove: limiting one is news to be told.
	known, err := t.verifier(f.Path(f.Crawlers.File), false)
	if err != nil {
		return err
	}
	ready, err := wire.New(ctx, wire.Config{
		Policy: f, Stores: registry, StoreURL: c.Store, Getenv: t.getenv,
		HitLog: slog.DiscardHandler, Crawlers: known, Now: t.now,
	})
	if err != nil {
		return wiringFailure(c.Policy, err)
	}
	e := ready.Explain(ctx, q)
	problem := ready.StoreProblem
	if err := ready.Close(context.WithoutCancel(ctx)); err != nil && problem == nil {
		problem = err
	}
	result := c.result(&e)
	if c.JSON {
		err = writeJSON(t.stdout, result)
	} else {
		err = result.print(t.stdout, e.Decision.States)
	}
	switch {
	case err != nil:
		return err
	case e.Decision.Err != nil:
		return fmt.Errorf("the store could not be read: %w", e.Decision.Err)
	case problem != nil:
		return fmt.Errorf("the store: %w", problem)
	case limitsCrawler(&e.Decision):
		return badNews(nil)
	}
	return nil
}

// limitsCrawler reports the bad news that a verified crawler would be limited. A
// policy may mean it, but no script should pass over it.
func limitsCrawler(d *core.Decision) bool {
	return d.Crawler.Verified && d.Outcome == core.Refuse
}

func (c *explainCmd) request(now time.Time) (*core.Request, error) {
	u, err := url.ParseRequestURI(c.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: want an address such as https://example.org/page, or a path", plain(c.URL))
	case u.Path == "":
		u.Path = "/"
	}
	header := http.Header{}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("--header %q: want 'Name: value'", plain(line))
		}
		header.Add(name, strings.TrimSpace(value))
	}
	peer, flag := c.Peer, "--peer"
	if c.Client != "" {
		peer, flag = c.Client, "--client"
	}
	addr, ok := core.ParseClient(peer)
	if !ok {
		return nil, fmt.Errorf("%s %q: want an IP address", flag, plain(peer))
	}
	return &core.Request{
		Method: c.Method, Host: u.Host, Path: u.Path, RawQuery: u.RawQuery,
		Header: header, Peer: addr, Platform: netip.Addr{}, Time: now,
	}, nil
}

// explanation is the result in JSON.
type explanation struct {
	Method     string         `json:"method"`
	URL        string         `json:"url"`
	Outcome    string         `json:"outcome"`
	Reason     string         `json:"reason"`
	Class      string         `json:"class"`
	Observe    bool           `json:"observe"` // refusing is only logged
	Client     string         `json:"client"`
	KeyType    string         `json:"key_type,omitempty"`
	Key        string         `json:"key,omitempty"`
	Crawler    string         `json:"crawler,omitempty"` // verified
	RetryAfter int64          `json:"retry_after,omitempty"`
	Buckets    []bucketResult `json:"buckets"`
	Steps      []stepResult   `json:"steps"`
}

type bucketResult struct {
	Name      string `json:"name"`
	KeyType   string `json:"key_type"`
	Count     int64  `json:"count"`
	Limit     int64  `json:"limit"`
	Remaining int64  `json:"remaining"`
	WindowS   int64  `json:"window_s"`
	ResetS    int64  `json:"reset_s"`
}

type stepResult struct {
	Topic string `json:"topic"`
	Text  string `json:"text"`
}

func (c *explainCmd) result(e *core.Explanation) explanation {
	d := &e.Decision
	r := explanation{
		Method: c.Method, URL: c.URL, Outcome: d.Outcome.String(), Reason: string(d.Reason), Class: d.Class.String(), Observe: d.Observe,
		Client: "unidentified", Buckets: []bucketResult{},
	}
	if d.Client.Addr.IsValid() {
		r.Client = d.Client.Addr.String()
	}
	if d.Key.Kind != 0 {
		r.KeyType, r.Key = d.Key.Kind.String(), d.Key.Display()
	}
	if d.Crawler.Verified {
		r.Crawler = d.Crawler.Name
	}
	if d.RetryAfter > 0 {
		r.RetryAfter = answer.Seconds(d.RetryAfter)
	}
	for _, s := range d.States {
		r.Buckets = append(r.Buckets, bucketResult{
			Name: s.Bucket, KeyType: s.Key.String(), Count: s.Count, Limit: s.Limit, Remaining: s.Remaining,
			WindowS: int64(s.Window / time.Second), ResetS: secondsUp(s.Reset),
		})
	}
	for _, s := range e.Steps {
		if s.Topic == "client" && c.Client != "" {
			s.Text = r.Client + ", as --client says; the policy's client source was not asked"
		}
		r.Steps = append(r.Steps, stepResult(s))
	}
	return r
}

// secondsUp rounds up, and leaves 0 as it is: all is available.
func secondsUp(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// print writes the result for people.
func (r *explanation) print(w io.Writer, states []core.State) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\n\n", plain(r.Method), plain(r.URL))
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "  %-9s %s\n", s.Topic, plain(s.Text))
	}
	if len(states) > 0 {
		b.WriteString("\n")
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "  BUCKET\tKEY\tWINDOW\tCOUNT\tLIMIT\tLEFT\tRESET\n")
		for _, s := range states {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%d\t%d\t%d\t%d s\n", plain(s.Bucket), s.Key, short(s.Window), s.Count, s.Limit, s.Remaining, secondsUp(s.Reset))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// short writes a whole number of hours, minutes or seconds.
func short(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
