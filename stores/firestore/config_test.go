package firestore

import (
	"net/url"
	"strings"
	"testing"
)

func TestFromURL(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(string) string {
		return func(name string) string {
			for i := 0; i+1 < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	none := env()
	for _, test := range []struct {
		raw  string
		env  func(string) string
		want Config
		errs []string // parts of the error, all of which must be there
	}{
		{"firestore://my-project", none, Config{Project: "my-project"}, nil},
		{"firestore://my-project/", none, Config{Project: "my-project"}, nil},
		{"firestore://my-project/(default)", none, Config{Project: "my-project", Database: "(default)"}, nil},
		{"firestore://my-project/limits?collection=rows_2", none, Config{Project: "my-project", Database: "limits", Collection: "rows_2"}, nil},
		{"firestore://", env("GOOGLE_CLOUD_PROJECT", "from-env"), Config{Project: "from-env"}, nil},
		{"firestore://my-project", env("FIRESTORE_EMULATOR_HOST", "127.0.0.1:8686"), Config{Project: "my-project", Emulator: "127.0.0.1:8686"}, nil},
		{"firestore://", none, Config{}, []string{"no project"}},
		{"firestore://123456", none, Config{}, []string{"not a project id"}},
		{"redis://my-project", none, Config{}, []string{"scheme"}},
		{"firestore://u:s3cret@my-project", none, Config{}, []string{"credentials come from the environment"}},
		{"firestore://my-project/db/more", none, Config{}, []string{"not a database id"}},
		{"firestore://my-project/UPPER?colection=x&ttl=1", none, Config{}, []string{"not a database id", `"colection"`, `"ttl"`}},
		{"firestore://my-project?collection=a/b", none, Config{}, []string{"not a collection id"}},
		{"firestore://my-project?collection=__x__", none, Config{}, []string{"not a collection id"}},
		{"firestore://my-project?collection=..", none, Config{}, []string{"not a collection id"}},
		{"firestore://my-project?collection=", none, Config{}, []string{"exactly one value"}},
		{"firestore://my-project", env("FIRESTORE_EMULATOR_HOST", "localhost"), Config{}, []string{"not host:port"}},
	} {
		u, err := url.Parse(test.raw)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromURL(u, test.env)
		if (err != nil) != (len(test.errs) > 0) {
			t.Errorf("%s: error %v, want %q", test.raw, err, test.errs)
		}
		for _, part := range test.errs {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", test.raw, err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows a secret: %v", test.raw, err)
		}
		if err == nil && (got.Project != test.want.Project || got.Database != test.want.Database ||
			got.Collection != test.want.Collection || got.Emulator != test.want.Emulator) {
			t.Errorf("%s: got %+v, want %+v", test.raw, got, test.want)
		}
	}
}
