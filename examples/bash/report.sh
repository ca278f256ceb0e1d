#!/usr/bin/env bash
# A daily report in bash: one window a day on whatever host, announced once, and never written over by a paused and awakened
# run of itself. Needs RUNLEDGER_DB and runledger in PATH.
#   examples/bash/report.sh FILE ANNOUNCE…      ANNOUNCE… is the command that tells people, such as mail(1)
set -euo pipefail
file=$1; shift

# Kept in the background while this script lives; its death frees the run. 73: somebody else has the window, or had it.
RUNLEDGER_CLAIM=$(runledger claim --task report --every 1d --max-attempts 5 --backoff 0ms --hold $$) || { code=$?; [ "$code" = 73 ] && exit 0; exit "$code"; }
export RUNLEDGER_CLAIM
trap 'runledger fail --exit-code $? --error "line $LINENO" >/dev/null' ERR

{ echo "disk use, $(date -u +%FT%TZ)"; df -P /; } >"$file.new.$$"

# The lock is what all writers share; the fence refuses the one that is behind.
exec 9>"$file.lock"
flock 9
runledger fence check --resource "${file##*/}"
mv "$file.new.$$" "$file"
exec 9>&-

runledger effect --name announce -- "$@" "$file"
runledger complete >/dev/null
