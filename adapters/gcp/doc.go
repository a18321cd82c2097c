// Package gcp runs the gate as a Cloud Run function under Google's Functions
// Framework, and as a plain container where the framework is not wanted: it
// knows where Google puts the client's address, how Cloud Logging names things,
// and what the framework does with a handler.
//
// Beyond what package serverless reads, STILE_INGRESS says what is in front:
//
//	direct          the run.app URL: the rightmost entry of X-Forwarded-For is the client
//	load-balancer   an external Application Load Balancer: the second from the right
//
// It is never guessed from the number of entries, which the client chooses.
// docs/adapters-gcp.md has the rest.
package gcp
