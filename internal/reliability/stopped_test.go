package reliability

import "github.com/stilehq/stile/internal/process"

// stopped reports whether a process is in the state of SIGSTOP. Where the system
// does not tell, the test's own waiting for the record has to do.
func stopped(pid int) bool { return process.Stopped(pid) }
