# shellcheck shell=bash
#
# dev/lib/shipped.sh - does the library know every minor release that Debian ships?
#
#   check_shipped     asks the package indexes of Debian's suites (sources.sh), and compares with
#                     dev/fingerprint --minors; says what is unknown, or what could not be asked
#   learn_shipped     fetches the sources of what is unknown, as far as they can be had, for
#                     dev/fingerprint to learn
#
# Sourced after common.sh, packages.sh and sources.sh.

# shipped: "15.20 bookworm-security" and so on; fails, with a line that says why, where an index could not
# be read.  A suite that is not there is none.
shipped()
{
	local major unread

	rm -f "$APT/stamp"
	(private_apt) >&2
	export APT_CONFIG=$APT/apt.conf
	unread=$(LC_ALL=C apt-get update 2>&1 | awk '/^(Err|Ign):/ {
		suite = $3
		getline
		if ($0 !~ /404 /) print suite}' | sort -u | paste -sd ' ')
	if [ -n "$unread" ]; then
		warn "the package indexes of $unread cannot be read (no network?): whether all minors are known was not checked"
		return 1
	fi
	for major in "${!SOURCE_SUITES[@]}"; do
		apt-cache madison "postgresql-$major" 2>/dev/null | awk -F'|' '/Sources/ {
			split($2, version, "-")
			split($3, place, " ")
			sub(/\/.*/, "", place[2])
			gsub(/ /, "", version[1])
			print version[1], place[2]}'
	done | sort -Vu
}

# unknown_shipped: of those, what the table does not have
unknown_shipped()
{
	local list known

	list=$(shipped) || return 1
	known=$(dev/fingerprint --minors | cut -f 1)
	grep -vwF "$known" <<<"$list" || true
}

check_shipped()
{
	local unknown

	unknown=$(unknown_shipped) || return 1
	[ -n "$unknown" ] || return 0
	warn "src/base/minor_table.h does not know what Debian ships: $(sed 's/ / of /' <<<"$unknown" | paste -sd , | sed 's/,/, /g');" \
		"dev/release --learn"
	return 1
}

# learn_shipped: a known minor's sources are needed beside those of the new one
learn_shipped()
{
	local unknown version suite dir=$CACHE/minors rc=0
	local -a trees=()

	unknown=$(unknown_shipped) || return 1
	rm -rf "$dir"
	mkdir -p "$dir"
	while read -r version suite; do
		[ -n "$version" ] && [ ! -e "$dir/$version" ] || continue
		# for the table, which is made from a tree of each major
		fetch_source "${version%%.*}"
		if fetch_minor "$version" "$dir" && reference "${version%%.*}" "$dir"; then
			trees+=("$dir/$version")
		else
			warn "the source of $version, of $suite, or of a known one beside it cannot be had; log: $LOGS/sources.log"
			rc=1
		fi
	done <<<"$unknown"
	if [ ${#trees[@]} -gt 0 ]; then
		dev/fingerprint "$dir"/*/ || rc=1
	fi
	rm -rf "$dir"
	return $rc
}

# is_known VERSION
is_known()
{
	dev/fingerprint --minors | cut -f 1 | grep -qx -- "$1"
}

# reference MAJOR DIR: a known minor is in .cache/src or in DIR then
reference()
{
	local major=$1 dir=$2 version

	! is_known "$(source_version "$major" 2>/dev/null)" || return 0
	for version in $(source_versions "postgresql-$major" | sed 's/-.*//'); do
		[ ! -d "$dir/$version" ] && is_known "$version" && fetch_minor "$version" "$dir" && return
	done
	version=$(cd "$dir" && private_apt && unlisted_tarball "postgresql-$major") && unpack_minor "$major" "$version" "$dir"
}

# unpack_minor MAJOR VERSION DIR: the tarball that lies there
unpack_minor()
{
	mkdir -p "$3/$2" &&
		tar -xf "$3/postgresql-$1_$2.orig.tar".* -C "$3/$2" --strip-components=1 --no-same-owner
}

# fetch_minor VERSION DIR: its tree is DIR/VERSION then
fetch_minor()
{
	local version=$1 dir=$2 listed package=postgresql-${1%%.*}

	(
		private_apt
		cd "$dir" || exit 1
		say "fetching the source of $version"
		for listed in $(source_versions "$package" | grep "^${version//./\\.}-"); do
			if apt-get source --download-only --tar-only -q "$package=$listed" >>"$LOGS/sources.log" 2>&1 </dev/null; then
				unpack_minor "${version%%.*}" "$version" .
				exit
			fi
		done
		exit 1
	)
}
