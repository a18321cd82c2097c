package crawlers

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUpdateWritesADiffableFile(t *testing.T) {
	t.Parallel()
	s := newListServer(t, body(goodList))
	k := newClock(day)
	path := filepath.Join(t.TempDir(), "ranges.txt")
	cat := oneList(s.URL + "/list.json")
	cat.Lists = append(cat.Lists, List{ID: "broken", URL: s.URL[:len(s.URL)-1] + "0/", Format: PlainText, Agents: []string{"Googlebot"}},
		List{ID: "manual", Format: PlainText, Agents: []string{"Googlebot"}})
	v := newVerifier(t, Config{Catalogue: cat, NoShipped: true, Transport: s.Client().Transport, Now: k.now, Logger: (&logBuffer{}).logger(),
		Snapshots: []Snapshot{held(map[string][]string{"manual": {"207.241.224.0/20"}, "unknown": {"8.8.8.8/32"}})}})
	changes, err := v.Update(context.Background(), path)
	if err != nil || len(changes) != 2 || changes[0].After != 1 || changes[0].Error != "" || changes[1].Error == "" {
		t.Fatalf("%+v, %v", changes, err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Ranges of crawlers as their operators publish them. DO NOT EDIT: written by `stile crawlers update`.\n" +
		"# written 2026-06-01T12:00:00Z\nstile-crawler-ranges 1\n" +
		"\nlist google\nsource " + s.URL + "/list.json\ncreated 2026-06-01T00:00:00Z\nfetched 2026-06-01T12:00:00Z\n66.249.64.0/19\n" +
		"\nlist manual\nsource test\ncreated 2026-06-01T11:00:00Z\nfetched 2026-06-01T12:00:00Z\n207.241.224.0/20\n"
	if string(b) != want {
		t.Errorf("wrote\n%s\nwant\n%s", b, want)
	}
	snap, err := ReadSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	again := newVerifier(t, Config{Catalogue: cat, NoShipped: true, Now: k.now, Snapshots: []Snapshot{snap}})
	if verified(again, "66.249.66.1", uaChrome, day) != ByRange || again.List()[0].Origin != "file" {
		t.Error("the file does not serve as a snapshot")
	}
	s.serve(body(""))
	if _, err := v.Update(context.Background(), path); !errors.Is(err, ErrNothingFetched) {
		t.Errorf("nothing fetched: %v", err)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, b) {
		t.Error("the file changed although nothing was fetched")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".crawlers-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNewestSnapshotWins(t *testing.T) {
	t.Parallel()
	older, newer := held(map[string][]string{"bing": {"157.55.39.0/24"}}), held(map[string][]string{"bing": {"40.77.167.0/24"}})
	h := older["bing"]
	h.Created = h.Created.Add(-time.Hour)
	older["bing"] = h
	for _, order := range [][]Snapshot{{older, newer}, {newer, older}} {
		v := newVerifier(t, Config{Snapshots: order})
		if p := v.Snapshot()["bing"].Prefixes; len(p) != 1 || p[0] != netip.MustParsePrefix("40.77.167.0/24") {
			t.Errorf("holds %v", p)
		}
	}
}

func TestShippedSnapshot(t *testing.T) {
	t.Parallel()
	s, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, l := range Default().Lists {
		ids[l.ID] = true
	}
	for id, h := range s {
		if !ids[id] || h.Source == "" || h.Fetched.IsZero() || !h.Partial {
			t.Errorf("list %s: unknown, unsourced, undated or not called an excerpt: %+v", id, h)
		}
	}
	v := newVerifier(t, Config{})
	if verified(v, "66.249.66.1", uaGooglebot, day) != ByRange {
		t.Error("a cold start does not know Googlebot's main range")
	}
	if !v.Due() {
		t.Error("an excerpt is not refreshed at once")
	}
	for _, bad := range []string{"", "hello", "stile-crawler-ranges 1\n8.8.8.8", "stile-crawler-ranges 1\nlist A", "stile-crawler-ranges 1\nlist a\nlist a",
		"stile-crawler-ranges 1\nlist a\n0.0.0.0/0", "stile-crawler-ranges 1\nlist a\nfetched yesterday"} {
		if _, err := ReadSnapshot([]byte(bad)); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
