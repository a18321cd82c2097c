package browser_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

// screen starts an X server that draws into memory and returns its DISPLAY.
func screen(t *testing.T) string {
	t.Helper()
	xvfb, ok := stand.Find("Xvfb")
	require.Server(t, "webkit", ok, "apt-get install xvfb")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(xvfb, "-displayfd", "3", "-screen", "0", "1280x900x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	stand.Run(t, cmd)
	_ = w.Close()
	_ = r.SetReadDeadline(time.Now().Add(30 * time.Second))
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb opened no display: %v", err)
	}
	return ":" + strings.TrimSpace(number)
}

// webkit starts WebKitGTK's small browser through its driver.
func webkit(t *testing.T) *engine {
	t.Helper()
	bin, ok := stand.Find("WebKitWebDriver")
	require.Server(t, "webkit", ok, "apt-get install webkit2gtk-driver xvfb")
	browsers, _ := filepath.Glob("/usr/lib/*/webkit*/MiniBrowser")
	more, _ := filepath.Glob("/usr/libexec/webkit*/MiniBrowser")
	browsers = append(browsers, more...)
	require.Server(t, "webkit", len(browsers) > 0, "MiniBrowser, which comes with webkit2gtk-driver")
	home := homeOf(t)
	addr := stand.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command(bin, "--host=127.0.0.1", "--port="+port)
	cmd.Env = append(os.Environ(), "DISPLAY="+screen(t), "GDK_BACKEND=x11", "HOME="+home, "XDG_RUNTIME_DIR="+home, "XDG_DOWNLOAD_DIR="+home,
		"NO_AT_BRIDGE=1", "GTK_A11Y=none", "LIBGL_ALWAYS_SOFTWARE=1", "WEBKIT_DISABLE_COMPOSITING_MODE=1")
	stand.Run(t, cmd).WaitListen(addr, 60*time.Second)
	r, err := openRemote("http://"+addr, params{"webkitgtk:browserOptions": params{
		"binary": browsers[0], "args": []string{"--automation", "--geometry=1100x750"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{t: t, name: "webkit", wire: r}
	t.Cleanup(func() { _, _ = r.do("DeleteSession", nil) })
	return e
}

// TestWebKit: what WebKitGTK does by itself, and what of it is counted.
func TestWebKit(t *testing.T) {
	t.Parallel()
	walk(t, webkit(t), habits{
		prefetches: false,
		downloads:  3, // the page; a link that says download sends no fetch metadata; an attachment is a document
	})
}
