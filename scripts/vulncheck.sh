#!/usr/bin/env bash
# vulncheck.sh asks govulncheck whether a known vulnerability is reached from
# this code, and fails when one is.
#
#   scripts/vulncheck.sh
#
# The database is fetched from vuln.go.dev, or is where GOVULNDB says (a URL, also
# file:///directory). Where it cannot be reached nothing is known, and the script
# says so and passes, unless STILE_REQUIRE names vulndb.
#
# Exit: 0 nothing found or nothing known, 1 found, 3 govulncheck failed.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
  sed -n '2,11s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
PATH=$PATH:$(go env GOPATH)/bin
command -v govulncheck >/dev/null || go install golang.org/x/vuln/cmd/govulncheck@latest
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
govulncheck -db "${GOVULNDB:-https://vuln.go.dev}" -test ./... >"$said" 2>&1 || status=$?
case $status in
0)
  tail -3 "$said"
  ;;
3)
  cat "$said"
  exit 1
  ;;
*)
  # Only what a missing database says is taken for one.
  if ! grep -Eq 'fetching vulnerabilities: .*(dial tcp|no such host|connection refused|timeout|proxyconnect|Forbidden)' "$said"; then
    cat "$said"
    exit 3
  fi
  case ,${STILE_REQUIRE:-}, in
  *,vulndb,*)
    cat "$said"
    echo 'vulncheck.sh: the database is required by STILE_REQUIRE' >&2
    exit 3
    ;;
  esac
  echo 'NOT CHECKED: the database of known vulnerabilities could not be reached, so nothing is known about them here.'
  grep -m 1 'fetching vulnerabilities' "$said" | cut -c1-200
  ;;
esac
