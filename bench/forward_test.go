package bench

import (
	"io"
	"net"
	"testing"
)

func TestForwarder(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			go func() { // answers five bytes for each three
				defer c.Close()
				for buf := make([]byte, 3); ; {
					if _, err := io.ReadFull(c, buf); err != nil {
						return
					}
					if _, err := c.Write([]byte("hello")); err != nil {
						return
					}
				}
			}()
		}
	}()
	f, err := forward(server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", f.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 100 {
		if _, err := io.WriteString(c, "abc"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if out, in := f.out.Load(), f.in.Load(); out != 300 || in != 500 {
		t.Errorf("%d bytes out, %d in; want 300 and 500", out, in)
	}
	f.close() // returns although a connection was open
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the forwarder")
	}
}
