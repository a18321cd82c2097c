// Package signature verifies signed agents: HTTP Message Signatures (RFC 9421)
// with Ed25519, in the profile "Web Bot Auth"
// (draft-ietf-webbotauth-httpsig-protocol). An agent counts only when the
// operator has put it on the allow-list with the address of its key directory;
// directories are fetched off the request path, and a Signature-Agent that is
// not on the list is no more than a claim.
package signature
