package functiontest

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/firestore/firestoretest"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
)

// BenchmarkFunctionColdStart measures an instance of the function from the start
// of its process to its first counted and answered page, the store's client, its
// connection and one counter included: without TLS and tokens, over loopback.
// cpu-ms is the computing time of the process until it is killed then.
func BenchmarkFunctionColdStart(b *testing.B) {
	program, origin := cloudRun(b), demoSite(b)
	for _, store := range []struct {
		name string
		env  func(*testing.B) []string
	}{
		{"memory", func(*testing.B) []string { return nil }},
		{"upstash", func(b *testing.B) []string {
			front := upstashtest.Start(b, redistest.Start(b).Client())
			return []string{"STILE_STORE=upstash://", "UPSTASH_REDIS_REST_URL=" + front.URL, "UPSTASH_REDIS_REST_TOKEN=" + front.Token}
		}},
		{"redis", func(b *testing.B) []string { return []string{"STILE_STORE=redis://" + redistest.Start(b).Addr} }},
		{"firestore", func(b *testing.B) []string {
			return []string{"STILE_STORE=firestore://demo-functiontest", "FIRESTORE_EMULATOR_HOST=" + firestoretest.Start(b).Addr}
		}},
	} {
		b.Run(store.name, func(b *testing.B) {
			env := append(store.env(b), "FUNCTION_TARGET=Stile", "STILE_ORIGIN="+origin,
				"STILE_POLICY="+policyText("{from: remote}", 1_000_000, "store: {on_error: closed, timeout: 20s, connect_timeout: 20s}"))
			var starts []time.Duration
			var cpu time.Duration
			for b.Loop() {
				addr := FreeAddr(b)
				_, port, _ := net.SplitHostPort(addr)
				began := time.Now()
				p := Start(b, b.TempDir(), append(env, "PORT="+port), program)
				page := firstPage(b, addr)
				starts = append(starts, time.Since(began))
				p.Kill()
				if page.StatusCode != http.StatusOK || page.Header.Get("X-RateLimit-Limit") == "" {
					b.Fatalf("the first page was not counted: %s\n%s", page.Status, p.Output)
				}
				cpu += p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime()
			}
			slices.Sort(starts)
			b.ReportMetric(float64(starts[len(starts)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(len(starts)), "cpu-ms")
		})
	}
}

// firstPage asks for a page until the port is open. The answer's body is closed.
func firstPage(b *testing.B, addr string) *http.Response {
	b.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+"/", nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "198.51.100.7")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
			return res
		}
	}
	b.Fatal("no answer within a minute")
	return nil
}
