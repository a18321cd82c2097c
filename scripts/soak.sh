#!/usr/bin/env bash
# soak.sh runs a Stile over Redis under mixed load while the store is killed and
# started again, and fails when goroutines, descriptors or memory grow, when
# anybody met an error, or when something is left over afterwards.
#
#   scripts/soak.sh [DURATION]        default 30m; redis-server must be installed
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:-30m}
case $duration in
-h | --help)
  sed -n '2,7s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
STILE_REQUIRE=redis exec go test ./e2e/soak -run '^TestSoak$' -count 1 -v -timeout 0 -args -soak "$duration"
