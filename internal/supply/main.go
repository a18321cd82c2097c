// Command supply says what Stile is made of: the licences of its dependencies
// and the bill of materials of a binary. scripts/licences.sh and scripts/sbom.sh
// call it.
//
//	go run ./internal/supply licences          docs/licences.md, on standard output
//	go run ./internal/supply sbom FILE         CycloneDX JSON of a Go binary
//
// Exit: 0 done, 1 a licence is unknown or not accepted, or the file could not be
// read, 2 wrong use.
package main

import (
	"fmt"
	"os"
)

func main() {
	var text string
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "licences":
		text, err = page(".")
	case len(os.Args) == 3 && os.Args[1] == "sbom":
		text, err = bill(".", os.Args[2])
	default:
		fmt.Fprintln(os.Stderr, "usage: supply licences | supply sbom FILE")
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
	fmt.Print(text)
}
