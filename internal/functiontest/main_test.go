package functiontest

import (
	"os"
	"testing"
)

// cleanups end what the tests share.
var cleanups []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range cleanups {
		f()
	}
	os.Exit(code)
}
