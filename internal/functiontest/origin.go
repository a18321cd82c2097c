package functiontest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// LargeBody is the size of /large: 100 MB.
const LargeBody = 100 << 20

// Origin is a site with faults:
//
//	/page              a page of 1,000 bytes, with two cookies
//	/echo              method, URI, host, body and the fields that matter, as text
//	/moved             302 to /page
//	/unchanged         304 with an ETag
//	/file              10,000 bytes that can be had in ranges
//	/abort/chunked     half a page, then a cut connection
//	/abort/length      the same with Content-Length
//	/slow              two halves of a page, 300 ms apart
//	/hang              no answer until the client leaves
//	/large             LargeBody bytes; with ?chunked, of unannounced length
//	/binary            bytes that are no UTF-8
//	/socket            a WebSocket handshake, then an echo of what comes
func Origin() http.Handler {
	m := http.NewServeMux()
	page := []byte("<!doctype html>" + strings.Repeat("walk ", 197))[:1000]
	html := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html; charset=utf-8") }
	m.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		html(w)
		w.Header().Add("Set-Cookie", "a=1; Path=/")
		w.Header().Add("Set-Cookie", "b=2; Expires=Thu, 01 Jan 2037 00:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(page)
		}
	})
	m.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s %s\n", r.Method, r.RequestURI, r.Host)
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Cookie", "X-Test", "Content-Type", "Upgrade", "X-Edge"} {
			if v := r.Header[name]; len(v) > 0 {
				fmt.Fprintf(w, "%s: %s\n", name, strings.Join(v, " | "))
			}
		}
		fmt.Fprintf(w, "body: %d %x\n", len(body), body[:min(len(body), 16)])
	})
	m.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/page", http.StatusFound) })
	m.HandleFunc("/unchanged", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.WriteHeader(http.StatusNotModified)
	})
	m.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "file.txt", time.Unix(1, 0), bytes.NewReader(bytes.Repeat([]byte("0123456789"), 1000)))
	})
	m.HandleFunc("/abort/{how}", func(w http.ResponseWriter, r *http.Request) {
		html(w)
		if r.PathValue("how") == "length" {
			w.Header().Set("Content-Length", strconv.Itoa(len(page)))
		}
		_, _ = w.Write(page[:500])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	m.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		html(w)
		_, _ = w.Write(page[:500])
		_ = http.NewResponseController(w).Flush()
		time.Sleep(300 * time.Millisecond)
		_, _ = w.Write(page[500:])
	})
	m.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	m.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		if r.URL.RawQuery != "chunked" {
			w.Header().Set("Content-Length", strconv.Itoa(LargeBody))
		}
		piece := make([]byte, 1<<20)
		for range LargeBody / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	m.HandleFunc("/binary", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write([]byte{0x89, 'P', 'N', 'G', 0xff, 0xfe, 0})
	})
	m.HandleFunc("/socket", socket)
	return m
}

// socket answers a WebSocket handshake and echoes bytes; what they mean is of no
// matter to a proxy.
func socket(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		http.Error(w, "want a WebSocket", http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	if rw.Flush() != nil {
		return
	}
	echo(rw)
}

func echo(rw *bufio.ReadWriter) {
	for {
		line, err := rw.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := rw.WriteString(line); err != nil || rw.Flush() != nil {
			return
		}
	}
}
