package process

import "syscall"

// attributes puts a child into a process group of its own, and has the system end
// it when we are gone.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
