// Package functiontest runs the functions as their platforms do, from the built
// artefacts: the Cloud Run function in the layout of Google's buildpack under
// the Functions Framework, and the Lambda's bootstrap under AWS's runtime
// interface emulator. It also has the origin whose faults every adapter meets.
package functiontest
