package reliability

import (
	"fmt"
	"os"
	"strings"
)

// stopped reports whether a process is in the state of SIGSTOP. Where the system
// does not tell, the test's own waiting for the record has to do.
func stopped(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "T")
}
