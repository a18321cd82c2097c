package policy

import (
	"fmt"
	"strings"
)

// An Error is one thing that is wrong with a policy file. [Parse] joins all of
// them with errors.Join, in the order of the file; errors.As finds the first.
// It never holds the value of a secret.
type Error struct {
	Line    int    // in the file, from 1; 0 when the value is not from the file
	Env     string // the environment variable that set the value; usually empty
	Path    string // "buckets[1].limit"; empty for the document as a whole
	Problem string // "0 admits nobody"
	Remedy  string // "write 1 or more, or use mode: observe"; may be empty
}

// Error returns the one line that people see.
func (e *Error) Error() string {
	var b strings.Builder
	where := ""
	switch {
	case e.Env != "":
		where = e.Env
	case e.Line > 0:
		where = fmt.Sprintf("line %d", e.Line)
	}
	switch {
	case e.Path != "" && where != "":
		fmt.Fprintf(&b, "%s (%s): ", e.Path, where)
	case e.Path != "" || where != "":
		fmt.Fprintf(&b, "%s%s: ", e.Path, where)
	}
	b.WriteString(e.Problem)
	if e.Remedy != "" {
		b.WriteString("; ")
		b.WriteString(e.Remedy)
	}
	return b.String()
}

// A Warning is legal, but probably not what was meant, or expensive.
type Warning struct {
	Line    int
	Env     string
	Path    string
	Problem string
	Remedy  string
}

// String returns the one line that people see.
func (w Warning) String() string { return (*Error)(&w).Error() }

// place is where a value came from.
type place struct {
	line int
	env  string
}

// Nearest returns the word most like s whatever its case, or "" when more than a
// third of the letters differ: for "did you mean" in messages of other packages.
// Words are in lower case.
func Nearest(s string, words []string) string { return nearest(s, words) }

// nearest returns the word most like s, or "" when none is like it: at most a
// third of the letters differ.
func nearest(s string, words []string) string {
	best, least := "", len(s)/3+2
	for _, w := range words {
		if d := distance(strings.ToLower(s), w); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, replace or swap with their
// neighbour to get from a to b. Words are short; longer ones are unlike.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
