#!/usr/bin/env bash
# secrets.sh scans every commit that this clone has for secrets, with gitleaks,
# and fails when one is found. What is found is printed redacted.
#
#   scripts/secrets.sh
#
# A shallow clone is deepened first where its remote can be reached; where not,
# the script says how many commits it has seen.
#
# Exit: 0 none, 1 found, 3 the scan failed. It needs bash 3.2 or newer, git and
# gitleaks, which it installs with Go.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
  sed -n '2,12s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
PATH=$PATH:$(go env GOPATH)/bin
command -v gitleaks >/dev/null || go install github.com/zricethezav/gitleaks/v8@v8.30.1
if [ "$(git rev-parse --is-shallow-repository)" = true ] && ! git fetch --quiet --unshallow 2>/dev/null; then
  echo 'PARTIAL: this clone is shallow and its remote cannot be reached; only its own commits are scanned.'
fi
all=$(git log --all --no-merges --diff-filter=ACMR --format=%h | wc -l | tr -d ' ')
said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
gitleaks git --no-banner --no-color --redact --verbose --config scripts/gitleaks.toml --log-opts=--all --timeout 600 . >"$said" 2>&1 || status=$?
seen=$(sed -nE 's/.* ([0-9]+) commits scanned.*/\1/p' "$said")
case $status in
0) ;;
1)
  cat "$said"
  exit 1
  ;;
*)
  cat "$said"
  exit 3
  ;;
esac
# A scan that saw nothing found nothing. Commits that only delete are not looked at.
if [ "${seen:-0}" -lt "$all" ]; then
  cat "$said"
  echo "secrets.sh: ${seen:-no} of $all commits were scanned" >&2
  exit 3
fi
echo "$seen commits scanned: no secret"
