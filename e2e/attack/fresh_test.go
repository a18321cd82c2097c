package attack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

func redisServer(t *testing.T) *stand.Redis {
	t.Helper()
	bin, ok := stand.Find("redis-server")
	require.Server(t, "redis", ok, "apt-get install redis-server")
	return stand.StartRedis(t, bin)
}

// TestSlowCrawlerMeetsFreshInstances: 21 pages an hour for two days, each page at
// an instance that has seen nobody before; what they share is Redis.
func TestSlowCrawlerMeetsFreshInstances(t *testing.T) {
	t.Parallel()
	redis := redisServer(t)
	// The server's clock is the real one: records of a past day would be over.
	start := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	for day := range 2 {
		got, first := 0, -1
		for i := range 24 * slowPerHour {
			a := &arena{t: t, mode: through, origin: stand.InProcess()}
			a.at(start.AddDate(0, 0, day).Add(time.Duration(i) * time.Hour / slowPerHour))
			a.stile = stand.Start(t, policyText, stand.Options{Now: a.now, Store: redis.URL, Origin: a.origin.URL, Transport: a.origin})
			page, _ := a.fire(shot{path: article(i)})
			a.stile.Close()
			if page {
				got++
			} else if first < 0 {
				first = i
			}
		}
		if got != perDay || first != perDay {
			t.Errorf("day %d: %d of %d pages, the first refusal at page %d; want %d and then refusals", day, got, 24*slowPerHour, first+1, perDay)
		}
	}
}

// TestFreshProcesses: the command itself, started for one page and killed after
// it, as a platform does that scales to nothing. The day's pages are counted
// exactly in Redis, and the next one is refused.
func TestFreshProcesses(t *testing.T) {
	t.Parallel()
	redis := redisServer(t)
	origin := stand.NewOrigin(t)
	bin := stand.Build(t)
	text := fmt.Sprintf(`
version: 1
site: attacked
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.1/32]}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: %d, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: %d, window: 24h}
store: {timeout: 5s}
`, 5*perDay, perDay)
	file := filepath.Join(t.TempDir(), "stile.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	today := time.Now().UTC().YearDay()
	const over = 3
	var statuses []int
	for i := range perDay + over {
		s := stand.Launch(t, bin, text, origin.URL, nil, "--store", redis.URL)
		statuses = append(statuses, stand.NewClient(t, s.URL, "127.0.0.1").Get(article(i), "X-Forwarded-For: 203.0.113.9").Status)
		s.Kill()
	}
	out, err := exec.Command(bin, "key", "show", "--json", "--policy", file, "--store", redis.URL, "address", "203.0.113.9").Output()
	if err != nil {
		t.Fatalf("stile key show: %v", err)
	}
	if time.Now().UTC().YearDay() != today {
		t.Log("a new day has begun on the way, with a new count: nothing to hold this time")
		return
	}
	for i, status := range statuses {
		want := http.StatusOK
		if i >= perDay {
			want = http.StatusTooManyRequests
		}
		if status != want {
			t.Fatalf("page %d: %d, want %d", i+1, status, want)
		}
	}
	if n := len(origin.Seen()); n != perDay {
		t.Errorf("the site was asked for %d pages, want %d", n, perDay)
	}
	var shown struct {
		Buckets []struct {
			Name  string
			Count int64
		}
	}
	if err := json.Unmarshal(out, &shown); err != nil {
		t.Fatal(err)
	}
	for _, b := range shown.Buckets {
		if b.Name == "day" && b.Count == perDay {
			return
		}
	}
	t.Errorf("the count in Redis is not exactly %d: %s", perDay, out)
}
