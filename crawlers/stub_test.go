package crawlers

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// dnsStub is a DNS server on UDP and TCP that answers from a zone.
type dnsStub struct {
	mu      sync.Mutex
	records map[string][]dns.RR // by type and lower-case name
	fail    map[string]int      // name -> response code
	hang    atomic.Bool
	queries atomic.Int64
	addr    string
	conns   map[string]*atomic.Int64 // by network
}

func newDNS(t *testing.T, zone ...string) *dnsStub {
	t.Helper()
	s := &dnsStub{records: map[string][]dns.RR{}, fail: map[string]int{}, conns: map[string]*atomic.Int64{"udp": {}, "tcp": {}}}
	s.add(t, zone...)
	var udp net.PacketConn
	var tcp net.Listener
	var err error
	for range 20 { // the port that UDP got may be taken on TCP
		if udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if tcp, err = net.Listen("tcp", udp.LocalAddr().String()); err == nil {
			break
		}
		_ = udp.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.addr = udp.LocalAddr().String()
	for _, srv := range []*dns.Server{{PacketConn: udp, Handler: s}, {Listener: tcp, Handler: s}} {
		go func() { _ = srv.ActivateAndServe() }()
		t.Cleanup(func() { _ = srv.Shutdown() })
	}
	return s
}

// add puts records in zone-file form.
func (s *dnsStub) add(t *testing.T, zone ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range zone {
		rr, err := dns.NewRR(line)
		if err != nil {
			t.Fatal(err)
		}
		k := dns.TypeToString[rr.Header().Rrtype] + " " + strings.ToLower(rr.Header().Name)
		s.records[k] = append(s.records[k], rr)
	}
}

// refuse makes a name fail with a response code.
func (s *dnsStub) refuse(name string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail[name] = code
}

func (s *dnsStub) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	s.queries.Add(1)
	s.conns[w.RemoteAddr().Network()].Add(1)
	if s.hang.Load() {
		return
	}
	m := new(dns.Msg).SetReply(r)
	q := r.Question[0]
	name := strings.ToLower(q.Name)
	s.mu.Lock()
	m.Answer = append(m.Answer, s.records[dns.TypeToString[q.Qtype]+" "+name]...)
	if code, ok := s.fail[name]; ok {
		m.Rcode = code
	} else if len(m.Answer) == 0 {
		m.Rcode = dns.RcodeNameError
	}
	s.mu.Unlock()
	if w.RemoteAddr().Network() == "udp" {
		m.Truncate(dns.MinMsgSize)
	}
	_ = w.WriteMsg(m)
}

func (s *dnsStub) resolver() Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, s.addr)
	}}
}

// ptr is the PTR record of an address.
func ptr(t *testing.T, addr, name string) string {
	t.Helper()
	rev, err := dns.ReverseAddr(addr)
	if err != nil {
		t.Fatal(err)
	}
	return rev + " 60 IN PTR " + name
}

// listServer serves one list over TLS and can be told to misbehave.
type listServer struct {
	*httptest.Server
	handler  atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64
}

func newListServer(t *testing.T, h http.HandlerFunc) *listServer {
	t.Helper()
	s := &listServer{}
	s.handler.Store(&h)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		(*s.handler.Load())(w, r)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *listServer) serve(h http.HandlerFunc) { s.handler.Store(&h) }

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

// clock is a settable time.
type clock struct{ at atomic.Int64 }

func newClock(t time.Time) *clock {
	c := &clock{}
	c.at.Store(t.UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// oneList is a catalogue of Googlebot with one list at url.
func oneList(url string) *Catalogue {
	return &Catalogue{
		Agents:  []Agent{{Name: "Googlebot", Operator: "Google", Class: Search, Tokens: []string{"Googlebot"}}},
		Lists:   []List{{ID: "google", URL: url, Format: GoogleJSON, Agents: []string{"Googlebot"}, Dedicated: true}},
		Reverse: []Reverse{{Suffix: ".googlebot.com", Agents: []string{"Googlebot"}}},
	}
}

// logBuffer keeps log lines.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func verified(v *Verifier, addr, ua string, at time.Time) Proof {
	return v.Verify(netip.MustParseAddr(addr), ua, at).Proof
}
