# shellcheck shell=bash
#
# dev/demo_lib/server.sh - the demo's server.
#
# PostgreSQL wants an extension's files in its own directories.  So that no root is needed, and
# what these scripts have built is not changed, the demo works with a copy of a server of
# theirs (dev/lib/servers.sh), in its work area.  It is, in this order,
#   1. the newest that is at hand
#   2. that of this Debian release, unpacked from its packages
# and only where there is none of these, PostgreSQL 18 is built from source.  A server that is
# installed on the machine is left alone.  Other packages that are missing are installed (as
# root) or named, all together.
#
# choose_server [MAJOR] sets NAME.

MAJORS=(18 17 16 15)
DEMO_PACKAGES=(build-essential libicu-dev fio mawk python3-venv tzdata)

choose_server()
{
	local major

	NAME=
	for major in ${1:-"${MAJORS[@]}"}; do
		if server_present "$major"; then
			NAME=$major
			need_tools "${DEMO_PACKAGES[@]}"
			return
		fi
	done
	NAME=${1:-$(release_major)}
	NAME=${NAME:-18}
	if [ "$(server_kind "$NAME")" = package ]; then
		need_tools "${DEMO_PACKAGES[@]}"
	else
		need_packages
		need_tools "${DEMO_PACKAGES[@]}"
	fi
	need_server "$NAME"
}

# copy_server NAME: into the work area, with the extension
copy_server()
{
	local prefix

	prefix=$(copy_prefix "$1" "$WORK/server") || die "the server cannot be copied to $WORK"
	use_copy "$1" "$prefix"
	# the programs name the directory that their library was built for
	use_libraries "$1"
	install_into "$1"
}
