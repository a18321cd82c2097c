package crawlers

import "slices"

// Class groups crawlers by what the site gets from them, so that a policy can
// let search engines through and still limit or budget those that train models.
type Class string

// The classes, as written in the policy's exempt.crawlers.
const (
	Search     Class = "search"      // builds a search index that links back
	AISearch   Class = "ai-search"   // indexes for an assistant that cites its sources
	AITraining Class = "ai-training" // collects text to train models
	AIUser     Class = "ai-user"     // fetches one page because a person asked an assistant
	Preview    Class = "preview"     // draws link previews or fetches on a person's behalf, ads checks included
	Archive    Class = "archive"     // keeps copies of the web
	Monitor    Class = "monitor"     // tests whether the site is up
	SEO        Class = "seo"         // sells link data
)

// Classes lists every class once, in the order in which they are documented.
func Classes() []Class {
	return []Class{Search, AISearch, AITraining, AIUser, Preview, Archive, Monitor, SEO}
}

// Valid reports whether c is one of [Classes].
func (c Class) Valid() bool { return slices.Contains(Classes(), c) }
