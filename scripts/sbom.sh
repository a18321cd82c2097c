#!/usr/bin/env bash
# sbom.sh writes the bill of materials (CycloneDX 1.6, JSON) of a binary of
# Stile's: every module that is linked, its version, checksum and licence, and
# the binary's SHA-256. The same binary makes the same file.
#
#   scripts/sbom.sh [BINARY [FILE]]
#
# BINARY   a binary built from this checkout, or the bootstrap in a zip of
#          scripts/build-lambda.sh; default: ./cmd/stile, built now as dist/stile
# FILE     default: dist/NAME.cdx.json
#
# Exit: 0 written, 1 it could not be, 2 wrong use. It needs bash 3.2 or newer,
# Go, and unzip for a zip.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
  sed -n '2,14s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
if [ $# -gt 2 ]; then
  echo 'sbom.sh: too many arguments (try --help)' >&2
  exit 2
fi
binary=${1:-dist/stile}
mkdir -p dist
if [ $# -eq 0 ]; then
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$binary" ./cmd/stile
fi
name=$(basename "$binary" .zip)
out=${2:-dist/$name.cdx.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $binary in
*.zip)
  unzip -q -o "$binary" bootstrap -d "$work"
  binary=$work/bootstrap
  ;;
esac
go run ./internal/supply sbom "$binary" >"$work/bill"
cat "$work/bill" >"$out"
printf '%s: %s components\n' "$out" "$(grep -c '"type": "library"' "$out")"
