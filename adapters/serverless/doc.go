// Package serverless is what the function adapters share: a start from the
// environment that never locks visitors out, and work that rides beside a
// request because nothing runs after its answer.
//
// The environment:
//
//	STILE_POLICY   the policy file's path, or its text (anything with a line break)
//	STILE_STORE    the store's URL; default: this instance's memory
//	STILE_ORIGIN   the site behind, as https://host[:port]; none: forward-auth
//
// and every override of a policy key (see docs/policy.md), such as STILE_MODE.
package serverless
