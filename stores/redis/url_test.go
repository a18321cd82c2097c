package redis_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stilehq/stile/stores/redis"
)

func TestFromURL(t *testing.T) {
	t.Parallel()
	env := func(name string) string { return map[string]string{redis.EnvPassword: "from-env"}[name] }
	for _, c := range []struct {
		in   string
		want redis.Config
		tls  bool
	}{
		{"redis://cache", redis.Config{Addrs: []string{"cache:6379"}, Password: "from-env"}, false},
		{"redis://:sesame@10.0.0.3:7000/2?pool=8", redis.Config{Addrs: []string{"10.0.0.3:7000"}, Password: "sesame", DB: 2, Pool: 8}, false},
		{"rediss://app:sesame@[2001:db8::1]:6380", redis.Config{Addrs: []string{"[2001:db8::1]:6380"}, Username: "app", Password: "sesame"}, true},
		{"valkey://[::1]", redis.Config{Addrs: []string{"[::1]:6379"}, Password: "from-env"}, false},
		{"redis://a:1/?cluster=1&node=b:2&node=c&timeout=3s&connect_timeout=4s", redis.Config{Addrs: []string{"a:1", "b:2", "c:6379"},
			Cluster: true, Password: "from-env", Timeout: 3 * time.Second, ConnectTimeout: 4 * time.Second}, false},
	} {
		u, err := url.Parse(c.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := redis.FromURL(u, env)
		if err != nil || (got.TLS != nil) != c.tls {
			t.Errorf("%s: %v, TLS %v", c.in, err, got.TLS != nil)
			continue
		}
		got.TLS = nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.in, got, c.want)
		}
	}
}

// TestFromURLErrors: each mistake is named, all of them at once, and the password
// is in no message.
func TestFromURLErrors(t *testing.T) {
	t.Parallel()
	for in, parts := range map[string][]string{
		"http://:sesame@cache":                                   {"scheme"},
		"redis://:sesame@":                                       {"no host"},
		"redis://:sesame@cache:0":                                {"port"},
		"redis://:sesame@cache/x":                                {"database"},
		"redis://:sesame@cache/-1":                               {"negative"},
		"redis://:sesame@cache/3?cluster=1":                      {"cluster has database 0"},
		"redis://:sesame@cache?node=b":                           {"need cluster=1"},
		"redis://:sesame@cache?node=2001:db8::1":                 {"needs brackets"},
		"redis://user@cache":                                     {"without a password"},
		"redis://:sesame@cache?ca=x":                             {"need rediss"},
		"rediss://:sesame@cache?ca=/does/not/exist":              {"ca:"},
		"redis://:sesame@cache?pool=0&cluster=maybe":             {"pool", "cluster"},
		"redis://:sesame@cache?pool=999&timeout=-1s&colour=blue": {"pool", "timeout", "colour"},
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		_, err = redis.FromURL(u, nil)
		if err == nil {
			t.Errorf("%s: no error", in)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not tell of %q", in, err, part)
			}
		}
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: the password is shown: %v", in, err)
		}
	}
}
