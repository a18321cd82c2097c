#!/usr/bin/env bash
# build-function.sh packs the sources of the Cloud Run function as Google's
# buildpack wants them: the root package of a module, and only what it needs.
# The same sources make the same bytes. It needs bash 3.2 or newer and Go.

set -eu
LC_ALL=C
export LC_ALL

usage() {
	cat <<'TEXT'
Usage: build-function.sh [options]

  --out FILE      the zip; default: dist/function.zip
  --policy FILE   put this policy into the zip, as stile.yaml; the function
                  finds it with STILE_POLICY=stile.yaml
  --vendor        also pack the dependencies: the build then needs no network
  --dir DIR       write the files there instead of a zip; for gcloud's --source

Exit: 0 built, 2 wrong use, 3 it could not be built.

The function's name (--function, entry point) is Stile.
TEXT
}

wrong() {
	printf 'build-function.sh: %s\nTry: build-function.sh --help\n' "$1" >&2
	exit 2
}

cannot() {
	printf 'build-function.sh: %s\n' "$1" >&2
	exit 3
}

out='' dir='' policy='' vendor=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--vendor)
		vendor=yes
		shift
		continue
		;;
	--out | --dir | --policy) [ $# -gt 1 ] || wrong "$1 needs a value" ;;
	*) wrong "unknown argument: $1" ;;
	esac
	case $1 in
	--out) out=$2 ;;
	--dir) dir=$2 ;;
	--policy) policy=$2 ;;
	esac
	shift 2
done
[ -z "$out" ] || [ -z "$dir" ] || wrong 'give --out or --dir'
[ -z "$policy" ] || [ -f "$policy" ] || cannot "$policy: no such file"
[ -z "$dir" ] || [ ! -e "$dir" ] || cannot "$dir exists already"
command -v go >/dev/null 2>&1 || cannot 'Go was not found'

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/build-function.XXXXXX") || cannot 'no temporary folder'
trap 'rm -rf "$work"' EXIT
stage=$work/function
mkdir "$stage"
cp "$root/go.mod" "$root/go.sum" "$stage/"
[ ! -f "$root/LICENSE" ] || cp "$root/LICENSE" "$stage/"
[ -z "$policy" ] || cp "$policy" "$stage/stile.yaml"

# The files that the compiler reads, of our own packages, for the platform that
# they will run on. Tests stay out: the buildpack wants one package in the root.
(
	cd "$root"
	module=$(GOFLAGS='' go list -m) || exit 1
	# shellcheck disable=SC2016 # these are the template's own variables
	CGO_ENABLED=0 GOOS=linux GOARCH=amd64 GOFLAGS='' go list -deps -f '{{if .Module}}{{if eq .Module.Path "'"$module"'"}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}
{{end}}{{end}}{{end}}' .
) >"$work/files" || cannot 'the sources could not be listed'
while IFS= read -r file; do
	[ -n "$file" ] || continue
	name=${file#"$root"/}
	mkdir -p "$stage/$(dirname "$name")"
	cp "$file" "$stage/$name"
	chmod 644 "$stage/$name"
done <"$work/files"
if [ -n "$vendor" ]; then
	(cd "$stage" && GOFLAGS=-mod=mod go mod vendor) || cannot 'the dependencies could not be packed'
fi

if [ -n "$dir" ]; then
	mkdir -p "$(dirname "$dir")"
	cp -R "$stage" "$dir"
	printf '%s\n' "$dir"
	exit 0
fi
[ -n "$out" ] || out=$root/dist/function.zip
mkdir -p "$(dirname "$out")"
(cd "$root" && GOFLAGS='' go build -o "$work/mkzip" ./internal/mkzip) || cannot 'the build failed'
"$work/mkzip" "$out" "$stage" || cannot 'the zip could not be written'
printf '%s: %s bytes\n' "$out" "$(wc -c <"$out" | tr -d ' ')"
