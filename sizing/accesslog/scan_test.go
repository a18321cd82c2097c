package accesslog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// collect scans inputs and returns all records' targets, sorted.
func collect(t *testing.T, o Options, in ...Input) ([]string, Stats) {
	t.Helper()
	o.Now = now
	var mu sync.Mutex
	var got []string
	s, err := Scan(context.Background(), in, o, func(int) Sink {
		return SinkFunc(func(r *Record) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r.Client.String()+r.Target())
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	sum := s.Records
	for _, n := range s.Skipped {
		sum += n
	}
	if sum != s.Lines || int64(len(got)) != s.Records {
		t.Errorf("%d lines, %d accounted for; %d records, %d delivered", s.Lines, sum, s.Records, len(got))
	}
	slices.Sort(got)
	return got, s
}

func combinedLine(i int) string {
	return fmt.Sprintf(`192.0.2.%d - - [05/Mar/2024:10:20:30 +0000] "GET /%07d HTTP/1.1" 200 1 "-" "M"`, i%250, i)
}

// TestScanBlocks: whatever the block borders, every line comes out once, from
// plain, gzip (of several members) and zstd input alike.
func TestScanBlocks(t *testing.T) {
	t.Parallel()
	const n = 20_000 // about six blocks
	var plain bytes.Buffer
	var want []string
	for i := range n {
		fmt.Fprintln(&plain, combinedLine(i))
		want = append(want, fmt.Sprintf("192.0.2.%d/%07d", i%250, i))
	}
	slices.Sort(want)
	var gz, zs bytes.Buffer
	for part := range slices.Chunk(plain.Bytes(), 700_001) { // members cut anywhere
		w := gzip.NewWriter(&gz)
		w.Write(part)
		w.Close()
	}
	zw, _ := zstd.NewWriter(&zs)
	zw.Write(plain.Bytes())
	zw.Close()
	for name, data := range map[string][]byte{"plain": plain.Bytes(), "gzip": gz.Bytes(), "zstd": zs.Bytes(), "no last newline": bytes.TrimRight(plain.Bytes(), "\n")} {
		for _, workers := range []int{1, 3} {
			got, s := collect(t, Options{Workers: workers}, Reader(name, iotestReader{bytes.NewReader(data)}))
			if !slices.Equal(got, want) || len(s.Errors) > 0 {
				t.Errorf("%s, %d workers: %d records of %d, errors %v", name, workers, len(got), n, s.Errors)
			}
		}
	}
}

// iotestReader gives odd amounts, as pipes do.
type iotestReader struct{ r io.Reader }

func (r iotestReader) Read(p []byte) (int, error) {
	return r.r.Read(p[:min(len(p), 40_009)])
}

// TestScanBrokenInput: what can be read of a damaged archive is read, the rest
// is an error of that input, and the next input is read all the same.
func TestScanBrokenInput(t *testing.T) {
	t.Parallel()
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	for i := range 20_000 {
		fmt.Fprintln(w, combinedLine(i))
	}
	w.Close()
	cut := gz.Bytes()[:gz.Len()/2]
	gone := Input{Name: "gone", Open: func() (io.ReadCloser, error) { return nil, os.ErrNotExist }}
	got, s := collect(t, Options{}, Reader("cut", bytes.NewReader(cut)), gone, Reader("next", strings.NewReader(combinedLine(1)+"\n")))
	if len(s.Errors) != 2 || !errors.Is(s.Errors[0], io.ErrUnexpectedEOF) || !errors.Is(s.Errors[1], os.ErrNotExist) {
		t.Errorf("errors %v", s.Errors)
	}
	if len(got) < 5_000 || !slices.Contains(got, "192.0.2.1/0000001") {
		t.Errorf("%d records", len(got))
	}
}

// TestScanW3CHeaderAcrossBlocks: a header at the top of a file holds in every
// block of it, a second one from its line on, and none in the next file.
func TestScanW3CHeaderAcrossBlocks(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const n = 12_000
	b.WriteString("#Version: 1.0\r\n#Fields: date time c-ip cs-method cs-uri-stem sc-status cs(User-Agent)\r\n")
	for i := range n {
		fmt.Fprintf(&b, "2024-03-05 10:20:30 192.0.2.1 GET /a%05d 200 Mozilla/5.0+(Windows)\r\n", i)
	}
	b.WriteString("#Fields: cs-uri-stem c-ip time date cs-method\r\n")
	for i := range n {
		fmt.Fprintf(&b, "/b%05d 192.0.2.2 10:20:30 2024-03-05 GET\r\n", i)
	}
	got, s := collect(t, Options{Workers: 3}, Reader("a", strings.NewReader(b.String())), Reader("b", strings.NewReader("/c 192.0.2.2 10:20:30 2024-03-05 GET\n")))
	if s.Records != 2*n || s.Skipped[Unrecognised] != 1 || s.Skipped[Directive] != 3 {
		t.Errorf("records %d, skipped %v", s.Records, s.Skipped)
	}
	if got[0] != "192.0.2.1/a00000" || got[len(got)-1] != fmt.Sprintf("192.0.2.2/b%05d", n-1) {
		t.Errorf("first %s, last %s", got[0], got[len(got)-1])
	}
}

// TestScanJSONShapes: one object per line, pretty-printed, in an array, an array
// on one line, mixed with text, and one cut off in the middle.
func TestScanJSONShapes(t *testing.T) {
	t.Parallel()
	entry := func(i int, nl string) string {
		return fmt.Sprintf(`{%[2]s  "httpRequest": {%[2]s "requestMethod": "GET",%[2]s "requestUrl": "https://a.example/%[1]d?x=[{\"",%[2]s "remoteIp": "192.0.2.1",%[2]s "status": 200%[2]s },%[2]s "insertId": "i%[1]d",%[2]s "timestamp": "2024-03-05T10:20:30Z"%[2]s}`, i, nl)
	}
	text := `192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] "GET /5?x=[{\" HTTP/1.1" 200 1 "-" "M"`
	all := func(nl, between string) string {
		var parts []string
		for i := range 5 {
			parts = append(parts, entry(i, nl))
		}
		return strings.Join(parts, between)
	}
	for name, in := range map[string]string{
		"lines":            all("", "\n"),
		"pretty":           all("\n", "\n"),
		"pretty, CRLF":     all("\r\n", "\r\n"),
		"array":            "[\n" + all("\n", ",\n") + "\n]\n",
		"array, indented":  "[\n  " + all("\n    ", ",\n  ") + "\n]\n",
		"array on a line":  "[" + all("", ",") + "]\n",
		"two arrays":       "[" + entry(0, "") + "," + entry(1, "") + "]\n[" + entry(2, "") + "," + entry(3, "") + "," + entry(4, "") + "]",
		"byte order mark":  "\ufeff[\n" + all("\n", ",\n") + "\n]\n",
		"text between":     entry(0, "") + "\n[05/Mar/2024] hello\n" + entry(1, "\n") + "\n" + entry(2, "\n") + "\nmore text {\n[" + entry(3, "") + ",\n" + entry(4, "\n") + "]\n",
		"one cut off":      entry(0, "\n") + "\n" + entry(1, "\n")[:90] + "\n" + entry(1, "\n") + "\n" + entry(2, "\n") + "\n" + entry(3, "\n") + "\n" + entry(4, "\n"),
		"repeated entries": all("\n", "\n") + "\n" + all("\n", "\n"),
	} {
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprintf(`192.0.2.1/%d?x=[{"`, i))
		}
		want = append(want, `192.0.2.1/5?x=[{\"`)
		got, s := collect(t, Options{}, Reader(name, strings.NewReader(in+"\n"+text+"\n")))
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q\nskipped %v %v", name, got, want, s.Skipped, s.Examples)
		}
		wantCut, wantDup := int64(0), int64(0)
		switch name {
		case "one cut off":
			wantCut = 1
		case "repeated entries":
			wantDup = 5
		}
		if s.Skipped[Truncated] != wantCut || s.Skipped[DuplicateRow] != wantDup {
			t.Errorf("%s: skipped %v", name, s.Skipped)
		}
	}
}

// TestScanBigArray: the framer keeps its place over block borders.
func TestScanBigArray(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const n = 5_000
	b.WriteString("[\n")
	for i := range n {
		fmt.Fprintf(&b, "  {\n    \"httpRequest\": {\n      \"requestMethod\": \"GET\",\n      \"requestUrl\": \"https://a.example/%05d\",\n      \"remoteIp\": \"192.0.2.1\"\n    },\n    \"insertId\": \"%d\",\n    \"timestamp\": \"2024-03-05T10:20:30Z\"\n  },\n", i, i)
	}
	got, s := collect(t, Options{}, Reader("array", iotestReader{strings.NewReader(b.String() + "]\n")}))
	if len(got) != n || s.Lines != n {
		t.Errorf("%d records, %d lines, want %d", len(got), s.Lines, n)
	}
}

// TestScanOversized: a line beyond the bound is counted and skipped, its
// neighbours are read, and one just below it is a line like any other.
func TestScanOversized(t *testing.T) {
	t.Parallel()
	long := func(n int) string {
		return `192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] "GET /` + strings.Repeat("x", n) + ` HTTP/1.1" 200 1 "-" "M"`
	}
	in := strings.Join([]string{combinedLine(1), long(3_000_000), combinedLine(2), long(100_000), combinedLine(3)}, "\n")
	for _, tail := range []string{"\n", "", "\n" + long(2_000_000)} {
		got, s := collect(t, Options{}, Reader("in", strings.NewReader(in+tail)))
		want := int64(1)
		if len(tail) > 1 {
			want++
		}
		if len(got) != 4 || s.Skipped[Oversized] != want || len(s.Examples[Oversized]) != 200 {
			t.Errorf("%d records, skipped %v", len(got), s.Skipped)
		}
	}
}

// TestFiles: globs, stdin, rotation order, and all mistakes at once.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []string{"access.log", "access.log.1", "access.log.2.gz", "access.log.10.gz", "sub/x-2024-01-01.log", "sub/x-2024-01-02.log"} {
		path := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(combinedLine(1)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Files(strings.NewReader(""), filepath.Join(dir, "access.log*"), filepath.Join(dir, "**/x-*.log"), "-")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range in {
		got = append(got, filepath.Base(i.Name))
	}
	want := []string{"access.log.10.gz", "access.log.2.gz", "access.log.1", "access.log", "x-2024-01-01.log", "x-2024-01-02.log", "standard input"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	_, err = Files(nil, filepath.Join(dir, "nothing*"), filepath.Join(dir, "missing"), filepath.Join(dir, "sub"))
	if !errors.Is(err, ErrNoInput) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("error %v", err)
	}
}

// TestScanStops: a cancelled context ends the scan at once.
func TestScanStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	endless := readerFunc(func(p []byte) (int, error) {
		return copy(p, combinedLine(1)+"\n"), nil
	})
	n := 0
	_, err := Scan(ctx, []Input{Reader("endless", endless)}, Options{Workers: 1, Progress: func(pr Progress) {
		if pr.Lines > 1_000 {
			cancel()
		}
	}}, func(int) Sink { return SinkFunc(func(*Record) { n++ }) })
	if !errors.Is(err, context.Canceled) || n == 0 {
		t.Errorf("%v after %d records", err, n)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
