package browser_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

// firefoxPrefs keep a fresh profile from asking the person and the network.
const firefoxPrefs = `
user_pref("marionette.port", %s);
user_pref("app.update.disabledForTesting", true);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("browser.download.dir", %q);
user_pref("browser.download.folderList", 2);
user_pref("browser.download.alwaysOpenPanel", false);
user_pref("browser.safebrowsing.downloads.enabled", false);
user_pref("browser.safebrowsing.malware.enabled", false);
user_pref("browser.safebrowsing.phishing.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("dom.push.connection.enabled", false);
user_pref("extensions.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,#remote-settings-dummy/v1");
user_pref("toolkit.telemetry.server", "");
`

// firefox starts one without a screen and connects to it.
func firefox(t *testing.T) *engine {
	t.Helper()
	bin, ok := stand.Find("firefox-esr", "firefox")
	require.Server(t, "firefox", ok, "apt-get install firefox-esr")
	home := homeOf(t)
	addr := stand.FreeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	profile := filepath.Join(home, "profile")
	if err := os.Mkdir(profile, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(profile, "user.js"), fmt.Appendf(nil, firefoxPrefs, port, home), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "--headless", "--marionette", "--no-remote", "--profile", profile)
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1", "MOZ_HEADLESS_WIDTH=1100", "MOZ_HEADLESS_HEIGHT=750")
	p := stand.Run(t, cmd)
	p.WaitListen(addr, 90*time.Second)
	m, err := dialMarionette(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.conn.Close() })
	e := &engine{t: t, name: "firefox", wire: m}
	e.do("NewSession", params{})
	return e
}

// TestFirefox: what Firefox does by itself, and what of it is counted.
func TestFirefox(t *testing.T) {
	t.Parallel()
	walk(t, firefox(t), habits{
		prefetches: true,
		downloads:  3, // the page; a link that says download and an attachment are documents
	})
}
