package policy

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the messages that fixtures give into them")

// testNow is later than every date in the fixtures that is meant to have passed.
var testNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// testEnv holds the secrets that fixtures refer to.
func testEnv(name string) string {
	return map[string]string{
		"COOKIE_SECRETS": "new-secret-of-32-characters-long,old-secret-of-32-characters-long",
		"EDGE_SECRET":    "edge-secret-of-32-characters-long",
		"HMAC_SECRET":    "hmac-secret-of-32-characters-long",
		"SHORT_SECRET":   "hunter2",

		"DATED_SECRETS":    "2026-12-01=second-secret-of-the-site,first-secret-of-the-site",
		"SAME_DAY_SECRETS": "second-secret-of-the-site,first-secret-of-the-site",
		"NO_DAY_SECRET":    "2026-13-01=second-secret-of-the-site",
		"THREE_SECRETS":    "first-secret-of-32-characters-lo,second-secret-of-32-characters-l,third-secret-of-32-characters-lo",
	}[name]
}

// messages renders what Parse found, one line each, as "# want:" comments do.
func messages(warnings []Warning, err error) (lines []string) {
	for _, e := range all(err) {
		lines = append(lines, "error: "+e.Error())
	}
	for _, w := range warnings {
		lines = append(lines, "warning: "+w.String())
	}
	return lines
}

// all splits a joined error into its typed parts.
func all(err error) (list []*Error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []*Error{{Problem: "not joined: " + err.Error()}}
	}
	for _, e := range joined.Unwrap() {
		if typed, ok := e.(*Error); ok {
			list = append(list, typed)
		} else {
			list = append(list, &Error{Problem: fmt.Sprintf("%T: %v", e, e)})
		}
	}
	return list
}

// TestFixtures parses every file under testdata/policies and compares all that
// is said with the "# want:" lines at the file's end. Good files parse, and
// compile; bad files have at least one error.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"good", "bad"} {
		files, err := filepath.Glob("testdata/policies/" + kind + "/*.yaml")
		if err != nil || len(files) < 3 {
			t.Fatalf("%d %s files, %v", len(files), kind, err)
		}
		for _, file := range files {
			t.Run(kind+"/"+filepath.Base(file), func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				body, want := splitWant(string(data))
				f, warnings, err := parse(file, data, testEnv, testNow)
				got := messages(warnings, err)
				if *update {
					out := strings.TrimRight(body, "\n") + "\n"
					for _, line := range got {
						out += "# want: " + line + "\n"
					}
					if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
						t.Fatal(err)
					}
					want = got
				}
				if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
					t.Errorf("got\n%s\nwant\n%s", g, w)
				}
				if (err == nil) != (kind == "good") {
					t.Fatalf("a %s file: %v", kind, err)
				}
				if f != nil {
					roundTrip(t, f)
					if _, err := f.Core(testNow); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func splitWant(data string) (body string, want []string) {
	var kept []string
	for line := range strings.Lines(data) {
		if w, ok := strings.CutPrefix(line, "# want: "); ok {
			want = append(want, strings.TrimSuffix(w, "\n"))
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, ""), want
}

// roundTrip checks that Show's output parses back to the same policy.
func roundTrip(t *testing.T, f *File) {
	t.Helper()
	var shown bytes.Buffer
	if err := f.Show(&shown); err != nil {
		t.Fatal(err)
	}
	again, _, err := parse(f.name, shown.Bytes(), testEnv, testNow)
	if err != nil {
		t.Fatalf("what Show wrote does not parse: %v\n%s", err, shown.String())
	}
	a, b := *f, *again
	a.origin, b.origin = nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Errorf("Show changed the policy:\n%+v\n%+v\n%s", a, b, shown.String())
	}
	for _, name := range []string{"COOKIE_SECRETS", "EDGE_SECRET", "HMAC_SECRET"} {
		for value := range strings.SplitSeq(testEnv(name), ",") {
			if strings.Contains(shown.String(), value) {
				t.Errorf("Show prints the secret in %s", name)
			}
		}
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	f, warnings, err := Default(nil)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	if f.Client.From != "remote" || len(f.Buckets) != 2 || f.Buckets[0].Limit != 60 || f.Buckets[1].Limit != 200 {
		t.Errorf("%+v", f)
	}
	if n := strings.Count(string(Example()), "measure yours"); n != 2 {
		t.Errorf("%d limits of the example are marked as seeds, want 2", n)
	}
	roundTrip(t, f)
}

// TestDefaultsTrustNothing holds the defaults that are promises.
func TestDefaultsTrustNothing(t *testing.T) {
	t.Parallel()
	f := defaults()
	if f.Client.From != "remote" || f.Client.TrustedHops != 0 || f.Client.TrustedProxies != nil || f.Client.Peers != nil || f.Client.ASN != "none" {
		t.Errorf("a default trusts a header: %+v", f.Client)
	}
	if f.Store.Timeout != 150*time.Millisecond || f.Store.ConnectTimeout != 2*time.Second || f.Store.OnError != "open" {
		t.Errorf("%+v", f.Store)
	}
}
