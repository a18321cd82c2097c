package identity

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// TestNewcomersLimit: when the newcomers' row is full, the address takes over,
// and the row is not asked again before it has room.
func TestNewcomersLimit(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{AdmittedOnly: true}, func(p *core.Policy) { p.Buckets[2].Limit = 5 })
	first := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
	first.visit(s, morning)
	first.visit(s, morning.Add(time.Minute))
	kinds := map[rows.Kind]int{}
	refused := 0
	for i := range 20 {
		v := &visitor{addr: "198.51.100.7", agent: "a"}
		d := v.visit(s, morning.Add(2*time.Minute+time.Duration(i)*time.Second))
		if d.Outcome == core.Admit {
			kinds[d.Key.Kind]++
		} else {
			refused++
		}
	}
	if kinds[rows.Cookie] != 5 || kinds[rows.Address] != 14 || refused != 1 {
		t.Errorf("%d by the newcomers' row, %d by the address, %d refused: want 5, 14, 1", kinds[rows.Cookie], kinds[rows.Address], refused)
	}
}

// TestNewcomersAreBrowsers: what was earned is spent by the same browser at the
// same address only.
func TestNewcomersAreBrowsers(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	first := &visitor{addr: "2001:db8:1:2::1", agent: "a", keep: true}
	first.visit(s, morning)
	first.addr = "2001:db8:1:2::abcd" // a privacy address of the same household
	first.visit(s, morning.Add(time.Minute))
	for _, tt := range []struct {
		v    visitor
		want rows.Kind
	}{
		{visitor{addr: "2001:db8:1:2::7", agent: "a"}, rows.Cookie},
		{visitor{addr: "2001:db8:1:3::7", agent: "a"}, rows.Address},
		{visitor{addr: "2001:db8:1:2::7", agent: "b"}, rows.Address},
		{visitor{addr: "2001:db8:1:2::7", agent: "a", plain: true}, rows.Address},
	} {
		if d := tt.v.visit(s, morning.Add(2*time.Minute)); d.Key.Kind != tt.want {
			t.Errorf("%+v is charged to %v, want %v", tt.v, d.Key, tt.want)
		}
	}
	// A day later nothing is left of it.
	v := visitor{addr: "2001:db8:1:2::7", agent: "a"}
	if d := v.visit(s, morning.Add(day+2*time.Minute)); d.Key.Kind != rows.Address {
		t.Errorf("a day later: charged to %v", d.Key)
	}
}

// TestReturnsEarnOnce: the second return, and the first of an old cookie, move
// nothing.
func TestReturnsEarnOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	at := netip.MustParsePrefix("198.51.100.7/32")
	room := func() int32 { return s.newcomers.places[s.newcomers.key(at, "a")].room }
	v := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
	v.visit(s, morning)
	for i := range 5 {
		v.visit(s, morning.Add(time.Duration(i+1)*time.Minute))
	}
	if room() != advance+1 {
		t.Errorf("room for %d, want %d", room(), advance+1)
	}
	old := &visitor{addr: "198.51.100.7", agent: "a", cookie: "__Host-stile=" + s.Issue(morning.Add(-day), client)}
	old.visit(s, morning.Add(time.Hour))
	if room() != advance+1 {
		t.Errorf("an old cookie moved a first hit of today: room for %d", room())
	}
}

// TestExplainMovesNothing: asking why is free.
func TestExplainMovesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, nil)
	v := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
	v.visit(s, morning)
	v.visit(s, morning.Add(time.Minute))
	n := &visitor{addr: "198.51.100.7", agent: "a"}
	for range advance + 10 {
		if e := s.Explain(t.Context(), n.request(morning.Add(2*time.Minute))); e.Decision.Identity.Proof != proofNewcomer {
			t.Fatalf("explained as %+v", e.Decision.Identity)
		}
	}
}

// TestNewcomersAreBounded sprays addresses and cookies over the tables.
func TestNewcomersAreBounded(t *testing.T) {
	t.Parallel()
	var n newcomers
	n.init()
	var s seen
	var id [16]byte
	for i := range newcomerPlaces + 5000 {
		at := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		n.earn(at, "a", morning.Add(time.Duration(i)*time.Millisecond))
	}
	if len(n.places) != newcomerPlaces || n.count.Load() != newcomerPlaces {
		t.Errorf("%d places kept, want %d", len(n.places), newcomerPlaces)
	}
	for i := range uint64(3 * seenCookies) {
		binary.BigEndian.PutUint64(id[:], i)
		if !s.first(id, morning) || s.first(id, morning) {
			t.Fatalf("cookie %d is not first exactly once", i)
		}
	}
	if len(s.now)+len(s.old) > 2*seenCookies {
		t.Errorf("%d cookies remembered", len(s.now)+len(s.old))
	}
}

// TestNewcomersConcurrently is for the race detector, and holds the books: what
// is spent is what was earned, and what concurrent newcomers overdraw is owed.
func TestNewcomersConcurrently(t *testing.T) {
	t.Parallel()
	s := newSite(t, CookieConfig{}, func(p *core.Policy) { p.Buckets[0].Limit, p.Buckets[1].Limit = 5000, 5000 })
	s.Limiter, _ = core.New(*s.Policy(), core.Options{Store: s.store.Store, Identifiers: []core.Identifier{s.Cookies}})
	var mu sync.Mutex
	newcomers := 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				v := &visitor{addr: "198.51.100.7", agent: "a", keep: true}
				for page := range 2 {
					d := v.visit(s, morning.Add(time.Duration(i*10+page)*time.Second))
					if d.Identity.Proof == proofNewcomer {
						mu.Lock()
						newcomers++
						mu.Unlock()
					}
				}
			}
		})
	}
	wg.Wait()
	at := netip.MustParsePrefix("198.51.100.7/32")
	left := s.newcomers.places[s.newcomers.key(at, "a")].room
	if int(left)+newcomers != 400+advance {
		t.Errorf("%d spent and %d left of the %d that 400 returns earned", newcomers, left, 400+advance)
	}
}

// TestNewcomersHideTheAddress: the log may be told to hide addresses.
func TestNewcomersHideTheAddress(t *testing.T) {
	t.Parallel()
	k := newCookies(t, CookieConfig{}).keys[0]
	ids := map[string]bool{}
	for i := range 100 {
		id := k.newcomerID(netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 32))
		ids[id] = true
		if len(id) != 20 || id == fmt.Sprintf("new:198.51.100.%d", i) {
			t.Errorf("id %q", id)
		}
	}
	if len(ids) != 100 {
		t.Errorf("100 addresses have %d ids", len(ids))
	}
}
