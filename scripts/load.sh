#!/usr/bin/env bash
# load.sh measures what a limiter in front of a site costs, on one machine and in
# one run: requests a second, p50, p99 and memory of
#
#   site          the site alone (nginx, one small page)
#   nginx         nginx as a reverse proxy without a limit
#   limit_req     the same with limit_req (one zone, by the client's address)
#   stile         Stile over memory, an hour and a day for each client
#   stile-redis   Stile over a Redis of its own
#   caddy         Caddy as a reverse proxy without a limit
#
# Every request is a navigation of one of 100,000 clients, and all are admitted.
# Only the ratios of one run mean anything: the load takes its share of the same
# processors.
#
#   scripts/load.sh [SECONDS] [CONNECTIONS]      default 10 and 64
#
# Needs nginx, wrk and go; redis-server and caddy are left out where missing.
set -euo pipefail
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
  sed -n '2,18s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
seconds=${1:-10}
connections=${2:-64}
PATH=$PATH:/usr/sbin:/usr/local/sbin
for need in nginx wrk go curl; do
  command -v "$need" >/dev/null || { echo "load.sh: $need is missing" >&2; exit 3; }
done

dir=$(mktemp -d)
pids=()
# shellcheck disable=SC2317 # called by trap
cleanup() {
  [ "${#pids[@]}" -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# Ports that nothing listens on at the moment.
cat >"$dir/ports.go" <<'GO'
package main

import (
	"fmt"
	"net"
)

func main() {
	for range 6 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		defer l.Close()
		fmt.Println(l.Addr().(*net.TCPAddr).Port)
	}
}
GO
ports=()
while read -r port; do ports+=("$port"); done < <(go run "$dir/ports.go")
site=${ports[0]} plain=${ports[1]} limited=${ports[2]} stile=${ports[3]} redis=${ports[4]} caddy=${ports[5]}

go build -o "$dir/stile" ./cmd/stile
printf '<!doctype html><title>page</title><p>%s\n' "$(printf 'The hedge was laid in the old way. %.0s' $(seq 60))" >"$dir/page.html"

serve_nginx() { # name, what is in http
  mkdir -p "$dir/$1"
  cat >"$dir/$1.conf" <<CONF
daemon off; master_process off; pid $dir/$1.pid; error_log $dir/$1.err warn; worker_rlimit_nofile 8192;
events { worker_connections 4096; }
http {
  access_log off; client_body_temp_path $dir/$1/b; proxy_temp_path $dir/$1/p; fastcgi_temp_path $dir/$1/f;
  uwsgi_temp_path $dir/$1/u; scgi_temp_path $dir/$1/s; keepalive_requests 10000000;
  upstream site { server 127.0.0.1:$site; keepalive 128; keepalive_requests 10000000; }
  $2
}
CONF
  nginx -p "$dir/$1" -c "$dir/$1.conf" 2>/dev/null &
  pids+=("$!")
  eval "pid_$1=$!"
}
proxied='proxy_pass http://site; proxy_http_version 1.1; proxy_set_header Connection "";'
serve_nginx site "server { listen 127.0.0.1:$site; location / { root $dir; default_type text/html; try_files /page.html =404; } }"
serve_nginx plain "server { listen 127.0.0.1:$plain; location / { $proxied } }"
serve_nginx limited "limit_req_zone \$http_x_forwarded_for zone=pages:32m rate=1000000r/s;
  server { listen 127.0.0.1:$limited; location / { limit_req zone=pages burst=1000000 nodelay; limit_req_status 429; $proxied } }"

cat >"$dir/stile.yaml" <<'YAML'
version: 1
site: load
contact: mailto:ops@example.org
client: {from: xff, trusted_hops: 1, peers: [127.0.0.0/8]}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: 1000000, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: 1000000, window: 24h}
store: {timeout: 1s}
YAML
serve_stile() { # name, port, more
  local name=$1 port=$2
  shift 2
  "$dir/stile" serve --listen "127.0.0.1:$port" --origin "http://127.0.0.1:$site" --policy "$dir/stile.yaml" "$@" >/dev/null 2>"$dir/$name.err" &
  pids+=("$!")
  eval "pid_$name=$!"
}

up() { # port
  for _ in $(seq 100); do
    if curl -sf -o /dev/null -H 'X-Forwarded-For: 192.0.2.1' "http://127.0.0.1:$1/page"; then return; fi
    sleep 0.1
  done
  echo "load.sh: nothing answers on port $1" >&2
  cat "$dir"/*.err >&2
  exit 3
}

cat >"$dir/clients.lua" <<'LUA'
local fields = { ["Sec-Fetch-Dest"] = "document", ["Accept"] = "text/html", ["User-Agent"] = "load" }
function init() math.randomseed(os.time()) end
function request()
  local n = math.random(0, 99999)
  fields["X-Forwarded-For"] = "10." .. math.floor(n / 65536) .. "." .. math.floor(n / 256) % 256 .. "." .. n % 256
  return wrk.format("GET", "/article/" .. n, fields)
end
local bad = 0
function done(summary, latency)
  bad = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  io.write(string.format("RESULT %.0f %.0f %.0f %d\n", summary.requests / summary.duration * 1e6, latency:percentile(50), latency:percentile(99), bad))
end
LUA

base=''
measure() { # label, port, pid
  local out rate p50 p99 bad memory
  up "$2"
  wrk -t 1 -c "$connections" -d 1s -s "$dir/clients.lua" "http://127.0.0.1:$2" >/dev/null
  out=$(wrk -t 1 -c "$connections" -d "${seconds}s" --latency -s "$dir/clients.lua" "http://127.0.0.1:$2" | grep '^RESULT')
  read -r _ rate p50 p99 bad <<<"$out"
  memory=$(awk '/^VmRSS/ { printf "%.0f", $2 / 1024 }' "/proc/$3/status" 2>/dev/null || echo '-')
  [ -n "$base" ] || [ "$1" != limit_req ] || base=$rate
  awk -v label="$1" -v rate="$rate" -v p50="$p50" -v p99="$p99" -v mem="$memory" -v bad="$bad" -v base="${base:-0}" 'BEGIN {
    printf "%-12s %9d %8.2f %8.2f %7s %7d %9s\n", label, rate, p50 / 1000, p99 / 1000, mem, bad, (base > 0 ? sprintf("%.2f", rate / base) : "-") }'
  [ "$bad" -eq 0 ] || failed=1
}

failed=0
printf '%-12s %9s %8s %8s %7s %7s %9s\n' '' 'req/s' 'p50 ms' 'p99 ms' 'MiB' 'errors' 'limit_req'
# shellcheck disable=SC2154 # set by eval
{
  measure limit_req "$limited" "$pid_limited"
  measure site "$site" "$pid_site"
  measure nginx "$plain" "$pid_plain"
  serve_stile memory "$stile"
  measure stile "$stile" "$pid_memory"
  kill "$pid_memory"
  wait "$pid_memory" 2>/dev/null || true
}
if command -v redis-server >/dev/null; then
  redis-server --port "$redis" --bind 127.0.0.1 --save '' --appendonly no --dir "$dir" >/dev/null &
  pids+=("$!")
  sleep 0.5
  serve_stile shared "$stile" --store "redis://127.0.0.1:$redis"
  # shellcheck disable=SC2154
  {
    measure stile-redis "$stile" "$pid_shared"
    kill "$pid_shared"
    wait "$pid_shared" 2>/dev/null || true
  }
fi
if command -v caddy >/dev/null; then
  printf '{\n admin off\n auto_https off\n}\nhttp://127.0.0.1:%s {\n reverse_proxy 127.0.0.1:%s\n}\n' "$caddy" "$site" >"$dir/Caddyfile"
  HOME=$dir XDG_DATA_HOME=$dir XDG_CONFIG_HOME=$dir caddy run --config "$dir/Caddyfile" --adapter caddyfile >/dev/null 2>"$dir/caddy.err" &
  pids+=("$!")
  measure caddy "$caddy" "$!"
fi
exit "$failed"
