// Package crawlers says whether a client is the crawler that its User-Agent
// claims to be. Two proofs live here: ranges that operators publish, and
// reverse DNS with forward confirmation; the third, signed agents, is package
// [github.com/stilehq/stile/crawlers/signature]. A User-Agent alone proves
// nothing: it neither exempts nor blocks.
//
// Nothing in the path of a request does I/O. [Verifier.Verify] reads tables
// that [Verifier.Refresh] replaces atomically; a claim that the tables cannot
// answer is queued for reverse DNS, and stays an ordinary client meanwhile.
// [Verifier.Run] refreshes on a timer where instances live on; on
// request-billed platforms Refresh rides beside a request's origin call with a
// budget, since nothing runs there after the response.
package crawlers
