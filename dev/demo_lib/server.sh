# shellcheck shell=bash
#
# dev/demo_lib/server.sh - the demo's server.
#
# PostgreSQL wants an extension's files in its own directories.  So that nothing of the
# machine's own servers is touched, and no root is needed, the demo works with a copy of
# an installation, in its work area: PostgreSQL finds its files relative to its
# binaries.  Copied is, in this order,
#   1. the newest that is complete: built by these scripts, or Debian's packages
#   2. the newest whose server's package is installed, but not that with the headers
#   3. the newest that the package lists, or else the release, have
# and only where there is none of these, PostgreSQL 18 is built from source.  Packages
# that are missing are installed (as root) or named, all together.
#
# choose_server [MAJOR] sets NAME and ORIGIN (package or built).

MAJORS=(18 17 16 15)
DEMO_PACKAGES=(build-essential fio mawk python3-venv)

# what a Debian release has, where no package list has been read
declare -A RELEASES=([bookworm]=15 [trixie]=17)

built_server()
{
	[ -e "$CACHE/pg/$1/stamp" ] && [ -x "$CACHE/pg/$1/inst/bin/postgres" ]
}

complete_server()
{
	built_server "$1" || { packaged_server "$1" && packaged_headers "$1"; }
}

# offered_server MAJOR: can its packages be had?
offered_server()
{
	is_debian || return 1
	[ -n "$(offered_packages "postgresql-$1")" ] ||
		[ "${RELEASES[$(codename)]:-}" = "$1" ]
}

# first_major TEST [MAJOR...]: the first that passes
first_major()
{
	local test=$1 major

	shift
	for major in "$@"; do
		if "$test" "$major"; then
			echo "$major"
			return
		fi
	done
	return 1
}

choose_server()
{
	# shellcheck disable=SC2034 # for those who source this
	ORIGIN=package
	local -a majors=("${MAJORS[@]}")

	[ $# -eq 0 ] || majors=("$1")
	if NAME=$(first_major complete_server "${majors[@]}"); then
		:
	elif is_debian && NAME=$(first_major packaged_server "${majors[@]}"); then
		:
	else
		! am_root || ! is_debian || read_lists
		NAME=$(first_major offered_server "${majors[@]}") || NAME=
	fi
	if [ -n "$NAME" ] && ! built_server "$NAME"; then
		need_tools "postgresql-$NAME" "postgresql-server-dev-$NAME" "${DEMO_PACKAGES[@]}"
		return
	fi
	# shellcheck disable=SC2034
	ORIGIN=built
	need_tools "${DEMO_PACKAGES[@]}"
	if [ -z "$NAME" ]; then
		NAME=${1:-18}
		need_packages
		need_server "$NAME"
	fi
}

# copy_server NAME ORIGIN: into the work area, with the extension
copy_server()
{
	local copy=$WORK/server lib=lib/postgresql/$1 share=share/postgresql/$1

	if [ "$2" = built ]; then
		cp -a "$CACHE/pg/$1/inst" "$copy"
		use_copy "$1" "$copy"
		# the programs name the directory that their library was built for
		export LD_LIBRARY_PATH=$copy/lib
	else
		# as below /usr, or else the programs would look there for their files
		mkdir -p "$copy/${lib%/*}" "$copy/${share%/*}"
		cp -a "/usr/$lib" "$copy/${lib%/*}/"
		cp -a "/usr/$share" "$copy/${share%/*}/"
		ln -s /usr/include "$copy/include"
		use_copy "$1" "$copy/$lib"
		same_minor "$1"
	fi
	install_into "$1"
}

# same_minor NAME: the two packages may be of different minor releases
same_minor()
{
	local headers server

	headers=$(server_version "$1")
	server=$("$(server_prefix "$1")/bin/postgres" --version | sed -E 's/.*\) ([0-9.]+).*/\1/')
	[ "$headers" = "$server" ] ||
		warn "postgresql-$1 is $server and postgresql-server-dev-$1 $headers:" \
			"look-ahead may stay off; upgrade the older one"
}
