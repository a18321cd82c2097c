//go:build unix && !linux

package process

import "syscall"

// attributes puts a child into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
