package policy

import (
	"strings"
	"testing"
	"time"
)

// TestKeySecretsRotate: a record keeps the name that it got when its epoch
// began, whatever is listed later and whatever the time is.
func TestKeySecretsRotate(t *testing.T) {
	t.Parallel()
	day := func(s string) int64 {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return d.Unix()
	}
	before, err := keySecrets([]string{"first-secret-of-the-site"})
	if err != nil {
		t.Fatal(err)
	}
	after, err := keySecrets([]string{"2026-12-01=second-secret-of-the-site", "first-secret-of-the-site"})
	if err != nil {
		t.Fatal(err)
	}
	pick := func(list []KeySecret, start int64) string {
		got := list[0].Secret
		for _, k := range list {
			if start >= k.From {
				got = k.Secret
			}
		}
		return string(got)
	}
	for _, tt := range []struct {
		start int64
		want  string
	}{
		{0, "first-secret-of-the-site"}, // clocks
		{day("2026-11-30"), "first-secret-of-the-site"},
		{day("2026-12-01"), "second-secret-of-the-site"},
		{day("2027-06-01"), "second-secret-of-the-site"},
	} {
		if got := pick(after, tt.start); got != tt.want {
			t.Errorf("epoch from %d: %s, want %s", tt.start, got, tt.want)
		}
	}
	if pick(before, day("2026-11-30")) != pick(after, day("2026-11-30")) {
		t.Error("announcing a rotation renames the records of epochs before it")
	}
	for _, bad := range [][]string{{}, {""}, {"2026-13-01=x"}, {"2026-12-01="}, {"one", "two"}, {"2026-12-01=a", "2026-12-01=b"}} {
		_, err := keySecrets(bad)
		if err == nil {
			t.Errorf("%q is accepted", bad)
		} else if strings.Contains(err.Error(), "two,") {
			t.Errorf("the error quotes a secret: %v", err)
		}
	}
}
