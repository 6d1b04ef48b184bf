# shellcheck shell=bash
#
# dev/lib/readme.sh - the tables in docs/ that are made of what was tested.
#
#   put_table COMMAND          in docs/compatibility.md, between the line that names the command
#                              and the end: stdin
#   note_servers NAME...       for the table of servers: what they are
#   note_rows                  for it: all tests have run on them, none has failed; their rows
#   servers_table              the table: the rows of the servers of which there are some, and
#                              those that it had of the others
#
# Sourced after queue.sh, servers.sh and suites.sh, but for put_table.

put_table()
{
	local table page=$ROOT/docs/compatibility.md

	table=$(mktemp "$CACHE/table.XXXXXX")
	cat >"$table"
	sed -i -e "\\|^<!-- $1 -->\$|,/^<!-- end -->\$/{//!d}" "$page"
	sed -i -e "\\|^<!-- $1 -->\$|r $table" "$page"
	rm -f "$table"
}

note_servers()
{
	local name

	for name in "$@"; do
		echo "$name $(server_version "$name") $(server_kind "$name") $(server_assertions "$name")" \
			"$(suite_version "$name")"
	done >"$TESTLOGS/servers"
}

# passed_in NAME PATTERN: how many tests of the jobs of that server whose names match
passed_in()
{
	local job sum=0 passed

	for job in "$TESTLOGS/$1"/*.result; do
		[[ $(basename -s .result "$job") =~ ^($2)$ ]] || continue
		read -r passed _ <"$job"
		sum=$((sum + passed))
	done
	echo "$sum"
}

origin_of()
{
	case $1 in
		package) echo "Debian's package" ;;
		built) echo "built from Debian's source package" ;;
		binaries) echo "binary packages of PyPI and npm" ;;
		next) echo "a later Debian's package" ;;
	esac
}

# note_rows: of the servers of the last run, in $CACHE/rows
note_rows()
{
	local name version kind assertions suite core at

	at=$(git -C "$ROOT" rev-parse --short HEAD 2>/dev/null || echo "no commit")
	mkdir -p "$CACHE/rows"
	while read -r name version kind assertions suite; do
		[ "$assertions" != on ] || version="$version, with assertions"
		core="$(passed_in "$name" core-regress-64) + $(passed_in "$name" core-isolation-64)"
		[[ $version == "$suite"* ]] || core="$core, of $suite"
		[ "$suite" != - ] || core="-, as no package has their source"
		printf '| %s | %s | %d | %d | %s | %s |\n' "$version" "$(origin_of "$kind")" \
			"$(passed_in "$name" 'regress|isolation|tap(-.*)?|descent|downlinks|normalizedkey|load|accessmethod|functions|tableam|example|makefile')" \
			"$(passed_in "$name" fuzz)" "$core" "$at" >"$CACHE/rows/$name"
	done <"$TESTLOGS/servers"
}

# servers_table: fails if there is no row at all
servers_table()
{
	local rows=("$CACHE"/rows/*)

	[ -e "${rows[0]}" ] || return 1
	echo "| PostgreSQL | | our tests | statements and index builds, as stock | PostgreSQL's regression and isolation tests, look-ahead forced | commit |"
	echo "|---|---|---|---|---|---|"
	# the last row of a major, with or without assertions, is the one that counts
	sed -n '\|^<!-- dev/test --table -->$|,/^<!-- end -->$/p' "$ROOT/docs/compatibility.md" |
		grep -E '^\| [0-9]' | cat - "${rows[@]}" | awk '
			{ row[int($2) (/, with assertions/ ? "a" : "")] = $0 }
			END { for (key in row) print row[key] }' | sort -V
}
