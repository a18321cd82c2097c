package attack_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the measured table into the documentation")

const (
	page  = "../../docs/threat-model.md"
	begin = "<!-- measured by go test ./e2e/attack: begin -->\n"
	end   = "<!-- end -->"
)

// TestPersonas plays every persona for a day in both places that Stile can have,
// holds the result against the policy, and the documentation against the result.
func TestPersonas(t *testing.T) {
	t.Parallel()
	table := render(measure(t))
	t.Logf("\n%s", table)
	if t.Failed() {
		return
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != table {
		t.Errorf("%s prints other figures than were measured (go test ./e2e/attack -update):\n%s", page, table)
	}
	// Figures outside of the table must be these.
	for _, figure := range []string{
		fmt.Sprintf("%d an hour and %d a day", perHour, perDay), fmt.Sprintf("%s a day for a network", thousands(perNetwork)),
		fmt.Sprintf("%d pages an hour", slowPerHour), fmt.Sprintf("%s a day", thousands(claimsPerDay)),
		fmt.Sprintf("at most %s pages", thousands(mostAsked)), fmt.Sprintf("%d shapes of request smuggling", len(smuggled)),
		fmt.Sprintf("| %d connections that send", slowConnections), fmt.Sprintf("%s requests in its name", thousands(inVictimsName)),
		fmt.Sprintf("slow crawler, %d pages an hour, two days | a fresh instance for each page, Redis shared | %d each day", slowPerHour, perDay),
		fmt.Sprintf("the count in Redis is exactly %d, page %d is refused", perDay, perDay+1),
		fmt.Sprintf("from %d networks | one visitor: %d a day", sharedNetworks, perDay),
	} {
		if !strings.Contains(head+tail, figure) {
			t.Errorf("%s does not say %q", page, figure)
		}
	}
}

// render writes the table of the documentation.
func render(results []result) string {
	var b strings.Builder
	b.WriteString("| who | says or does | through Stile | Stile asked beside |\n|---|---|--:|--:|\n")
	for _, r := range results {
		cell := func(m mode) string {
			if r.persona.promise[m] == unlimited {
				return fmt.Sprintf("**all it asked for** (%s)", thousands(r.got[m]))
			}
			return thousands(r.got[m])
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.persona.name, r.persona.says, cell(through), cell(beside))
	}
	return b.String()
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
