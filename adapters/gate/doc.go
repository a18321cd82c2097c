// Package gate is the net/http adapter: a transparent reverse proxy in front of
// one origin, and the forward-auth endpoint that other proxies ask. Both decide
// from the request as it was received, before anything is forwarded.
//
// The proxy adds nothing to a request but X-Forwarded-*, and nothing to a
// response but the RateLimit fields of counted ones. The query stays as it was
// sent, paths stay encoded as they were, and Host is the client's.
package gate
