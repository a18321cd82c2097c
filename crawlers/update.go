package crawlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// ErrNothingFetched is returned by [Verifier.Update] when no source answered:
// the file was left as it was, and a build that relies on it should fail.
var ErrNothingFetched = errors.New("crawlers: no list could be fetched")

// A Change is what an update did to one list.
type Change struct {
	List   string `json:"list"`
	Before int    `json:"before"` // prefixes held before
	After  int    `json:"after"`
	Error  string `json:"error,omitempty"` // why it was not fetched; the held ranges were kept
}

// Update fetches every list that has a URL, whether due or not, and writes what
// is held afterwards to path: a dated text file that shows in a diff what
// changed, to be committed or put into an image and given back as a
// Config.Snapshots entry. The file is replaced as a whole or not at all. Lists
// that failed keep their held ranges and are named in the changes; the error is
// [ErrNothingFetched], ctx's, or the file's.
func (v *Verifier) Update(ctx context.Context, path string) ([]Change, error) {
	v.flight.Lock()
	defer v.flight.Unlock()
	var changes []Change
	var ids []int
	for i, l := range v.cat.Lists {
		if l.URL != "" {
			ids = append(ids, i)
		}
	}
	results := make([]result, len(ids))
	slots := make(chan struct{}, fetches)
	var wg sync.WaitGroup
	before := v.List()
	for k, i := range ids {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[k] = v.fetchList(ctx, i)
		})
	}
	wg.Wait()
	v.apply(ctx, results)
	after := v.List()
	fetched := 0
	for k, i := range ids {
		c := Change{List: v.cat.Lists[i].ID, Before: before[i].Prefixes, After: after[i].Prefixes}
		if err := results[k].err; err != nil {
			c.Error = err.Error()
		} else {
			fetched++
		}
		changes = append(changes, c)
	}
	if err := ctx.Err(); err != nil {
		return changes, err
	}
	if fetched == 0 {
		return changes, ErrNothingFetched
	}
	var b bytes.Buffer
	if err := v.Snapshot().Encode(&b, v.cfg.Now()); err != nil {
		return changes, err
	}
	return changes, replaceFile(path, b.Bytes())
}

// Snapshot returns what is held now. The prefixes are shared: do not change them.
func (v *Verifier) Snapshot() Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := Snapshot{}
	for i := range v.lists {
		if len(v.lists[i].held.Prefixes) > 0 {
			h := v.lists[i].held
			if v.lists[i].checked.After(h.Fetched) {
				h.Fetched = v.lists[i].checked
			}
			s[v.cat.Lists[i].ID] = h
		}
	}
	return s
}

// replaceFile writes beside path and renames, so that no reader sees half a file.
func replaceFile(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".crawlers-*")
	if err != nil {
		return fmt.Errorf("crawlers: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("crawlers: %w", err)
		}
	}()
	if _, err = f.Write(b); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
