package accesslog

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

var benchLines = map[string]string{
	"combined": `203.0.113.77 - - [05/Mar/2024:10:20:30 +0000] "GET /articles/2024/03/some-title?page=2 HTTP/1.1" 200 18231 "https://www.a.example/articles/" "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/122.0.0.0 Safari/537.36"`,
	"caddy":    `{"level":"info","ts":1709634030.7564995,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"203.0.113.77","remote_port":"44790","client_ip":"203.0.113.77","proto":"HTTP/2.0","method":"GET","host":"a.example","uri":"/articles/x","headers":{"User-Agent":["Mozilla/5.0 (Windows NT 10.0)"],"Accept":["text/html"],"Sec-Fetch-Dest":["document"]}},"bytes_read":0,"user_id":"","duration":0.0027,"size":1832,"status":200,"resp_headers":{"Server":["Caddy"],"Content-Type":["text/html"]}}`,
	"alb":      `https 2024-03-05T10:20:30.186641Z app/lb/50dc6c495c0c9188 203.0.113.77:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.a.example:443/x HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281-1d84" "www.a.example" "-" 1 2024-03-05T10:20:30.364000Z "forward" "-" "-" "10.0.0.1:80" "200" "-" "-"`,
}

// BenchmarkParse is one line on one goroutine; combined must not allocate.
func BenchmarkParse(b *testing.B) {
	for name, line := range benchLines {
		b.Run(name, func(b *testing.B) {
			p := NewParser(Options{Now: now})
			var r Record
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if p.Parse(line, &r) != Parsed {
					b.Fatal("not parsed")
				}
			}
		})
	}
}

// TestCombinedAllocatesNothing keeps the hot path flat.
func TestCombinedAllocatesNothing(t *testing.T) {
	p := NewParser(Options{Now: now})
	var r Record
	line := benchLines["combined"]
	p.Parse(line, &r)
	if n := testing.AllocsPerRun(100, func() { p.Parse(line, &r) }); n != 0 {
		t.Errorf("%v allocations per line", n)
	}
}

// BenchmarkScan is the whole pipeline on all cores.
func BenchmarkScan(b *testing.B) {
	var sb strings.Builder
	const lines = 200_000
	for i := range lines {
		fmt.Fprintf(&sb, `203.0.%d.%d`, i>>8&255, i&255)
		sb.WriteString(benchLines["combined"][12:])
		sb.WriteByte('\n')
	}
	in := sb.String()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		s, err := Scan(context.Background(), []Input{Reader("bench", strings.NewReader(in))}, Options{Now: now}, func(int) Sink { return SinkFunc(func(*Record) {}) })
		if err != nil || s.Records != lines {
			b.Fatal(s.Records, err)
		}
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
