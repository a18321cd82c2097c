#!/usr/bin/env bash
# fuzz.sh fuzzes every target of the repository for a while, two at a time, prints
# what ran, and fails with the input when something was found. The input then lies
# in the package's testdata/fuzz: keep it there with the fix.
#
#   scripts/fuzz.sh [DURATION]        default 60s, for each target
set -euo pipefail
cd "$(dirname "$0")/.."
fuzztime=${1:-60s}
case $fuzztime in
-h | --help)
  sed -n '2,6s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

fuzz() { # package target
  local log try
  log="$logs/$(echo "$1-$2" | tr '/.' '__')"
  # A fuzzing run that found nothing sometimes ends with "context deadline
  # exceeded" on a busy machine; one that found something names the input.
  for try in 1 2; do
    if go test "$1" -run '^$' -fuzz "^$2\$" -fuzztime "$fuzztime" -parallel 1 >"$log" 2>&1; then
      echo "ok   $1 $2: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
      return 0
    fi
    if [ "$try" = 2 ] || grep -q 'Failing input written' "$log"; then break; fi
  done
  cat "$log"
  return 1
}
export -f fuzz
export logs fuzztime
# shellcheck disable=SC2016 # the inner shell expands its own arguments
git grep -n '^func Fuzz' -- '*_test.go' |
  sed -E 's#^(.*)/[^/]+_test\.go:[0-9]+:func (Fuzz[A-Za-z0-9_]+).*#./\1 \2#' |
  xargs -P 2 -L 1 bash -c 'fuzz "$0" "$1"'
