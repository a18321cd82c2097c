package answer

import "net/http"

// Shareable reports whether a shared cache may keep a response, so that what is
// added to it for one visitor, a cookie above all, would reach others. It is the
// rule by which [Writer.Annotate] leaves out the RateLimit fields.
func Shareable(status int, h http.Header) bool { return sharedMayStore(status, h) }
