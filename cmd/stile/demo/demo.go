package demo

import (
	"bytes"
	"embed"
	"encoding/xml"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
)

//go:embed site
var site embed.FS

// longestRedirect bounds the chain that /redirect/N makes.
const longestRedirect = 5

// page is what the templates see.
type page struct {
	Title          string
	Query          string
	Speculate      bool
	Articles       []article
	Article        article
	Previous, Next int
}

type server struct {
	pages    *template.Template
	articles []article
}

// New returns the site. The handler keeps no state and is safe for concurrent
// use. An error means that the program was built wrongly.
func New() (http.Handler, error) {
	pages, err := template.ParseFS(site, "site/page.html")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	files, err := fs.Sub(site, "site")
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	s := &server{pages: pages, articles: parseArticles(articlesText)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.home)
	mux.HandleFunc("GET /articles/{number}", s.article)
	mux.HandleFunc("GET /search", s.search)
	mux.HandleFunc("GET /redirect/{left}", redirect)
	mux.HandleFunc("GET /feed.xml", s.feed)
	mux.HandleFunc("GET /assets/{name}", asset(files, "style.css", "reader.js", "stile.svg"))
	mux.HandleFunc("GET /images/{name}", asset(files, "hills.svg"))
	mux.HandleFunc("GET /assets/text.woff2", font)
	mux.HandleFunc("GET /robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write([]byte("User-agent: *\nAllow: /\n"))
	})
	mux.HandleFunc("/", s.missing)
	return mux, nil
}

func (s *server) home(w http.ResponseWriter, _ *http.Request) {
	s.render(w, http.StatusOK, "home", page{Title: "Thirty short walks", Speculate: true, Articles: s.articles})
}

func (s *server) article(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil || n < 1 || n > len(s.articles) {
		s.missing(w, r)
		return
	}
	a := s.articles[n-1]
	s.render(w, http.StatusOK, "article", page{
		Title: a.Title, Article: a,
		Previous: (n+len(s.articles)-2)%len(s.articles) + 1, Next: n%len(s.articles) + 1,
	})
}

func (s *server) search(w http.ResponseWriter, r *http.Request) {
	q := strings.TrimSpace(r.URL.Query().Get("q"))
	p := page{Title: "Search", Query: q}
	for _, a := range s.articles {
		if q != "" && strings.Contains(strings.ToLower(a.Title+" "+a.Summary), strings.ToLower(q)) {
			p.Articles = append(p.Articles, a)
		}
	}
	s.render(w, http.StatusOK, "search", p)
}

func (s *server) missing(w http.ResponseWriter, _ *http.Request) {
	s.render(w, http.StatusNotFound, "missing", page{Title: "No such page"})
}

func (s *server) render(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.Header().Set("Cache-Control", "private, no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// redirect makes a chain: /redirect/3 leads over /redirect/2 and /redirect/1 to
// an article.
func redirect(w http.ResponseWriter, r *http.Request) {
	left, err := strconv.Atoi(r.PathValue("left"))
	target := "/articles/1"
	if err == nil && left > 1 {
		target = "/redirect/" + strconv.Itoa(min(left, longestRedirect)-1)
	}
	w.Header().Set("Cache-Control", "no-cache")
	http.Redirect(w, r, target, http.StatusFound)
}

// asset serves some of the embedded files by name.
func asset(files fs.FS, names ...string) http.HandlerFunc {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	return func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("name")
		if !known[name] {
			http.NotFound(w, r)
			return
		}
		// A visitor's browser asks once; a proof that sends many asks each time.
		w.Header().Set("Cache-Control", "public, max-age=300")
		http.ServeFileFS(w, r, files, name)
	}
}

// font answers as a font file would. No page uses it, since it holds no glyphs:
// it is there to show that a font's request is not counted.
func font(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "font/woff2")
	w.Header().Set("Cache-Control", "public, max-age=300")
	_, _ = w.Write([]byte("wOF2"))
}

// RSS 2.0, as much of it as readers need.
type feed struct {
	XMLName xml.Name `xml:"rss"`
	Version string   `xml:"version,attr"`
	Title   string   `xml:"channel>title"`
	Link    string   `xml:"channel>link"`
	About   string   `xml:"channel>description"`
	Items   []item   `xml:"channel>item"`
}

type item struct {
	Title string `xml:"title"`
	Link  string `xml:"link"`
	GUID  string `xml:"guid"`
	About string `xml:"description"`
}

func (s *server) feed(w http.ResponseWriter, r *http.Request) {
	base := "http://" + r.Host
	f := feed{Version: "2.0", Title: "Over the fence", Link: base + "/", About: "Thirty short walks"}
	for _, a := range s.articles[:10] {
		link := base + "/articles/" + strconv.Itoa(a.Number)
		f.Items = append(f.Items, item{Title: a.Title, Link: link, GUID: link, About: a.Summary})
	}
	text, err := xml.MarshalIndent(f, "", "  ")
	if err != nil {
		http.Error(w, "the feed could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/rss+xml; charset=utf-8")
	_, _ = w.Write([]byte(xml.Header))
	_, _ = w.Write(text)
}
