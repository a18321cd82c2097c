#!/usr/bin/env bash
# clients.sh sends a page of each of many distinct clients through "stile serve",
# while sixteen busy clients come again and again, and fails when the process
# grows, when a newcomer is refused, or when a busy one gets a page more or less
# than its limit. Loopback only.
#
#   scripts/clients.sh [CLIENTS [MAX_KEYS]]      default 1000000, and a tenth of them
#   scripts/clients.sh --redis [CLIENTS]         counted in a redis-server of its own
#   scripts/clients.sh --handler [CLIENTS [MAX_KEYS]]
#                       the handler of a forward-auth Stile, without sockets and site
#
# It needs bash 3.2 or newer, Go, and redis-server for --redis.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
-h | --help)
  sed -n '2,13s/^# \{0,1\}//p' "$0"
  exit 0
  ;;
esac
over=()
case ${1:-} in
--redis)
  over=(-clients-redis)
  shift
  ;;
--handler)
  over=(-clients-in-process)
  shift
  ;;
esac
clients=${1:-1000000}
keys=${2:-$((clients / 10))}
STILE_REQUIRE=redis exec go test ./e2e/soak -run '^TestDistinctClients$' -count 1 -v -timeout 0 -args -clients "$clients" -max-keys "$keys" ${over[@]+"${over[@]}"}
