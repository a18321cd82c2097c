// Command stile limits page navigations in front of a site. See stile --help.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(exec(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
}
