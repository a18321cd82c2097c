// Package demo is a small site to try Stile on: a listing with thirty links that
// browsers prefetch, articles, a search page, a redirect chain, a feed, and the
// style sheet, script, images and font file that a page drags along. It knows
// nothing of limits; it is an origin like any other. Its pages are marked private,
// so that answers carry the visitor's RateLimit fields for everyone to see.
package demo
