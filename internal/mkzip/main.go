// Command mkzip packs a folder so that the same files make the same bytes: names
// in order, one date, one of two modes. What zip(1) writes depends on its
// version, the clock and the file system, and every deployment would look like
// a change.
//
//	go run ./internal/mkzip OUT.zip DIR
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: mkzip OUT.zip DIR")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mkzip:", err)
		os.Exit(3)
	}
}

// date is the first that a zip file can hold.
var date = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

func pack(out, dir string) (err error) {
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := zip.NewWriter(file)
	// WalkDir goes in lexical order.
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return add(w, path, filepath.ToSlash(name), info.Mode())
	})
	return errors.Join(err, w.Close())
}

func add(w *zip.Writer, path, name string, mode fs.FileMode) error {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: date}
	h.SetMode(0o644)
	if mode&0o100 != 0 {
		h.SetMode(0o755)
	}
	to, err := w.CreateHeader(h)
	if err != nil {
		return err
	}
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	_, err = io.Copy(to, from)
	return err
}
