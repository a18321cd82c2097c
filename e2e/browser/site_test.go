package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A visit is one request as it reached the site.
type visit struct {
	method, path, purpose, dest string
	header                      http.Header
}

// A recorder takes note of what reaches a site.
type recorder struct {
	mu     sync.Mutex
	visits []visit
}

func (rec *recorder) note(r *http.Request) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.visits = append(rec.visits, visit{r.Method, r.URL.Path, r.Header.Get("Sec-Purpose"), r.Header.Get("Sec-Fetch-Dest"), r.Header.Clone()})
}

// since returns the visits from the n-th on.
func (rec *recorder) since(n int) []visit {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return append([]visit(nil), rec.visits[n:]...)
}

// watched starts a site until the test ends, and takes note of what reaches it.
func watched(t *testing.T, h http.Handler) (url string, rec *recorder) {
	t.Helper()
	rec = &recorder{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec.note(r)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, rec
}

// A site is a static one with everything that a browser does by itself.
type site struct {
	recorder
	url string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.url = srv.URL
	return s
}

const document = `<!doctype html><html lang="en"><meta charset="utf-8"><title>%s</title><link rel="stylesheet" href="/style.css"><link rel="icon" href="/hills.svg"><h1>%s</h1><img src="/hills.svg" alt="">%s`

// bodies are the pages that are not just text.
func bodies() map[string]string {
	var links strings.Builder
	for i := range 10 {
		fmt.Fprintf(&links, `<p><a id="link-%d" href="/page/%d">page %d</a>`, i, i, i)
	}
	return map[string]string{
		"/":         links.String() + `<p><a id="chain" href="/chain/3">moved</a><form action="/search"><input id="q" name="q"></form>`,
		"/frames":   `<iframe src="/framed"></iframe><object data="/framed-object" type="text/html"></object>`,
		"/script":   `<script>Promise.all([fetch("/page/11"),fetch("/page/12",{headers:{Accept:"text/html"}})]).then(()=>document.body.dataset.done=1);navigator.sendBeacon("/beacon");new WebSocket("ws://"+location.host+"/socket")</script>`,
		"/prefetch": `<link rel="prefetch" href="/page/19">`,
		"/speculate": `<script type="speculationrules">{"prefetch":[{"urls":["/page/20"],"eagerness":"immediate"}],"prerender":[{"urls":["/page/21"],"eagerness":"immediate"}]}</script>
<a id="fetched" href="/page/20">ahead</a>`,
		"/downloads": `<a id="marked" href="/page/22" download="page.html">marked</a> <a id="attachment" href="/attachment">attachment</a>`,
		"/worker":    `<script>navigator.serviceWorker.register("/worker.js")</script>`,
	}
}

var pages = bodies()

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.note(r)
	h := w.Header()
	switch path := r.URL.Path; {
	case path == "/style.css":
		h.Set("Content-Type", "text/css")
		fmt.Fprint(w, "body{font:1.1em/1.5 serif;max-width:40em;margin:2em auto}")
	case path == "/hills.svg":
		h.Set("Content-Type", "image/svg+xml")
		fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="60" height="20"><path d="M0 20Q15 0 30 14T60 6V20Z" fill="#586"/></svg>`)
	case path == "/worker.js":
		h.Set("Content-Type", "text/javascript")
		fmt.Fprint(w, `addEventListener("install",()=>skipWaiting());addEventListener("activate",e=>e.waitUntil(clients.claim()));addEventListener("fetch",e=>e.respondWith(fetch(e.request)))`)
	case path == "/favicon.ico": // the limited page names no icon
		http.NotFound(w, r)
	case path == "/beacon":
		w.WriteHeader(http.StatusNoContent)
	case path == "/socket":
		http.Error(w, "no sockets here", http.StatusBadRequest)
	case path == "/attachment":
		h.Set("Content-Disposition", `attachment; filename="hills.csv"`)
		h.Set("Content-Type", "text/csv")
		fmt.Fprint(w, "hill,height\n")
	case strings.HasPrefix(path, "/chain/"):
		next := map[string]string{"/chain/3": "/chain/2", "/chain/2": "/chain/1", "/chain/1": "/page/29"}[path]
		h.Set("Cache-Control", "no-store")
		http.Redirect(w, r, next, http.StatusFound)
	default:
		title := strings.Trim(path, "/")
		if q := r.URL.Query().Get("q"); q != "" {
			title = "search"
		}
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		fmt.Fprintf(w, document, title, title, pages[path])
	}
}
