//go:build !linux && !darwin

package redis

// ended cannot tell here: a connection that the server closed is met by the next
// request, whose outcome is then unknown.
func ended(uintptr, []byte) bool { return false }
