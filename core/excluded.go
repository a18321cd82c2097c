package core

import (
	"slices"
	"sync"
)

// The built-in list of what is no page, in three parts. Endings and feeds are
// guesses, which an answer may prove wrong (see [Limiter.Answered]); names are not.
var (
	endingList = []string{
		"*.css", "*.js", "*.mjs", "*.map", "*.json", "*.xml", "*.txt", "*.wasm", "*.webmanifest",
		"*.png", "*.jpg", "*.jpeg", "*.gif", "*.webp", "*.avif", "*.svg", "*.ico", "*.bmp", "*.tif", "*.tiff", "*.jxl",
		"*.woff", "*.woff2", "*.ttf", "*.otf", "*.eot",
		"*.mp3", "*.mp4", "*.m4a", "*.ogg", "*.oga", "*.ogv", "*.webm", "*.wav", "*.flac", "*.m3u8", "*.ts", "*.mpd", "*.vtt",
		"*.pdf", "*.epub", "*.csv", "*.doc", "*.docx", "*.xls", "*.xlsx", "*.ppt", "*.pptx", "*.odt", "*.ods",
		"*.zip", "*.gz", "*.tgz", "*.bz2", "*.xz", "*.zst", "*.7z", "*.rar",
		"*.rss", "*.atom", "*.rdf",
	}
	nameList = []string{
		// Framework bundles and image services.
		"/_next/static/**", "/_next/image", "/_nuxt/**", "/_astro/**", "/_app/**", "/_image",
		"/assets/**", "/static/**", "/images/**", "/img/**", "/fonts/**",
		// Machines' own doors.
		"/api/**", "/wp-json/**", "/graphql", "/.well-known/**", "/robots.txt", "/favicon.ico",
		"/sitemap*", "/**/sitemap*.xml",
		// Health checks and metrics.
		"/health", "/healthz", "/livez", "/readyz", "/ping", "/status", "/_health", "/metrics", "/-/healthy",
	}
	feedList = []string{"/feed/**", "/feeds/**", "/rss/**", "/atom/**", "/**/feed", "/**/rss", "/**/atom"}
)

// DefaultExcludeList is what is no page on most sites: assets by extension,
// framework data and bundles, APIs, feeds, sitemaps and health checks. A
// policy's count.exclude replaces it.
var DefaultExcludeList = slices.Concat(endingList, nameList, feedList)

// pageDataList is where frameworks keep the text of their pages for their own
// routers. Whatever Exclude says, these are page paths: a browser's router asks
// for them as claims, and a crawler that reads them instead of the pages is
// counted.
var pageDataList = []string{
	"/_next/data/**", "__data.json", "*__data.json", "_payload.json",
}

var (
	defaultExclude = mustCompile(DefaultExcludeList)
	pageData       = mustCompile(pageDataList)
)

// mustCompile compiles the constant lists above; a test compiles them first.
func mustCompile(list []string) *Patterns {
	p, err := CompilePatterns(list...)
	if err != nil {
		panic(err)
	}
	return p
}

// DefaultExclude returns DefaultExcludeList compiled.
func DefaultExclude() *Patterns { return defaultExclude }

var (
	feedPaths = sync.OnceValue(func() *Patterns { return mustCompile(feedList) })
	named     = sync.OnceValue(func() *Patterns { return mustCompile(nameList) })
)

// guessed reports whether the built-in list excludes a clean path by its
// extension, or as a feed by its name, and by nothing else.
func guessed(s string) bool { return defaultExclude.matchClean(s) && !named().matchClean(s) }
