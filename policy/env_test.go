package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func environment(pairs ...string) func(string) string {
	m := map[string]string{}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		m[k] = v
	}
	return func(name string) string {
		if v, ok := m[name]; ok {
			return v
		}
		return testEnv(name)
	}
}

const small = "version: 1\ncontact: mailto:ops@example.org\nbuckets: [{name: hour, limit: 60, window: 1h}]\n"

func TestOverrides(t *testing.T) {
	t.Parallel()
	env := environment("STILE_MODE=observe", "STILE_SCALE=10", "STILE_SITE=shop", "STILE_CLIENT_FROM=xff", "STILE_CLIENT_TRUSTED_HOPS=2",
		"STILE_CLIENT_PEERS=10.0.0.0/8, 192.0.2.7", "STILE_STORE_TIMEOUT=80ms", "STILE_COUNT_METHODS=GET,POST", "STILE_LOG_IP=", "STILE_IDENTIFY_JWT_ISSUER=x", "STILE_VERSION=2", "STILE_BUCKETS=x")
	f, warnings, err := parse("p.yaml", []byte(small+"mode: enforce\ncount: {methods: [POST]}\n"), env, testNow)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if f.Mode != ModeObserve || f.Scale != 10 || f.Site != "shop" || f.Client.From != "xff" || f.Client.TrustedHops != 2 || formatDuration(f.Store.Timeout) != "80ms" || f.Log.IP != LogIPFull {
		t.Errorf("%+v", f)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.7/32")}; !reflect.DeepEqual(f.Client.Peers, want) {
		t.Errorf("peers %v", f.Client.Peers)
	}
	if !reflect.DeepEqual(f.Count.Methods, []string{"GET", "POST"}) {
		t.Errorf("methods %v", f.Count.Methods)
	}
	if f.Identify.JWT != nil {
		t.Error("an override added a part that the file does not have")
	}
	var b bytes.Buffer
	if err := f.Show(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"mode: observe # from STILE_MODE\n", "site: shop # from STILE_SITE\n", "claims: enforce # default\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("Show lacks %q", line)
		}
	}
}

func TestOverrideErrors(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"STILE_MODE=never":                     `mode (STILE_MODE): "never" is unknown; write one of enforce, observe, off`,
		"STILE_SCALE=0":                        `scale (STILE_SCALE): 0 admits nobody; write 1 for the limits as they stand, or use mode: observe`,
		"STILE_SCALE=ten":                      `scale (STILE_SCALE): ten is no number; write a number like 1 or 2.5`,
		"STILE_CLIENT_PEERS=10.0.0.0/8,ten":    `client.peers[1] (STILE_CLIENT_PEERS): "ten" is no address range; write one like 192.0.2.0/24 or 2001:db8::/32`,
		"STILE_CLIENT_FROM=xff":                `client.from (STILE_CLIENT_FROM): xff needs to know which entry of X-Forwarded-For is the client; write trusted_hops: 1 (one proxy in front), or list trusted_proxies`,
		"STILE_STORE_TIMEOUT=150":              `store.timeout (STILE_STORE_TIMEOUT): "150" is no duration; write a duration like 90s, 24h or 7d`,
		"STILE_COUNT_EXCLUDE=/**":              `count.exclude (STILE_COUNT_EXCLUDE): excludes everything that count.include names: nothing is counted; remove the pattern that is too wide`,
		"STILE_SITE=" + strings.Repeat("é", 3): `site (STILE_SITE): "ééé" is no name; write up to 63 letters, digits, dots, dashes or underscores`,
		"STILE_SITE=a\nb":                      `site (STILE_SITE): holds characters that cannot be printed; write text`,
	} {
		_, _, err := parse("", []byte(small), environment(env), testNow)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", env, err, want)
		}
	}
	// What is wrong in the file stays wrong when it is overridden.
	if _, _, err := parse("", []byte(small+"mode: of\n"), environment("STILE_MODE=observe"), testNow); err == nil {
		t.Error("an override hides an error of the file")
	}
}

func TestEnvName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"mode": "STILE_MODE", "client.ipv6_prefix": "STILE_CLIENT_IPV6_PREFIX", "identify.jwt.jwks_file": "STILE_IDENTIFY_JWT_JWKS_FILE", "client.peers": "STILE_CLIENT_PEERS",
		"version": "", "measured.period": "", "buckets": "", "identify.cookie.secrets": "", "exempt.crawlers": "", "nonsense": "",
	} {
		if got := EnvName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	// The functions are configured by these; no key may claim them.
	for _, path := range overridable(reflect.TypeFor[File](), "") {
		switch EnvName(path) {
		case "STILE_POLICY", "STILE_STORE", "STILE_ORIGIN", "STILE_REQUIRE", "STILE_LISTEN", "STILE_ADMIN", "":
			t.Errorf("%s is overridden by %q", path, EnvName(path))
		}
	}
}

func TestTypedErrors(t *testing.T) {
	t.Parallel()
	_, _, err := Parse("", []byte("version: 1\nbuckets: [{name: hour, limit: 0, window: 1h}]\n"), nil)
	var e *Error
	if !errors.As(err, &e) || e.Path != "buckets[0].limit" || e.Line != 2 || e.Problem == "" || e.Remedy == "" {
		t.Errorf("%+v", e)
	}
}

// TestSecretsStayHidden prints a policy in every way that code is likely to.
func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	file := filepath.Join("testdata", "policies", "good", "everything.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := parse(file, data, testEnv, testNow)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Store.KeySecrets.Values(); len(got) != 1 || got[0] != testEnv("HMAC_SECRET") {
		t.Fatalf("%d values", len(got))
	}
	js, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "policy", f, "secrets", f.Store.KeySecrets)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "policy", f, "secrets", f.Store.KeySecrets)
	out := string(js) + log.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		out += fmt.Sprintf(verb, *f) + fmt.Sprintf(verb, f.Store.KeySecrets) + fmt.Sprintf(verb, &f.Store.KeySecrets)
	}
	if !strings.Contains(out, "env:HMAC_SECRET") {
		t.Error("the references are not shown")
	}
	for _, name := range []string{"HMAC_SECRET", "EDGE_SECRET"} {
		if strings.Contains(out, testEnv(name)) || strings.Contains(out, fmt.Sprintf("%x", testEnv(name))) {
			t.Errorf("the value of %s is printed", name)
		}
	}
}

// TestErrorsHideSecrets puts a secret where a reference belongs.
func TestErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery-staple"
	for _, form := range []string{secret, "env:" + secret, "[" + secret + "]", "{" + secret + ": 1}", "[{a: " + secret + "}]", "'" + secret + "\n'", "!x " + secret} {
		_, warnings, err := parse("", []byte(small+"identify: {cookie: {secrets: "+form+"}}\n"), testEnv, testNow)
		if err == nil {
			t.Errorf("%s is accepted", form)
		}
		if strings.Contains(fmt.Sprint(err, warnings), secret) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stile.yaml")
	if err := os.WriteFile(file, []byte(small+"answer: {html: limited.html}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STILE_MODE", "observe")
	f, _, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if f.Mode != ModeObserve || f.Name() != file || f.Path(f.Answer.HTML) != filepath.Join(dir, "limited.html") || f.Path("") != "" || f.Path(file) != file {
		t.Errorf("%+v", f)
	}
	if _, _, err := Load(filepath.Join(dir, "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestParseAPIKeys(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0a", 32)
	keys, err := ParseAPIKeys([]byte("- {hash: " + hash + ", name: partner}\n- {hash: '" + strings.Repeat("1", 64) + "', name: b, tier: 5}\n"))
	if err != nil || len(keys) != 2 || keys[0] != (APIKey{Hash: hash, Name: "partner", Tier: 1}) || keys[1].Tier != 5 {
		t.Errorf("%+v %v", keys, err)
	}
	for data, want := range map[string]string{
		"": "not YAML",
		// An all-digit hash is a number to YAML.
		"- {hash: " + strings.Repeat("1", 64) + ", name: b}": "put it in quotes",
		"a: b":                               "keys: is a mapping, not a list",
		"- {hash: x, name: a}":               "keys[0].hash (line 1): is no SHA-256 in hex",
		"- {hash: " + hash + "}":             "keys[0].name (line 1): is missing",
		"- {hash: " + hash + ", nam: a}":     "did you mean name?",
		"[":                                  "not YAML",
		strings.Repeat("#", MaxSize+1):       "larger than",
		"- &a {hash: " + hash + ", name: a}": "has an anchor",
	} {
		if _, err := ParseAPIKeys([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", data, err, want)
		}
	}
}
