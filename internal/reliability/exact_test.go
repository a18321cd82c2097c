package reliability

import (
	"bytes"
	"os/exec"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/dynamodb/dynamodbtest"
	"github.com/stilehq/stile/stores/firestore/firestoretest"
	"github.com/stilehq/stile/stores/redis/redistest"
	"github.com/stilehq/stile/stores/upstash/upstashtest"
)

// stores lists every shared store that this machine has, by how to start it.
func stores() map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"redis": func(t *testing.T) string { return "redis://" + redistest.Start(t).Addr },
		"redis-cluster": func(t *testing.T) string {
			c := redistest.StartCluster(t)
			return "redis://" + c.Addrs()[0] + "?cluster=1"
		},
		"upstash": func(t *testing.T) string {
			f := upstashtest.Start(t, redistest.Start(t).Client())
			t.Setenv("UPSTASH_REDIS_REST_TOKEN", f.Token)
			return f.URL
		},
		"firestore": func(t *testing.T) string {
			t.Setenv("FIRESTORE_EMULATOR_HOST", firestoretest.Start(t).Addr)
			return "firestore://stile-test"
		},
		"dynamodb": func(t *testing.T) string {
			s := dynamodbtest.Start(t)
			s.CreateTable(t, "stile")
			t.Setenv("AWS_ACCESS_KEY_ID", "test")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
			return "dynamodb://stile?region=eu-west-1&endpoint=" + s.Endpoint()
		},
	}
}

// TestFourProcessesOneLimit: a limit of 100 and 1,000 navigations at once from
// four processes admit exactly 100, on every shared store.
func TestFourProcessesOneLimit(t *testing.T) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			url := open(t)
			// A long deadline: this is about counting, on a machine that may be busy.
			text := policyText(100, "open", time.Minute)
			ways, aborted := 16, int64(0)
			if name == "firestore" {
				// The emulator locks a document for a second or two at a time, which
				// production does not; 64 writers of one document starve one another.
				// Of fewer, some may still be aborted each time they try. Such a hit is
				// an error and proven uncounted, so that all the rest is exact.
				ways, aborted = 4, 50
			}
			var cmds []*exec.Cmd
			var outs []*bytes.Buffer
			for range 4 {
				cmd, out := start(t, job{Store: url, Policy: text, Hits: 250, Ways: ways})
				cmds, outs = append(cmds, cmd), append(outs, out)
			}
			var all done
			for i := range cmds {
				d := finish(t, cmds[i], outs[i])
				all.Admitted += d.Admitted
				all.Refused += d.Refused
				all.Errors += d.Errors
			}
			if all.Admitted != 100 || all.Refused != 900-all.Errors || all.Errors > aborted {
				t.Errorf("admitted %d, refused %d, errors %d; want 100, 900 and at most %d that are no refusals",
					all.Admitted, all.Refused, all.Errors, aborted)
			}
		})
	}
}
