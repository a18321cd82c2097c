// Package wire turns a policy file and a store URL into what every adapter needs:
// a limiter, the answers and the hit log. It is the one place where the parts
// meet, so that a function, an authorizer and the binary behave alike.
//
// A [Ready] is also where a policy is reloaded: the store stays, so its counts
// stay, and the limiter, the answers and the log are exchanged together.
package wire
