package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/stilehq/stile/policy"
	"github.com/stilehq/stile/stores/open"
)

// loadPolicy reads the policy file at path, "-" from standard input, or the
// example policy when path is empty, with the environment's overrides.
func (t *terminal) loadPolicy(path string) (*policy.File, []policy.Warning, error) {
	switch path {
	case "":
		return policy.Default(t.getenv)
	case "-":
		data, err := io.ReadAll(io.LimitReader(t.stdin, policy.MaxSize+1))
		if err != nil {
			return nil, nil, err
		}
		return policy.Parse("stdin", data, t.getenv)
	}
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	return policy.Parse(path, data, t.getenv)
}

func readFile(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(io.LimitReader(in, policy.MaxSize+1))
}

// invalid reports whether err is about what a policy says, rather than about
// reading it.
func invalid(err error) bool {
	var e *policy.Error
	return errors.As(err, &e)
}

// problems returns every error that was joined into err, in order.
func problems(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, problems(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// policyFailure words why a command that needs a policy cannot go on, and gives it
// the exit status of bad news if the policy itself is to blame.
func policyFailure(path string, err error) error {
	name := path
	if name == "" {
		name = "the example policy"
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("policy %s: no such file", name)
	case !invalid(err):
		return fmt.Errorf("policy %s: %w", name, err)
	}
	text := fmt.Sprintf("policy %s cannot be used:", name)
	for _, e := range problems(err) {
		text += "\n  " + plain(e.Error())
	}
	return badNews(errors.New(text))
}

// wiringFailure words why a policy and a store do not go together.
func wiringFailure(path string, err error) error {
	switch {
	case errors.Is(err, open.ErrURL):
		return misuse(err)
	case invalid(err):
		return policyFailure(path, err)
	}
	return err
}
