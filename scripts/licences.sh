#!/usr/bin/env bash
# licences.sh reads the licences of all dependencies and holds docs/licences.md
# against them. It fails on an unknown licence and on a copyleft one.
#
#   scripts/licences.sh            check
#   scripts/licences.sh --write    write docs/licences.md
#
# Exit: 0 good, 1 not, 2 wrong use. It needs bash 3.2 or newer and Go.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/licences.md
case ${1:-} in
'' | --write) ;;
-h | --help)
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
*)
  echo "licences.sh: unknown argument: $1 (try --help)" >&2
  exit 2
  ;;
esac
now=$(mktemp)
trap 'rm -f "$now"' EXIT
go run ./internal/supply licences >"$now"
if [ "${1:-}" = --write ]; then
  cat "$now" >"$page"
elif ! diff -u "$page" "$now"; then
  echo "licences.sh: $page is out of date: scripts/licences.sh --write" >&2
  exit 1
fi
sed -n 's/^\(Shipped modules.*\)/\1/p' "$now"
