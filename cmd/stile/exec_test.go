package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args   string
		code   int
		stdout string // contained
		stderr string
	}{
		{"--help", 0, "Usage: stile <command>", ""},
		{"serve --help", 0, "stile serve --origin http://127.0.0.1:3000", ""},
		{"policy --help", 0, "policy show", ""},
		{"--version", 0, "stile ", ""},
		{"", 2, "", "Try: stile --help"},
		{"frob", 2, "", "unexpected argument frob"},
		{"policy", 2, "", "Try: stile policy --help"},
		{"serve --frob", 2, "", "unknown flag --frob"},
		{"serve --origin ftp://x", 2, "", "--origin: want an address"},
		{"serve --origin http://x/path", 2, "", "--origin: want an address"},
		{"serve --origin http://user:hunter2%zz@x", 2, "", "--origin: want an address"},
		{"serve --store mysql://me:hunter2@x", 2, "", `no store is called "mysql"`},
		{"serve --store redis:", 2, "", "stile: store URL: redis: the URL has no host"},
		{"size /does/not/exist", 3, "", "stile: no such log"},
		{"serve --policy /does/not/exist", 3, "", "no such file"},
		{"serve --listen 256.0.0.1:x", 3, "", "256.0.0.1"},
		{"serve --origin http://a --origin http://b", 2, "", "--origin: given twice"},
		{"edge --policy a cloudflare --policy=b", 2, "", "--policy: given twice"},
		{"explain --header A:b --header C:d GET /", 0, "counted", ""},
		{"explain --json --json GET /", 0, "counted", ""},
		{"explain GET", 2, "", `expected "<url>"`},
		{"explain GET nonsense", 2, "", "want an address such as"},
		{"explain --header nonsense GET /", 2, "", "want 'Name: value'"},
		{"explain --client nonsense GET /", 2, "", "want an IP address"},
		{"policy check /does/not/exist", 3, "", "no such file"},
		{"policy check .", 3, "", "directory"},
	} {
		r := command(t, nil, "", strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.stdout, c.stdout) || !strings.Contains(r.stderr, c.stderr) {
			t.Errorf("stile %s: exit %d, want %d\nstdout, want %q: %s\nstderr, want %q: %s", c.args, r.code, c.code, c.stdout, r.stdout, c.stderr, r.stderr)
		}
		if strings.Contains(r.stdout+r.stderr, "hunter2") {
			t.Errorf("stile %s shows a password:\n%s%s", c.args, r.stdout, r.stderr)
		}
	}
}

// TestEveryFlagHasAnEnvironmentForm walks the whole command line: a flag is
// shown with its variable, and no two meanings share one.
func TestEveryFlagHasAnEnvironmentForm(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, kong.Name("stile"), kong.NoDefaultHelp())
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	err = kong.Visit(parser.Model, func(n kong.Visitable, next kong.Next) error {
		if f, ok := n.(*kong.Flag); ok && f.Name != "help" && f.Name != "version" {
			flags++
			want := "STILE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			if text := withEnv(f.Value); !strings.Contains(text, "($"+want+")") {
				t.Errorf("--%s: help is %q, want it to name %s", f.Name, text, want)
			}
		}
		return next(nil)
	})
	if err != nil || flags < 10 {
		t.Errorf("%d flags seen, %v", flags, err)
	}
}

func TestEnvironmentSetsFlags(t *testing.T) {
	t.Parallel()
	env := map[string]string{"STILE_CLIENT": "203.0.113.7", "STILE_JSON": "true", "STILE_HEADER": "Sec-Fetch-Dest: image, or so"}
	r := command(t, env, "", "explain", "GET", "/a")
	if r.code != 0 || !strings.Contains(r.stdout, `"client": "203.0.113.7"`) {
		t.Errorf("exit %d, client and json not taken from the environment:\n%s%s", r.code, r.stdout, r.stderr)
	}
	// The command line comes first.
	if r := command(t, env, "", "explain", "--client", "203.0.113.8", "GET", "/a"); !strings.Contains(r.stdout, `"client": "203.0.113.8"`) {
		t.Errorf("the flag did not win:\n%s", r.stdout)
	}
	// Overrides of the policy are the policy's own.
	r = command(t, map[string]string{"STILE_MODE": "observe"}, "", "policy", "show")
	if !strings.Contains(r.stdout, "mode: observe # from STILE_MODE") {
		t.Errorf("STILE_MODE had no effect:\n%.200s", r.stdout)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a b":              "a b",
		"\x1b[31mred":      `\u001b[31mred`,
		"a\u202eb":         `a\u202eb`, // right-to-left override
		"caf\u00e9 \u2603": "caf\u00e9 \u2603",
		"\xff":             `\ufffd`,
		"x\r\ny":           `x\u000d\u000ay`,
	} {
		if got := plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
