# shellcheck shell=bash
#
# dev/lib/packages.sh - the Debian packages that building and testing needs.
#
# need_packages installs what is missing when root, and otherwise names it and
# stops.  Nothing of PostgreSQL is ever installed: servers are built or unpacked
# below .cache (servers.sh).
#
# What is installed stays as it is.  apt simulates each installation first.  Where it
# would upgrade or remove a package, a new one is asked for in the version that belongs
# to what is installed (libssl-dev of the libssl3 at hand).  If apt would still have to
# change something, nothing is installed, and the packages are named.  LA_UPGRADE=1, for
# a machine of nobody, lets apt upgrade what no installed PostgreSQL server uses.

BUILD_PACKAGES=(
	build-essential bison flex perl pkg-config dpkg-dev libipc-run-perl
	libicu-dev libreadline-dev zlib1g-dev liblz4-dev libzstd-dev
	liburing-dev libssl-dev libxml2-dev bzip2 xz-utils util-linux python3 python3-venv tzdata
)

# nice to have: dev/lint says so when it has to do without
LINT_PACKAGES=(shellcheck)

is_debian()
{
	[ -r /etc/debian_version ] && command -v dpkg-query >/dev/null &&
		command -v apt-get >/dev/null
}

# missing_packages NAME...: those that are not installed
missing_packages()
{
	local name

	for name in "$@"; do
		case $(dpkg-query -W -f '${db:Status-Abbrev}' "$name" 2>/dev/null) in
			?i*) ;;
			*) printf '%s\n' "$name" ;;
		esac
	done
}

# offered_packages NAME...: those that apt knows an installable version of
offered_packages()
{
	local name

	for name in "$@"; do
		[ -z "$(LC_ALL=C apt-cache policy "$name" 2>/dev/null |
			sed -n '/Candidate: [^(]/p')" ] || printf '%s\n' "$name"
	done
}

# read_lists: apt-get update, once in a script.  By default it succeeds where no list
# could be read.
read_lists()
{
	[ -z "${LISTS_READ:-}" ] || return 0
	LISTS_READ=1
	say "reading the package lists"
	LISTS_UNREAD=
	quietly "$LOGS/packages.log" apt-get update -o APT::Update::Error-Mode=any ||
		LISTS_UNREAD="the package lists cannot be read (no network?)"
}

# planned NAME[=VERSION]...: what apt would do, one package a line: "new NAME VERSION",
# "upgrade NAME FROM TO" or "remove NAME VERSION"
planned()
{
	LC_ALL=C apt-get -s -q install --no-install-recommends "$@" 2>>"$LOGS/packages.log" |
		sed -nE 's/^Inst ([^ ]+) \[([^]]+)\] \(([^ ]+) .*/upgrade \1 \2 \3/p
			s/^Inst ([^ ]+) \(([^ ]+) .*/new \1 \2/p
			s/^Remv ([^ ]+) \[([^]]+)\].*/remove \1 \2/p'
}

# sources_of NAME=VERSION...: "NAME SOURCE" of each
sources_of()
{
	apt-cache show "$@" 2>/dev/null | awk '
		$1 == "Package:" {package = source = $2}
		$1 == "Source:" {source = $2}
		/^$/ && package {print package, source; package = ""}
		END {if (package) print package, source}' | sort -u
}

# pins_for PLAN: NAME=VERSION of the new packages whose installed sisters, of the same source, the
# plan upgrades; as far as that version can be had
pins_for()
{
	local upgraded new name sister version

	upgraded=$(awk '$1 == "upgrade" {print $2 "=" $3}' <<<"$1" | sed 's/:[a-z0-9]*=/=/')
	new=$(awk '$1 == "new" {print $2 "=" $3}' <<<"$1")
	[ -n "$upgraded" ] && [ -n "$new" ] || return 0
	# shellcheck disable=SC2086 # words
	join -1 2 -2 2 -o 1.1,2.1 <(sources_of $new | sort -k 2) <(sources_of $upgraded | sort -k 2) |
		while read -r name sister; do
			version=$(sed -n "s/^$sister=//p" <<<"$upgraded")
			[ -z "$(apt-cache show "$name=$version" 2>/dev/null)" ] || printf '%s\n' "$name=$version"
		done | sort -u
}

# server_uses NAME: is the package one of PostgreSQL's, or does a server that is installed use
# its libraries?
server_uses()
{
	case $1 in
		postgresql* | libpq[0-9]* | libpq-*) return 0 ;;
	esac
	ldd /usr/lib/postgresql/*/bin/postgres 2>/dev/null | sed -nE 's/.*=> ([^ ]+) .*/\1/p' | sort -u |
		while IFS= read -r library; do
			dpkg-query -S "$library" "$(realpath "$library")" 2>/dev/null
		done | sed 's/:.*//' | grep -qx -- "${1%:*}"
}

# unwanted PLAN: what it would do to installed packages and must not
unwanted()
{
	local kind name from to text

	while read -r kind name from to; do
		case $kind in
			upgrade) text="$name ($from to $to)" ;;
			remove) text="$name (removed)" ;;
			*) continue ;;
		esac
		if [ "$kind" = remove ] || [ -z "${LA_UPGRADE:-}" ] || server_uses "$name"; then
			printf '%s\n' "$text"
		fi
	done <<<"$1"
}

# install_packages NAME...: where that fails, REASON says why
install_packages()
{
	local log=$LOGS/packages.log plan pins changes
	local -a wanted=("$@")

	mkdir -p "$LOGS"
	: >>"$log"
	while :; do
		plan=$(planned "${wanted[@]}") || {
			REASON=${LISTS_UNREAD:-$(grep '^E: ' "$log" | tail -n 1)}
			REASON="cannot install $*: ${REASON#E: }; log: $log"
			return 1
		}
		pins=$(pins_for "$plan" | grep -vxF -f <(printf '%s\n' "${wanted[@]}") || true)
		[ -n "$pins" ] || break
		mapfile -t -O ${#wanted[@]} wanted <<<"$pins"
	done
	changes=$(unwanted "$plan" | paste -sd , | sed 's/,/, /g')
	if [ -n "$changes" ]; then
		REASON="cannot install $*: apt would change packages that are installed: $changes; upgrade them yourself first"
		return 1
	fi
	say "installing Debian packages: $(awk '$1 == "new" {printf "%s%s", sep, $2; sep = " "}' <<<"$plan")"
	grep -q '^upgrade ' <<<"$plan" &&
		say "and upgrading, as LA_UPGRADE says: $(awk '$1 == "upgrade" {printf "%s%s", sep, $2; sep = " "}' <<<"$plan")"
	# (the tool that restarts services after an installation is told not to)
	DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 quietly "$log" \
		apt-get install -y --no-install-recommends --no-remove "${wanted[@]}" && return
	REASON=${LISTS_UNREAD:-$(grep '^E: ' "$log" | tail -n 1)}
	REASON="cannot install $*: ${REASON#E: }; log: $log"
	return 1
}

# need_tools NAME...: installed when root, named otherwise
need_tools()
{
	local -a missing

	is_debian || return 0
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	am_root || name_packages "${missing[@]}"
	read_lists
	install_packages "${missing[@]}" || die "$REASON"
}

# name_packages NAME...: for somebody who may not install them
name_packages()
{
	die "these Debian packages are missing: $* (as root: apt-get install --no-install-recommends $*)"
}

# need_command NAME PACKAGE: for machines without Debian's packages, or another PATH
need_command()
{
	command -v "$1" >/dev/null ||
		die "there is no ${1##*/} in PATH (Debian: apt-get install $2)"
}

# need_packages: everything present afterwards, or a clear end
need_packages()
{
	local -a missing=() optional=()

	is_debian || die "this is not Debian: install a C compiler, bison, flex, perl with" \
		"IPC::Run and the development files of ICU, readline, zlib, lz4, zstd, liburing" \
		"and OpenSSL yourself, and point LA_CACHE at a cache made on a Debian 12 machine;" \
		"the scripts take PostgreSQL's sources from Debian's source packages"

	mapfile -t missing < <(missing_packages "${BUILD_PACKAGES[@]}")
	! am_root || mapfile -t optional < <(missing_packages "${LINT_PACKAGES[@]}")
	if [ ${#missing[@]} -eq 0 ] && [ ${#optional[@]} -eq 0 ]; then
		return 0
	fi
	am_root || name_packages "${missing[@]}"
	read_lists
	mapfile -t optional < <(offered_packages "${optional[@]}")
	if [ ${#missing[@]} -gt 0 ]; then
		install_packages "${missing[@]}" || die "$REASON"
	fi
	if [ ${#optional[@]} -gt 0 ]; then
		install_packages "${optional[@]}" || warn "$REASON; going on without"
	fi
}
