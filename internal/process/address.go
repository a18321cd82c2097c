package process

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// FreeAddr returns an address of 127.0.0.1 that nothing listened on just now.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Serve calls start with a free address, and with another one when it fails, up
// to three times in all: another process may take the port between its choice
// and its use. The third error fails the test. It returns the address.
func Serve(tb testing.TB, start func(addr string) error) string {
	tb.Helper()
	for try := 1; ; try++ {
		addr := FreeAddr(tb)
		err := start(addr)
		if err == nil {
			return addr
		}
		if try == 3 {
			tb.Fatal(err)
		}
	}
}

// Listens returns a question for Await: does anything listen on addr?
func Listens(addr string) func() bool {
	return func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
}

// Answers returns a question for Await: does url answer, whatever it says?
func Answers(url string) func() bool {
	client := &http.Client{
		Timeout:       time.Second,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func() bool {
		res, err := client.Get(url)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	}
}
