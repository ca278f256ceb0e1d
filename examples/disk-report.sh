#!/bin/sh
# A job like many: writes one report a window, and takes a moment for it. Run again, it writes the same file again.
set -eu
folder=${REPORTS:-.}
file="$folder/disk-$(printf %s "$RUNLEDGER_WINDOW_START" | tr -d ':').txt"
sleep "${SECONDS_OF_WORK:-0}"
{ echo "disk use for the window from $RUNLEDGER_WINDOW_START (attempt $RUNLEDGER_ATTEMPT)"; df -P /; } >"$file.new"
mv "$file.new" "$file" # a reader never sees half a report
echo "wrote ${file##*/}"
