// Package core decides whether a request is a navigation, who is charged for it
// and whether a limit is reached. It imports only the standard library, does no
// I/O but through [Store], and takes its clock from the request.
package core
