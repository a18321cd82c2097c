//go:build linux || darwin

package redis

import "syscall"

// ended asks the system, without waiting, whether the peer has closed or reset the
// connection. Bytes that wait are left where they are.
func ended(fd uintptr, buf []byte) bool {
	n, _, err := syscall.Recvfrom(int(fd), buf, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	if err != nil {
		return err != syscall.EAGAIN && err != syscall.EWOULDBLOCK && err != syscall.EINTR
	}
	return n == 0
}
