#!/usr/bin/env bash
# reproducible.sh builds the Lambda's zip and the Cloud Run function's twice, as
# two people would: in directories of different names, one with an empty build
# cache, with another umask, time zone, locale and file times, some seconds later.
# It fails when the bytes differ.
#
#   scripts/reproducible.sh [--warm]
#
#   --warm   both use this machine's build cache: quick, and proves less
#
# Exit: 0 the same bytes, 1 others, 2 wrong use. It needs bash 3.2 or newer, Go
# and git.
set -euo pipefail
cd "$(dirname "$0")/.."
warm=
case ${1:-} in
'') ;;
--warm) warm=yes ;;
-h | --help)
  sed -n '2,13s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
*)
  echo "reproducible.sh: unknown argument: $1 (try --help)" >&2
  exit 2
  ;;
esac
sum() { if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d' ' -f1; }

work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
one=$work/a two="$work/another place/of the same sources"
for to in "$one" "$two"; do
  mkdir -p "$to"
  git ls-files -z | while IFS= read -r -d '' f; do
    [ -f "$f" ] || continue
    mkdir -p "$to/$(dirname "$f")"
    cp "$f" "$to/$f"
  done
done
find "$two" -type f -exec touch -t 200102030405.06 {} +

build() { # directory
  (cd "$1" && bash scripts/build-lambda.sh --out out/lambda.zip && bash scripts/build-function.sh --out out/function.zip) >/dev/null
}
build "$one"
sleep 2 # the clock of a zip has steps of two seconds
(
  umask 077
  export TZ=Pacific/Kiritimati LANG=tr_TR.UTF-8
  # Nothing of the first build may be taken for the second's.
  [ -n "$warm" ] || export GOCACHE=$work/cache
  build "$two"
)
differ=0
for zip in lambda.zip function.zip; do
  a=$(sum "$one/out/$zip") b=$(sum "$two/out/$zip")
  if [ "$a" = "$b" ]; then
    echo "same bytes twice: $zip $a"
  else
    echo "reproducible.sh: $zip differs: $a and $b" >&2
    differ=1
  fi
done
exit "$differ"
