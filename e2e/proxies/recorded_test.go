package proxies_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stilehq/stile/e2e/stand"
)

// Traefik and Envoy are played: their programs come from no package archive that
// the tests could install from. A player reads the documented file and sends
// what the real proxy was recorded to send.

// player is a proxy that asks before it forwards.
type player struct {
	// ask makes the question for a request, or says that none is asked.
	ask func(r *http.Request) (*http.Request, error)
	// absent answers when Stile does not; nil = the request goes on.
	absent func(w http.ResponseWriter)
	// allowed reports whether an answer lets the request through.
	allowed func(status int) bool
	// forward changes what the site is told.
	forward func(pr *httputil.ProxyRequest)
	timeout time.Duration
	site    *url.URL
}

// start serves the player until the test ends and returns its URL.
func (p *player) start(t *testing.T) string {
	t.Helper()
	site := &httputil.ReverseProxy{Rewrite: func(pr *httputil.ProxyRequest) {
		pr.SetURL(p.site)
		pr.Out.Host = pr.In.Host
		pr.Out.URL.RawQuery = pr.In.URL.RawQuery
		p.forward(pr)
	}}
	asker := &http.Client{Timeout: p.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q, err := p.ask(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		res, err := asker.Do(q.WithContext(r.Context()))
		switch {
		case err != nil && p.absent != nil:
			p.absent(w)
			return
		case err == nil:
			defer res.Body.Close()
			if !p.allowed(res.StatusCode) {
				for name, v := range res.Header {
					w.Header()[name] = v
				}
				w.WriteHeader(res.StatusCode)
				_, _ = io.Copy(w, res.Body)
				return
			}
		}
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// hopByHop are not copied into a question.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length"}

func peer(r *http.Request) string {
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// TestTraefikRecorded plays forwardAuth: a GET to the address with the client's
// fields and X-Forwarded-Method, -Proto, -Host, -Uri and -For set.
func TestTraefikRecorded(t *testing.T) {
	t.Parallel()
	s := asked(t)
	var file struct {
		HTTP struct {
			Middlewares map[string]struct {
				ForwardAuth struct {
					Address            string `yaml:"address"`
					TrustForwardHeader *bool  `yaml:"trustForwardHeader"`
				} `yaml:"forwardAuth"`
			}
			Routers map[string]struct {
				Middlewares []string
				Service     string
			}
			Services map[string]struct {
				LoadBalancer struct{ Servers []struct{ URL string } } `yaml:"loadBalancer"`
			}
		}
	}
	text := stand.Substitute(t, documented(t, "traefik.yml"), stileAddr, s.stile.Addr, siteAddr, s.origin.Addr)
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	router := file.HTTP.Routers["site"]
	auth := file.HTTP.Middlewares["stile"].ForwardAuth
	if !slices.Equal(router.Middlewares, []string{"stile"}) || auth.TrustForwardHeader == nil || *auth.TrustForwardHeader {
		t.Fatalf("the router must use the middleware, which must not trust X-Forwarded-For: %+v", file)
	}
	site, err := url.Parse(file.HTTP.Services[router.Service].LoadBalancer.Servers[0].URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{
		site: site, timeout: 30 * time.Second,
		ask: func(r *http.Request) (*http.Request, error) {
			q, err := http.NewRequestWithContext(context.Background(), "GET", auth.Address, nil)
			if err != nil {
				return nil, err
			}
			q.Header = r.Header.Clone()
			for _, name := range hopByHop {
				q.Header.Del(name)
			}
			q.Header.Set("X-Forwarded-Method", r.Method)
			q.Header.Set("X-Forwarded-Proto", "http")
			q.Header.Set("X-Forwarded-Host", r.Host)
			q.Header.Set("X-Forwarded-Uri", r.URL.RequestURI())
			q.Header.Set("X-Forwarded-For", peer(r))
			return q, nil
		},
		allowed: func(status int) bool { return status >= 200 && status < 300 },
		absent:  func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		forward: func(pr *httputil.ProxyRequest) {
			pr.Out.Header.Del("X-Forwarded-For") // the entry point does not trust it
			pr.SetXForwarded()
		},
	}
	s.front = p.start(t)
	prove(t, s)
}

// envoyFile is what the player needs of envoy.yaml.
type envoyFile struct {
	StaticResources struct {
		Listeners []struct {
			FilterChains []struct {
				Filters []struct {
					TypedConfig struct {
						UseRemoteAddress bool `yaml:"use_remote_address"`
						HTTPFilters      []struct {
							Name        string
							TypedConfig struct {
								FailureModeAllow bool `yaml:"failure_mode_allow"`
								HTTPService      struct {
									ServerURI struct {
										URI, Cluster string
										Timeout      string
									} `yaml:"server_uri"`
									PathPrefix string `yaml:"path_prefix"`
								} `yaml:"http_service"`
								AllowedHeaders struct{ Patterns []map[string]string } `yaml:"allowed_headers"`
							} `yaml:"typed_config"`
						} `yaml:"http_filters"`
					} `yaml:"typed_config"`
				}
			} `yaml:"filter_chains"`
		}
	} `yaml:"static_resources"`
}

// TestEnvoyRecorded plays ext_authz over HTTP: the request's own method and path
// after a prefix, Host, Content-Length: 0, Authorization, and nothing else but
// the listed fields. Only 200 is a yes; a 5xx is an error.
func TestEnvoyRecorded(t *testing.T) {
	t.Parallel()
	s := asked(t)
	s.failsOpen, s.hangsOpen = true, true
	var file envoyFile
	text := stand.Substitute(t, documented(t, "envoy.yaml"), "http://"+stileAddr, s.stile.URL)
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	manager := file.StaticResources.Listeners[0].FilterChains[0].Filters[0].TypedConfig
	authz := manager.HTTPFilters[0].TypedConfig
	timeout, err := time.ParseDuration(authz.HTTPService.ServerURI.Timeout)
	if manager.HTTPFilters[0].Name != "envoy.filters.http.ext_authz" || !manager.UseRemoteAddress || !authz.FailureModeAllow || err != nil || timeout > time.Second {
		t.Fatalf("the file is not what this test plays: %+v", manager)
	}
	listed := func(name string) bool {
		name = strings.ToLower(name)
		return slices.ContainsFunc(authz.AllowedHeaders.Patterns, func(p map[string]string) bool {
			return p["exact"] == name || p["prefix"] != "" && strings.HasPrefix(name, p["prefix"])
		})
	}
	site, err := url.Parse(s.origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{
		site: site, timeout: timeout,
		ask: func(r *http.Request) (*http.Request, error) {
			q, err := http.NewRequestWithContext(context.Background(), r.Method, authz.HTTPService.ServerURI.URI+authz.HTTPService.PathPrefix+r.URL.RequestURI(), nil)
			if err != nil {
				return nil, err
			}
			q.Host = r.Host
			chain := append(slices.Clone(r.Header["X-Forwarded-For"]), peer(r))
			for name, v := range r.Header {
				if listed(name) || name == "Authorization" {
					q.Header[name] = v
				}
			}
			if listed("X-Forwarded-For") {
				q.Header.Set("X-Forwarded-For", strings.Join(chain, ","))
			}
			return q, nil
		},
		allowed: func(status int) bool { return status == 200 },
		forward: func(pr *httputil.ProxyRequest) {
			pr.Out.Header.Del("X-Forwarded-For")
			pr.SetXForwarded()
		},
	}
	s.front = p.start(t)
	prove(t, s)
}
