package answer

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/internal/require"
)

// harness runs the page's script with a clock that only its own timers move.
const harness = `
const html = require("fs").readFileSync(0, "utf8");
const script = html.match(/<script>(.*?)<\/script>/s)[1];
const seconds = html.match(/data-s="(\d+)"/)[1];
const el = {dataset: {s: seconds}, textContent: html.match(/data-s="\d+">(.*?)</)[1]};
let now = 1e12, timers = [], said = [el.textContent];
require("vm").runInNewContext(script, {
  document: {getElementById: id => id === "t" ? el : null},
  Date: {now: () => now}, Math, setTimeout: (f, ms) => timers.push([f, ms]),
});
said.push(el.textContent);
for (let n = 0; timers.length; n++) {
  const [f, ms] = timers.shift();
  now += n === 1 ? 30 * ms : ms; // the phone slept
  f();
  if (n < 2) said.push(el.textContent);
}
said.push(el.textContent, String((now - 1e12) / 1e3));
process.stdout.write(said.join("|"));
`

// TestCountdown: what the page says, second by second, without and with script.
func TestCountdown(t *testing.T) {
	t.Parallel()
	bin, err := exec.LookPath("node")
	require.Server(t, "node", err == nil, "any version from 18 on")
	w := writer(t, Config{})
	for wait, want := range map[time.Duration]string{
		62 * time.Second:                          "in 62 seconds|in 1 min 2 s|in 1 min 1 s|in 31 s|now|62",
		time.Hour + 90*time.Second:                "in 1 hour 2 minutes|in 1 h 1 min|in 1 h 1 min|in 1 h 0 min|now|3690",
		500 * time.Millisecond:                    "in 1 second|in 1 s|now|now|1",
		24*time.Hour + 59*time.Minute - time.Hour: "in 23 hours 59 minutes|in 23 h 59 min|in 23 h 58 min|in 23 h 58 min|now|86340",
	} {
		d := core.Decision{Outcome: core.Refuse, Binding: -1, RetryAfter: wait}
		cmd := exec.Command(bin, "-e", harness)
		cmd.Stdin = strings.NewReader(string(w.Limited(&d, ask()).Body))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if string(out) != want {
			t.Errorf("%v:\ngot  %s\nwant %s", wait, out, want)
		}
	}
}
