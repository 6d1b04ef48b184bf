# shellcheck shell=bash
#
# dev/lib/packages.sh - the Debian packages that building and testing needs.
#
# need_packages installs what is missing when root, and otherwise names it and
# stops.  The distribution's cluster 15/main, which postgresql-common creates
# beside the package, is not used, started, stopped or touched in any way.

BUILD_PACKAGES=(
	build-essential bison flex perl pkg-config dpkg-dev libipc-run-perl
	libicu-dev libreadline-dev zlib1g-dev liblz4-dev libzstd-dev
	liburing-dev libssl-dev libxml2-dev bzip2 xz-utils util-linux python3 python3-venv
)

# PostgreSQL 15 is Debian 12's own; other releases have none to offer, and it is
# then built from source like the rest.
SERVER_PACKAGES=(
	postgresql-15 postgresql-client-15 postgresql-server-dev-15
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

# install_packages NAME...: where that fails, REASON says why
install_packages()
{
	local log=$LOGS/packages.log

	say "installing Debian packages: $*"
	DEBIAN_FRONTEND=noninteractive quietly "$log" \
		apt-get install -y --no-install-recommends "$@" && return
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
	local -a missing=() optional=() headers=()
	local server

	is_debian || die "this is not Debian: install a C compiler, bison, flex, perl with" \
		"IPC::Run and the development files of ICU, readline, zlib, lz4, zstd, liburing" \
		"and OpenSSL yourself, and point LA_CACHE at a cache made on a Debian 12 machine;" \
		"the scripts take PostgreSQL's sources from Debian's source packages"

	mapfile -t missing < <(missing_packages "${BUILD_PACKAGES[@]}")
	# packaged servers serve root only: see server_kind in servers.sh
	if am_root; then
		for server in /usr/lib/postgresql/1[5-9]/bin/postgres; do
			[ ! -e "$server" ] || headers+=("postgresql-server-dev-$(cut -d / -f 5 <<<"$server")")
		done
		mapfile -t optional < <(missing_packages "${SERVER_PACKAGES[@]}" "${LINT_PACKAGES[@]}" \
			"${headers[@]}")
	fi
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
