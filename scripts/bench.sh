#!/bin/sh
# What Stile adds to a page: latency and requests a second in front of a site, for
# each store, beside the site alone. Rounds are interleaved and medians printed, so
# that a busy machine does not favour anybody.
#
#   scripts/bench.sh                                    the built-in stand-in site, counts in memory
#   ORIGIN=http://127.0.0.1:3000 scripts/bench.sh memory: redis://127.0.0.1:6379
#
# ORIGIN  your production build; it must answer 200 to GET /      (default: a stand-in)
# ROUNDS, TIME, WAYS   7, 1s and 16
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- memory:
ROUNDS=${ROUNDS:-7} TIME=${TIME:-1s} WAYS=${WAYS:-16}
dir=$(mktemp -d)
pids=
stop() { for p in $pids; do kill "$p" 2>/dev/null || :; done; wait 2>/dev/null || :; rm -rf "$dir"; }
trap stop EXIT
trap 'exit 1' INT TERM HUP

go build -o "$dir/stile" ./cmd/stile
go build -o "$dir/hit" ./bench/hit
cat > "$dir/policy.yaml" <<'YAML'
version: 1
site: bench-script
client: {from: xff, trusted_hops: 1, peers: [127.0.0.0/8]}
buckets:
  - {name: hour, key: address, algorithm: sliding-window-counter, limit: 1000000000, window: 1h}
  - {name: day, key: address, algorithm: fixed-window, limit: 1000000000, window: 24h}
YAML

port=${PORT:-18480}
await() { # until somebody answers at the URL
  n=0
  until "$dir/hit" -ways 1 -time 1ms "$1" > /dev/null 2>&1; do
    n=$((n + 1)); [ $n -lt 100 ] || { echo "bench.sh: nobody answers at $1" >&2; exit 1; }
    sleep 0.1
  done
}
if [ -z "${ORIGIN:-}" ]; then
  ORIGIN=http://127.0.0.1:$port
  "$dir/hit" -origin "127.0.0.1:$port" & pids="$pids $!"
fi
await "$ORIGIN/"

: > "$dir/fronts"
echo "alone $ORIGIN/" >> "$dir/fronts"
for store in "$@"; do
  port=$((port + 1))
  "$dir/stile" serve --listen "127.0.0.1:$port" --origin "$ORIGIN" --policy "$dir/policy.yaml" --store "$store" \
    > /dev/null 2> "$dir/$port.log" & pids="$pids $!"
  await "http://127.0.0.1:$port/"
  echo "${store%%:*} http://127.0.0.1:$port/" >> "$dir/fronts"
done

round=0
while [ $round -lt "$ROUNDS" ]; do
  round=$((round + 1))
  for ways in 1 "$WAYS"; do
    # Every other round goes the other way about.
    if [ $((round % 2)) -eq 0 ]; then sort -r "$dir/fronts" > "$dir/order"; else sort "$dir/fronts" > "$dir/order"; fi
    while read -r name url; do
      "$dir/hit" -ways "$ways" -time "$TIME" "$url" | sed "s/^{/{\"front\":\"$name\",\"ways\":$ways,/" >> "$dir/runs"
    done < "$dir/order"
  done
done

# Medians over the rounds, and what is added to the site alone.
sed 's/[{}"]//g; s/,/ /g; s/[a-z0-9_]*://g' "$dir/runs" |
  sort -k2,2n -k1,1 | awk '
  function median(list, n,   i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && list[j-1] > list[j]; j--) { t = list[j]; list[j] = list[j-1]; list[j-1] = t }
    return list[int((n + 1) / 2)]
  }
  function flush(   ) {
    if (!n) return
    rate[key] = median(r, n); p50[key] = median(a, n); p99[key] = median(c, n); keys[++count] = key
    n = 0
  }
  { k = $2 " " $1; if (k != key) { flush(); key = k }
    n++; r[n] = $6; a[n] = $7; c[n] = $9; bad[k] += $4 + $5 }
  END { flush()
    print "| ways | in front | requests/s | p50 | p99 | added at p50 | of its requests/s | failed or refused |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= count; i++) {
      split(keys[i], part, " "); base = part[1] " alone"
      printf "| %d | %s | %d | %.0f us | %.0f us | %+.0f us | %.0f %% | %d |\n", part[1], part[2], rate[keys[i]], p50[keys[i]], p99[keys[i]],
        p50[keys[i]] - p50[base], 100 * rate[keys[i]] / rate[base], bad[keys[i]]
    }
  }'
