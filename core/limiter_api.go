package core

// Options are the parts that a Limiter works with. Only Store is required.
type Options struct {
	Store Store // the shared counters
	// Local holds what is this instance's own business: the claims bucket, and
	// the counters of FailLocal. Required unless claims are off and OnError is
	// not FailLocal.
	Local       Store
	Crawlers    CrawlerVerifier // nil = nobody is verified
	Identifiers []Identifier    // asked in order; the first that knows wins
	ASN         ASNSource       // nil = unknown
}

// Answer is what a reverse proxy learned from the origin about a request.
type Answer struct {
	Status      int
	ContentType string // the field's value
	Location    string // redirects: host, path and query of the target, as "example.org/x?y"; empty = none
}
