# shellcheck shell=bash
#
# dev/lib/debs.sh - a server unpacked from this Debian release's packages, and not installed.
#
#   .cache/pg/15/unpacked/     the packages' files; PostgreSQL finds its own relative to its
#                              programs
#   .cache/pg/15/inst          a symbolic link to usr/lib/postgresql/15 in there
#
# The packages are those of the server, its client and headers, and of libpq.  Of the shared
# libraries that these depend on, what is not installed on the machine is unpacked as well.  All shared
# libraries lie in inst/lib, so LD_LIBRARY_PATH is the same as for a server that was built.
#
# LLVM's are left out, and with them compilation at run time (JIT): no test of ours uses it, and it is
# some 150 MB.  The server does without where the file is missing.
#
# A version that a mirror lists and does not have is passed over for the next one.  What was unpacked
# stays until .cache/pg/15 is removed.

# Debian release -> the major of its PostgreSQL
declare -A RELEASES=([bookworm]=15 [trixie]=17 [forky]=18)

release_major()
{
	echo "${RELEASES[$(codename)]:-}"
}

# deb_recipe NAME: what the stamp has to say
deb_recipe()
{
	echo "Debian's packages of PostgreSQL $1, unpacked"
}

# deb_versions MAJOR: what the lists offer, newest first
deb_versions()
{
	apt-cache madison "postgresql-$1" 2>/dev/null |
		awk -F'|' '/Packages/ {gsub(/ /, "", $2); print $2}' | sort -Vru
}

# fetch_debs MAJOR VERSION: into the current directory.  libpq belongs to the same source; so
# that a newer one of another major is no obstacle, any version will do where that one is not offered.
fetch_debs()
{
	local major=$1 version=$2 name

	apt-get download -q "postgresql-$major=$version" "postgresql-client-$major=$version" \
		"postgresql-server-dev-$major=$version" || return 1
	for name in libpq5 libpq-dev; do
		apt-get download -q "$name=$version" || apt-get download -q "$name" || return 1
	done
	# the header of the probes, which is included by what is built for a server with probes
	apt-get download -q systemtap-sdt-dev || true
}

# libraries_of DEB: the packages of shared libraries that it depends on
libraries_of()
{
	dpkg-deb -f "$1" Depends | tr ',' '\n' | sed -E 's/^ *([^ (|:]+).*/\1/' |
		grep -E '^lib' | grep -vE -- '-dev$|^libllvm|^libc6$' || true
}

# unpack_debs DIR: those in the current directory, and the libraries that are not installed
unpack_debs()
{
	local deb name
	local -a missing

	for deb in ./*.deb; do
		dpkg -x "$deb" "$1" || return 1
		mv "$deb" "$deb.done"
		case $deb in
			./*-dev*) continue ;;
		esac
		mapfile -t missing < <(libraries_of "$deb.done" | while IFS= read -r name; do
			compgen -G "./${name}_*" >/dev/null || missing_packages "$name"
		done)
		for name in "${missing[@]}"; do
			apt-get download -q "$name" || return 1
		done
	done
	! compgen -G './*.deb' >/dev/null || unpack_debs "$1"
}

# place_files MAJOR DIR: what belongs where the programs look for it
place_files()
{
	local lib=$2/usr/lib/postgresql/$1/lib

	[ -x "$lib/../bin/postgres" ] && [ -e "$2/usr/include/postgresql/$1/server/postgres.h" ] || return 1
	# (not all packages have files in both)
	mkdir -p "$2/lib"
	find "$2/lib" "$2/usr/lib" -path "$2/usr/lib/postgresql" -prune -o \
		-name '*.so*' ! -type d -exec cp -a -t "$lib" {} + || return 1
	rm -rf "$lib"/llvmjit* "$lib/bitcode"
}

# header_path PG_CONFIG: where an unpacked server has the headers of others, for CPATH
header_path()
{
	local top

	top=$(realpath "$("$1" --includedir)/..")
	find "$top" -maxdepth 3 -path '*/sys/sdt.h' -printf '%h\n' | sed 's|/sys$||' | head -n 1
}

# unpack_server NAME
unpack_server()
{
	local name=$1 dir=$CACHE/pg/$1 log=$LOGS/build-$1.log version began

	began=$(date +%s)
	: >"$log"
	(
		private_apt "$CACHE/apt-release" release_list
		for version in $(deb_versions "$name"); do
			say "PostgreSQL $name: unpacking Debian's packages of $version"
			rm -rf "$dir"
			mkdir -p "$dir/fetch"
			cd "$dir/fetch" || exit 1
			if quietly "$log" fetch_debs "$name" "$version" &&
				quietly "$log" unpack_debs "$dir/unpacked" &&
				quietly "$log" place_files "$name" "$dir/unpacked"; then
				cd "$dir" || exit 1
				rm -rf fetch
				ln -s "unpacked/usr/lib/postgresql/$name" inst
				deb_recipe "$name" >stamp
				say "PostgreSQL $name: ready in $(elapsed "$began")"
				exit 0
			fi
			say "  $version cannot be had from the mirror; log: $log"
		done
		exit 1
	)
}
