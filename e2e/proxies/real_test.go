// Package proxies_test runs the configurations of docs/proxies: real proxies in
// front of Stile and a site, all on loopback.
package proxies_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stilehq/stile/e2e/stand"
	"github.com/stilehq/stile/internal/require"
)

// asked starts a site and a Stile that is asked beside it.
func asked(t *testing.T) setup {
	t.Helper()
	return setup{stile: stand.Start(t, documented(t, "stile.yaml"), stand.Options{}), origin: stand.NewOrigin(t)}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestNginx(t *testing.T) {
	t.Parallel()
	bin, ok := stand.Find("nginx")
	require.Server(t, "nginx", ok, "apt-get install nginx-light")
	s := asked(t)
	s.failsOpen, s.hangsOpen, s.fields = true, true, true
	addr := stand.FreeAddr(t)
	dir := t.TempDir()
	write(t, dir, "stile.conf", stand.Substitute(t, documented(t, "nginx.conf"), frontAddr, addr, stileAddr, s.stile.Addr, siteAddr, s.origin.Addr))
	// What a distribution's nginx.conf has around its conf.d, less root.
	conf := write(t, dir, "nginx.conf", `daemon off; master_process off; pid nginx.pid; error_log stderr warn;
events { worker_connections 128; }
http {
	access_log off; client_body_temp_path b; proxy_temp_path p; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
	include `+filepath.Join(dir, "stile.conf")+`;
}
`)
	stand.Run(t, exec.Command(bin, "-p", dir, "-c", conf)).WaitListen(addr, 10*time.Second)
	s.front = "http://" + addr
	prove(t, s)
	if got := stand.NewClient(t, s.front, "127.0.0.10").Get("/.stile/check"); got.Status != 404 {
		t.Errorf("the internal location is open: %+v", got)
	}
}

func TestCaddy(t *testing.T) {
	t.Parallel()
	bin, ok := stand.Find("caddy")
	require.Server(t, "caddy", ok, "apt-get install caddy")
	s := asked(t)
	s.failsOpen, s.hangsOpen, s.sockets = true, true, true
	addr, yes := stand.FreeAddr(t), stand.FreeAddr(t)
	dir := t.TempDir()
	conf := write(t, dir, "Caddyfile", stand.Substitute(t, documented(t, "Caddyfile"), frontAddr, addr, stileAddr, s.stile.Addr, siteAddr, s.origin.Addr, "127.0.0.1:8082", yes))
	cmd := exec.Command(bin, "run", "--config", conf, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	p := stand.Run(t, cmd)
	p.WaitListen(addr, 15*time.Second)
	p.WaitListen(yes, 15*time.Second)
	s.front = "http://" + addr
	prove(t, s)
}

// haproxy starts it with one of the documented files.
func haproxy(t *testing.T, s setup, file string, beside ...string) setup {
	t.Helper()
	bin, ok := stand.Find("haproxy")
	require.Server(t, "haproxy", ok, "apt-get install haproxy")
	addr := stand.FreeAddr(t)
	dir := t.TempDir()
	for _, name := range beside {
		write(t, dir, name, documented(t, name))
	}
	conf := write(t, dir, "haproxy.cfg", stand.Substitute(t, documented(t, file), frontAddr, addr, stileAddr, s.stile.Addr, siteAddr, s.origin.Addr))
	cmd := exec.Command(bin, "-db", "-f", conf)
	cmd.Dir = dir
	stand.Run(t, cmd).WaitListen(addr, 10*time.Second)
	s.front = "http://" + addr
	return s
}

func TestHAProxyThroughStile(t *testing.T) {
	t.Parallel()
	origin := stand.NewOrigin(t)
	s := setup{
		stile: stand.Start(t, documented(t, "stile.yaml"), stand.Options{Origin: origin.URL}), origin: origin,
		inline: true, failsOpen: true, fields: true, sockets: true,
	}
	prove(t, haproxy(t, s, "haproxy.cfg"))
}

func TestHAProxyAsksByLua(t *testing.T) {
	t.Parallel()
	s := asked(t)
	s.failsOpen, s.hangsOpen, s.sockets = true, true, true
	prove(t, haproxy(t, s, "haproxy-lua.cfg", "haproxy-stile.lua"))
}
