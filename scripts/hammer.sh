#!/usr/bin/env bash
# hammer.sh proves that a running site limits page navigations, and only those.
# It needs bash 3.2 or newer and curl. docs/hammer.md explains each line of its table.

set -u
LC_ALL=C
export LC_ALL

usage() {
	cat <<'TEXT'
Usage: hammer.sh --url URL --limit N [options]

Sends navigations as a browser sends them until one is refused, and checks that
exactly N were admitted, that the answer is an honest 429, and that assets,
prefetches, another client and a verified crawler are left alone.

The client must be fresh: N navigations from now, in the smallest window that
the policy has. Run it against a site of yours only.

  --url URL                    a page of the site, for example http://127.0.0.1:8080/
  --limit N                    how many navigations one client is admitted
  --client-header 'H: V'       sent with every request of the first client, such as
                               an address that a trusted proxy would add (repeatable)
  --second-client-header 'H: V'  makes a request come from another client (repeatable)
  --crawler-header 'H: V'      makes a request come from a verified crawler's address
                               (repeatable)
  --crawler-agent UA           the crawler's User-Agent; default: Googlebot's
  --asset PATH                 a file that no limit may count (repeatable); default:
                               those that the page itself names
  --redirect PATH              the start of a redirect chain: all of it is one navigation
                               (not behind an authorizer, which sees no answers)
  --contact TEXT               what the 429 page must contain; default: any mailto: or link
  --parallel P                 send P requests at a time and count the admitted; default 1
  --wait SECONDS               if Retry-After is at most that long, wait and expect to be
                               admitted again; default 0
  --insecure                   accept any TLS certificate
  --timeout SECONDS            for each request; default 15

Exit: 0 all as expected, 1 a miss, 2 wrong use, 3 it could not be done.

Example, against the built-in demo site ("stile serve" without --origin):
  scripts/hammer.sh --url http://127.0.0.1:8080/ --limit 60 \
    --client-header 'X-Forwarded-For: 198.51.100.1' \
    --second-client-header 'X-Forwarded-For: 198.51.100.9' \
    --crawler-header 'X-Forwarded-For: 66.249.66.1'
TEXT
}

wrong() {
	printf 'hammer.sh: %s\nTry: hammer.sh --help\n' "$1" >&2
	exit 2
}

cannot() {
	printf 'hammer.sh: %s\n' "$1" >&2
	exit 3
}

# Lists are newline-separated strings: an empty array is an error to bash 3.2 under set -u.
url='' limit='' client='' second='' crawler='' assets='' redirect='' contact=''
crawler_agent='Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'
parallel=1 wait_most=0 timeout=15 insecure=''
newline='
'

whole_number() { # NAME VALUE LEAST
	case $2 in
	'' | *[!0-9]* | ????????*) wrong "$1 $2: want a whole number" ;;
	esac
	[ "$((10#$2))" -ge "$3" ] || wrong "$1 $2: want at least $3"
}

header_line() { # NAME VALUE
	case $2 in
	*"$newline"*) wrong "$1: one header at a time" ;;
	[!:]*:*) ;;
	*) wrong "$1 '$2': want 'Name: value'" ;;
	esac
}

while [ $# -gt 0 ]; do
	option=$1
	shift
	case $option in
	-h | --help)
		usage
		exit 0
		;;
	--insecure)
		insecure=yes
		continue
		;;
	--*=*)
		value=${option#*=}
		option=${option%%=*}
		;;
	--*)
		[ $# -gt 0 ] || wrong "$option needs a value"
		value=$1
		shift
		;;
	*) wrong "unexpected argument: $option" ;;
	esac
	case $option in
	--url) url=$value ;;
	--limit) limit=$value ;;
	--client-header) header_line "$option" "$value" && client="$client$value$newline" ;;
	--second-client-header) header_line "$option" "$value" && second="$second$value$newline" ;;
	--crawler-header) header_line "$option" "$value" && crawler="$crawler$value$newline" ;;
	--crawler-agent) crawler_agent=$value ;;
	--asset) assets="$assets$value$newline" ;;
	--redirect) redirect=$value ;;
	--contact) contact=$value ;;
	--parallel) parallel=$value ;;
	--wait) wait_most=$value ;;
	--timeout) timeout=$value ;;
	*) wrong "unknown option $option" ;;
	esac
done

case $url in
'') wrong 'no --url' ;;
http://?* | https://?*) ;;
*) wrong "--url $url: want http:// or https://" ;;
esac
[ -n "$limit" ] || wrong 'no --limit'
whole_number --limit "$limit" 2
whole_number --parallel "$parallel" 1
whole_number --wait "$wait_most" 0
whole_number --timeout "$timeout" 1
limit=$((10#$limit)) parallel=$((10#$parallel)) wait_most=$((10#$wait_most))
[ "$parallel" -le 64 ] || wrong "--parallel $parallel: want at most 64"
if [ -n "$redirect" ] && [ "$limit" -lt 3 ]; then
	wrong '--redirect needs a --limit of 3 or more'
fi
command -v curl >/dev/null 2>&1 || cannot 'curl was not found'

scheme=${url%%://*}
rest=${url#*://}
origin=$scheme://${rest%%[/?#]*}
case $rest in */*) ;; *) url=$url/ ;; esac

dir=$(mktemp -d "${TMPDIR:-/tmp}/hammer.XXXXXX") || cannot 'no temporary folder'
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM

# --- requests ---------------------------------------------------------------

browser='Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
Accept-Language: en
Upgrade-Insecure-Requests: 1
Sec-Fetch-Site: none
Sec-Fetch-Mode: navigate
Sec-Fetch-User: ?1
Sec-Fetch-Dest: document
'
asset_fields='Accept: */*
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: no-cors
'
link_prefetch='Accept: */*
Sec-Purpose: prefetch
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: no-cors
Sec-Fetch-Dest: empty
'
speculation='Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8
Upgrade-Insecure-Requests: 1
Sec-Purpose: prefetch
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: navigate
Sec-Fetch-Dest: document
'
router_fetch='Accept: */*
RSC: 1
Next-Router-Prefetch: 1
Sec-Fetch-Site: same-origin
Sec-Fetch-Mode: cors
Sec-Fetch-Dest: empty
'
browser_agent='Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'

# quote leaves in $q what TEXT is inside the quotes of curl's configuration.
quote() { # TEXT
	case $1 in
	*[\"\\]*) q=$(printf '%s' "$1" | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g') ;;
	*) q=$1 ;;
	esac
}

# Requests go to curl by its configuration file: one process sends many over one
# connection, and no header has to survive a shell's word splitting.
config() { # FILE AGENT FIELDS
	local line
	{
		quote "$2"
		printf 'user-agent = "%s"\n' "$q"
		while IFS= read -r line; do
			[ -n "$line" ] || continue
			quote "$line"
			printf 'header = "%s"\n' "$q"
		done <<FIELDS
$3
FIELDS
		[ -z "$insecure" ] || printf 'insecure\n'
		printf 'max-time = %s\ngloboff\nsilent\n' "$timeout"
	} >"$1"
}

# once sends one request and leaves $status, $dir/head and $dir/body.
once() { # URL AGENT FIELDS [follow]
	config "$dir/one" "$2" "$3"
	[ -z "${4:-}" ] || printf 'location\nmax-redirs = 10\n' >>"$dir/one"
	{
		quote "$1"
		printf 'url = "%s"\noutput = "%s"\n' "$q" "$dir/body"
		printf 'dump-header = "%s"\nwrite-out = "%%{http_code}"\n' "$dir/head"
	} >>"$dir/one"
	: >"$dir/head"
	: >"$dir/body"
	status=$(curl -q -K "$dir/one" 2>/dev/null)
	[ -n "$status" ] || status=000
}

# volley sends every URL of $dir/urls, $parallel at a time, and leaves $sent,
# $passed (2xx and 3xx), $refused (429) and $other.
volley() { # AGENT FIELDS
	local lane=0 pids='' pid
	while [ "$lane" -lt "$parallel" ]; do
		config "$dir/lane.$lane" "$1" "$2"
		awk -v lane="$lane" -v lanes="$parallel" 'NR % lanes == lane {
			gsub(/\\/, "\\\\"); gsub(/"/, "\\\"")
			printf "url = \"%s\"\noutput = \"/dev/null\"\n", $0
			n++
		} END { exit (n == 0) }' "$dir/urls" >>"$dir/lane.$lane" &&
			{
				printf 'write-out = "%%{http_code}\\n"\n' >>"$dir/lane.$lane"
				curl -q -K "$dir/lane.$lane" >"$dir/codes.$lane" 2>/dev/null &
				pids="$pids $!"
			}
		lane=$((lane + 1))
	done
	for pid in $pids; do
		wait "$pid"
	done
	sent=$(awk 'END { print NR }' "$dir/urls")
	passed=$(cat "$dir"/codes.* | grep -c '^[23]')
	refused=$(cat "$dir"/codes.* | grep -c '^429')
	other=$((sent - passed - refused))
	rm -f "$dir"/codes.* "$dir"/lane.*
}

repeat() { # N URL: appends to $dir/urls
	awk -v n="$1" -v url="$(printf '%s' "$2" | sed 's/\\/\\\\/g')" 'BEGIN { for (i = 0; i < n; i++) print url }' >>"$dir/urls"
}

field() { # NAME: the value in the last answer, lines joined
	tr -d '\r' <"$dir/head" | awk -v name="$1" '
		/^HTTP\// { value = ""; next }
		tolower(substr($0, 1, length(name) + 1)) == tolower(name) ":" {
			line = substr($0, length(name) + 2)
			sub(/^[ \t]+/, "", line); sub(/[ \t]+$/, "", line)
			value = value == "" ? line : value ", " line
		}
		END { print value }'
}

positive() { # TEXT: a whole number of 1 or more
	case $1 in '' | *[!0-9]* | ?????????*) return 1 ;; esac
	[ "$((10#$1))" -ge 1 ]
}

absolute() { # REFERENCE: completed with the site's origin
	case $1 in
	http://* | https://*) printf '%s\n' "$1" ;;
	/*) printf '%s%s\n' "$origin" "$1" ;;
	*) printf '%s/%s\n' "$origin" "$1" ;;
	esac
}

# --- the table --------------------------------------------------------------

misses=0 checks=0 skips=0

row() { # ok|MISS|- CHECK EXPECTED SEEN
	case $1 in
	ok) checks=$((checks + 1)) ;;
	MISS) checks=$((checks + 1)) misses=$((misses + 1)) ;;
	*) skips=$((skips + 1)) ;;
	esac
	# What the site sent may hold anything; the terminal gets one short, plain line.
	local seen=$4
	case $seen in *[![:print:]]*) seen=$(printf '%s' "$seen" | tr -cd '[:print:]') ;; esac
	printf '%-5s %-44s %-26s %s\n' "$1" "$2" "$3" "${seen:0:60}"
}

verdict() { # succeeded? CHECK EXPECTED SEEN
	if [ "$1" -eq 0 ]; then row ok "$2" "$3" "$4"; else row MISS "$2" "$3" "$4"; fi
}

all_passed() { # CHECK
	[ "$passed" -eq "$sent" ]
	verdict $? "$1" "$sent pass" "$passed pass, $refused refused, $other other"
}

once "$url" "$browser_agent" "$client$browser"
[ "$status" != 000 ] || cannot "no answer from $url"

printf '%s, limit %s\n\n' "$url" "$limit"
printf '%-5s %-44s %-26s %s\n' '' CHECK EXPECTED SEEN

case $status in [23]??) ok=0 ;; *) ok=1 ;; esac
verdict $ok 'first navigation' 'admitted' "$status"

if [ -z "$assets" ]; then
	assets=$(grep -aoE "(src|href)=[\"'][^\"'<> ]+\.(css|js|mjs|svg|png|jpe?g|webp|avif|gif|ico|woff2?)(\?[^\"'<> ]*)?[\"']" "$dir/body" |
		sed -e "s/^[a-z]*=[\"']//" -e "s/[\"']\$//" -e 's/&amp;/\&/g' | sort -u | awk 'NR <= 10')
fi
: >"$dir/assets"
printf '%s\n' "$assets" | while IFS= read -r reference; do
	case $reference in
	'' | //*) ;;
	http://* | https://*) case $reference in "$origin"/*) printf '%s\n' "$reference" ;; esac ;;
	*) absolute "$reference" ;;
	esac
done >"$dir/assets"

send_assets() { # CHECK
	if [ ! -s "$dir/assets" ]; then
		row - "$1" '' 'not run: the page names none, give --asset'
		return
	fi
	cat "$dir/assets" >"$dir/urls"
	volley "$browser_agent" "$client$asset_fields"
	all_passed "$1"
}

send_assets 'assets are not refused'
prefetched=0 prefetches=0 kept_out=0
for kind in "$link_prefetch" "$speculation" "$router_fetch"; do
	: >"$dir/urls"
	repeat 10 "$url"
	volley "$browser_agent" "$client$kind"
	prefetches=$((prefetches + sent)) prefetched=$((prefetched + passed)) kept_out=$((kept_out + refused))
done
sent=$prefetches passed=$prefetched refused=$kept_out other=$((prefetches - prefetched - kept_out))
all_passed 'prefetches are not refused'

left=$((limit - 1))
if [ -n "$redirect" ]; then
	once "$(absolute "$redirect")" "$browser_agent" "$client$browser" follow
	hops=$(grep -ac '^HTTP/' "$dir/head")
	case $status in 2??) [ "$hops" -ge 2 ] ;; *) false ;; esac
	verdict $? 'a redirect chain, counted as one' 'admitted, 2 hops or more' "$status after $hops answers"
	left=$((left - 1))
fi

# The exact number is the proof that nothing of the above was counted: had it
# been, fewer would be admitted now.
beyond=0
[ "$parallel" -eq 1 ] || beyond=$((2 * parallel))
: >"$dir/urls"
repeat $((left + beyond)) "$url"
volley "$browser_agent" "$client$browser"
[ "$passed" -eq "$left" ] && [ "$refused" -eq "$beyond" ]
verdict $? "navigations up to the limit ($sent sent)" "$left admitted" "$passed admitted, $refused refused, $other other"
[ "$passed" -ge "$left" ] || fewer=yes

# --- the refusal ------------------------------------------------------------

once "$url" "$browser_agent" "$client$browser"
[ "$status" = 429 ]
verdict $? 'the next navigation' '429' "$status"
first_wait=$(field Retry-After)
positive "$first_wait"
verdict $? '  Retry-After' 'whole seconds, >= 1' "${first_wait:-none}"
cache=$(field Cache-Control)
case $cache in *[Nn][Oo]-[Ss][Tt][Oo][Rr][Ee]*) ok=0 ;; *) ok=1 ;; esac
[ "$status" = 429 ] || ok=1
verdict $ok '  Cache-Control' 'no-store' "${cache:-none}"
type=$(field Content-Type)
case $type in text/html*) [ "$status" = 429 ] && grep -aqi '<!doctype html' "$dir/body" ;; *) false ;; esac
verdict $? '  a page for people' 'text/html' "${type:-none}"
if [ "$status" != 429 ]; then
	row MISS '  with a contact' "${contact:-mailto: or a link}" 'no refusal'
elif [ -n "$contact" ]; then
	grep -aqF -e "$contact" "$dir/body"
	verdict $? '  with a contact' "$contact" "$(grep -aoF -e "$contact" "$dir/body" | awk 'NR == 1')"
else
	seen=$(grep -aoiE "(mailto:|href=[\"']?https?://)[^\"'<> ]+" "$dir/body" | awk 'NR == 1')
	[ -n "$seen" ]
	verdict $? '  with a contact' 'mailto: or a link' "${seen:-none}"
fi

json_fields=$(printf '%s' "$browser" | sed 's/^Accept: .*/Accept: application\/json/')
once "$url" "$browser_agent" "$client$json_fields$newline"
type=$(field Content-Type)
case $status:$type in
429:application/json*) grep -aqE '"code": *"RATE_LIMITED"' "$dir/body" && grep -aqE '"retry_after": *[1-9][0-9]*' "$dir/body" ;;
*) false ;;
esac
verdict $? '  JSON when asked for' 'RATE_LIMITED, retry_after' "$status $type"

: >"$dir/urls"
repeat 5 "$url"
volley "$browser_agent" "$client$browser"
[ "$refused" -eq "$sent" ]
verdict $? 'further navigations' "$sent refused" "$passed admitted, $refused refused, $other other"
once "$url" "$browser_agent" "$client$browser"
later=$(field Retry-After)
positive "$first_wait" && positive "$later" && [ "$((10#$later))" -le "$((10#$first_wait))" ]
verdict $? 'refusals do not lengthen the wait' "<= ${first_wait:-none}" "${later:-none}"
send_assets 'assets pass while pages are refused'
once "$url" "$browser_agent" "$client$speculation"
case $status in 204) ok=1 ;; 2?? | 304 | 429) ok=0 ;; *) ok=1 ;; esac
verdict $ok 'a prefetch while refused' '429 or a page, never 204' "$status"

# --- others -----------------------------------------------------------------

once "$url" "$crawler_agent" "$client$browser"
[ "$status" = 429 ]
verdict $? "a crawler's name alone earns nothing" '429' "$status"

if [ -n "$second" ]; then
	once "$url" "$browser_agent" "$second$browser"
	case $status in [23]??) ok=0 ;; *) ok=1 ;; esac
	verdict $ok 'a second client' 'admitted' "$status"
else
	row - 'a second client' '' 'not run: give --second-client-header'
fi

if [ -n "$crawler" ]; then
	# More than the limit: a crawler that passes once may be any fresh client.
	: >"$dir/urls"
	repeat $((limit + 1)) "$url"
	volley "$crawler_agent" "${crawler}Accept: text/html$newline"
	all_passed "a verified crawler's address"
else
	row - "a verified crawler's address" '' 'not run: give --crawler-header'
fi

if [ "$wait_most" -gt 0 ]; then
	once "$url" "$browser_agent" "$client$browser"
	pause=$(field Retry-After)
	if positive "$pause" && [ "$((10#$pause))" -le "$wait_most" ]; then
		sleep "$((10#$pause))"
		once "$url" "$browser_agent" "$client$browser"
		case $status in [23]??) ok=0 ;; *) ok=1 ;; esac
		verdict $ok "after Retry-After ($pause s)" 'admitted' "$status"
	else
		row - 'after Retry-After' '' "not run: ${pause:-none} is longer than --wait"
	fi
fi

printf '\n%s checks, %s missed, %s not run\n' "$checks" "$misses" "$skips"
if [ "${fewer:-}" = yes ]; then
	printf 'Fewer were admitted than expected: was this client counted before? Use a fresh one (--client-header), or wait for the window to end.\n'
fi
[ "$misses" -eq 0 ] || exit 1
