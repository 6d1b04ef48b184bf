# shellcheck shell=bash
#
# dev/lib/next.sh - does src/ compile for the newest major, PostgreSQL 19?
#
# A server of it does not run beside this Debian's C library (dev/fresh has a machine for it).
# What can be had is its headers: Debian's suites for what comes offer them as a package,
# which is unpacked and not installed, so nothing else of those suites is needed.
#
#   .cache/apt-next/         an apt configuration of their own, as in sources.sh
#   .cache/headers/next/     the package, with the file .version beside it
#
# A newer package is looked for once a day.  Every file of src/ is compiled, with our own
# warnings.

NEXT_MAJOR=19
NEXT_SUITES=(experimental sid)
NEXT_APT=$CACHE/apt-next
NEXT_HEADERS=$CACHE/headers/next

# next_list: the machine's entries for this Debian, as binary entries of those suites
next_list()
{
	local here opt uri suite other

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		case $suite in
			"$here" | stable | oldstable) ;;
			*) continue ;;
		esac
		for other in "${NEXT_SUITES[@]}"; do
			printf 'deb [%s] %s %s main\n' "$opt" "$uri" "$other"
		done
	done | sed 's/ \[ *\]//' | sort -u
}

# next_apt: read their package lists
next_apt()
{
	export APT_CONFIG=$NEXT_APT/apt.conf

	mkdir -p "$NEXT_APT/lists/partial" "$NEXT_APT/cache/archives/partial" "$NEXT_APT/parts"
	cat >"$NEXT_APT/apt.conf" <<-EOT
		Dir::Etc::sourcelist "$NEXT_APT/sources.list";
		Dir::Etc::sourceparts "$NEXT_APT/parts";
		Dir::State::lists "$NEXT_APT/lists";
		Dir::Cache "$NEXT_APT/cache";
		APT::Sandbox::User "$(id -un)";
		Acquire::Retries "3";
		Acquire::Languages "none";
	EOT
	next_list >"$NEXT_APT/sources.list"
	[ -s "$NEXT_APT/sources.list" ] && apt-get update
}

# fetch_next_headers: the newest that is offered
fetch_next_headers()
{
	local package=postgresql-server-dev-$NEXT_MAJOR version

	next_apt || return 1
	version=$(apt-cache madison "$package" |
		awk -F'|' '/Packages/ {gsub(/ /, "", $2); print $2}' | sort -V | tail -n 1)
	[ -n "$version" ] || return 1
	[ "$(cat "$NEXT_HEADERS/.version" 2>/dev/null)" != "$version" ] || return 0
	rm -rf "$NEXT_HEADERS"
	mkdir -p "$NEXT_HEADERS"
	cd "$NEXT_HEADERS" || return 1
	apt-get download -q "$package=$version" && dpkg -x ./*.deb . && rm -f ./*.deb || return 1
	echo "$version" >.version
}

# need_next_headers: what is at hand, renewed once a day; fails if there is none
need_next_headers()
{
	mkdir -p "$NEXT_APT"
	if [ -z "$(find "$NEXT_APT/stamp" -mtime -1 2>/dev/null)" ]; then
		(fetch_next_headers) >>"$LOGS/next.log" 2>&1 </dev/null ||
			echo "the headers of PostgreSQL $NEXT_MAJOR could not be asked for; see $LOGS/next.log"
		touch "$NEXT_APT/stamp"
	fi
	[ -e "$NEXT_HEADERS/.version" ]
}

# next_job: a test for each file
next_job()
{
	local file passed=0 failed=0
	local include=$NEXT_HEADERS/usr/include/postgresql/$NEXT_MAJOR/server

	if ! need_next_headers; then
		note "skipped: no package has the headers of PostgreSQL $NEXT_MAJOR"
		return 0
	fi
	for file in "$ROOT"/src/*.c "$ROOT"/src/*/*.c; do
		if "${CC:-cc}" -fsyntax-only -D_GNU_SOURCE "${WARNINGS[@]}" \
			-I"$ROOT/src" -isystem "$include" "$file"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
		fi
	done
	count $passed $failed
	note "headers of $(cat "$NEXT_HEADERS/.version")"
	[ $failed -eq 0 ]
}
