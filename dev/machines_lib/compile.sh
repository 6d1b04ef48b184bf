#!/bin/bash
#
# dev/machines_lib/compile.sh - every file of src/, by one compiler; also in another root.
#
#   compile.sh JOBS TOP HEADERS COMPILER FLAG...
#
# TOP has src/ and gets objects/, HEADERS are a server's.  What the compiler says goes to stderr, and
# the last line of stdout is "N compiled, N failed".

set -uo pipefail
jobs=$1 top=$2 headers=$3
shift 3

objects=$top/objects
rm -rf "$objects"
mkdir -p "$objects"
cd "$top" || exit 1

# (PGXS gives a server's headers with -I; as system headers they may have what is a warning in ours)
find -L src -name '*.c' | sort | xargs -P "$jobs" -I FILE bash -c '
	file=$1 object=$2/${1//\//-}.o
	shift 2
	"$@" -c "$file" -o "$object"' - FILE "$objects" "$@" -D_GNU_SOURCE -isystem "$headers" -Isrc >&2
all=$(find -L src -name '*.c' | wc -l)
compiled=$(find "$objects" -name '*.o' | wc -l)
echo "$compiled compiled, $((all - compiled)) failed"
[ "$all" -gt 0 ] && [ "$compiled" -eq "$all" ]
