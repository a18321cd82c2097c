#!/usr/bin/env bash
# build-lambda.sh builds the zip of the Lambda function. The same sources and the
# same Go make the same bytes, so that a deployment without a change is none.
# It needs bash 3.2 or newer and Go.

set -eu
LC_ALL=C
export LC_ALL

usage() {
	cat <<'TEXT'
Usage: build-lambda.sh [options]

  --out FILE      the zip; default: dist/lambda-ARCH.zip
  --arch ARCH     arm64 (default, the cheaper one) or amd64
  --policy FILE   put this policy into the zip, as stile.yaml; the function
                  finds it with STILE_POLICY=stile.yaml

Exit: 0 built, 2 wrong use, 3 it could not be built.
TEXT
}

wrong() {
	printf 'build-lambda.sh: %s\nTry: build-lambda.sh --help\n' "$1" >&2
	exit 2
}

cannot() {
	printf 'build-lambda.sh: %s\n' "$1" >&2
	exit 3
}

out='' arch=arm64 policy=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit 0
		;;
	--out | --arch | --policy) [ $# -gt 1 ] || wrong "$1 needs a value" ;;
	*) wrong "unknown argument: $1" ;;
	esac
	case $1 in
	--out) out=$2 ;;
	--arch) arch=$2 ;;
	--policy) policy=$2 ;;
	esac
	shift 2
done
case $arch in
arm64 | amd64) ;;
*) wrong "--arch $arch: want arm64 or amd64" ;;
esac
[ -z "$policy" ] || [ -f "$policy" ] || cannot "$policy: no such file"
command -v go >/dev/null 2>&1 || cannot 'Go was not found'

root=$(cd "$(dirname "$0")/.." && pwd)
[ -n "$out" ] || out=$root/dist/lambda-$arch.zip
mkdir -p "$(dirname "$out")"
stage=$(mktemp -d "${TMPDIR:-/tmp}/build-lambda.XXXXXX") || cannot 'no temporary folder'
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/zip"
[ -z "$policy" ] || cp "$policy" "$stage/zip/stile.yaml"

# Without the two tags the linker keeps every method of every type, and the
# binary is half as large again.
(
	cd "$root"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS='' go build -trimpath -buildvcs=false \
		-tags lambda.norpc,grpcnotrace -ldflags='-s -w -buildid=' -o "$stage/zip/bootstrap" ./adapters/lambda/cmd
) || cannot 'the build failed'
chmod 755 "$stage/zip/bootstrap"
(cd "$root" && GOFLAGS='' go build -o "$stage/mkzip" ./internal/mkzip) || cannot 'the build failed'
"$stage/mkzip" "$out" "$stage/zip" || cannot 'the zip could not be written'
printf '%s: %s bytes\n' "$out" "$(wc -c <"$out" | tr -d ' ')"
