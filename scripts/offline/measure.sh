#!/usr/bin/env bash
# On the machine without a network: a sweep, and its finished cells as one archive to carry home.
# usage: scripts/offline/measure.sh PREFIX ARCHIVE OVERRIDES..
# The sweep goes on where an earlier one ended, and an interrupted one leaves an archive of what it finished. At home:
# tar -C results -xf ARCHIVE, then make report.
set -uo pipefail
prefix=${1:?usage: measure.sh PREFIX ARCHIVE OVERRIDES..}
archive=${2:?usage: measure.sh PREFIX ARCHIVE OVERRIDES..}
shift 2
[ -e "$prefix/env" ] || { echo "error: $prefix has no env; run scripts/offline/build.sh BUNDLE $prefix first" >&2; exit 2; }
# shellcheck disable=SC1091
. "$prefix/env"
python3 -m bench sweep "$@"
status=$?
[ ! -d results ] || python3 -m bench pack results=results -o "$archive" || [ "$status" != 0 ] || status=1
exit "$status"
