# shellcheck shell=bash
#
# dev/lib/thirdparty.sh - index access methods of others, for the servers under test.
#
#   extension   Debian source package
#   vector      pgvector                HNSW and IVFFlat
#   rum         postgresql-rum          RUM
#
# need_third_party NAME builds them below .cache/third/NAME and installs them into
# that server, for test/t/010_third_party.pl and the workload "vector" of bench/.
# They are wanted, not needed: what cannot be had or built is named by a warning
# and by missing_third_party, and tests that would use it are skipped.
#
# An extension that the server has is left alone, unless it is a build of ours
# (.cache/third/NAME/EXTENSION/stamp) of another version or for another minor.  A
# package that no suite could deliver is asked for again after a day.  A source that does not
# compile for a server is tried no more, until either is of another version.
#
# No patches.  pgvector before 0.8.1 calls vacuum_delay_point(), and reads one
# attribute of a TupleDesc, as it was before 18: such a source is compiled for 18 with
# a header, made here, that is included first.  RUM includes the server's probes, whose header
# lies beside the others of an unpacked server.

THIRD_PARTY=(vector rum)

# third_party_package EXTENSION
third_party_package()
{
	case $1 in
		vector) echo pgvector ;;
		rum) echo postgresql-rum ;;
	esac
}

# third_party_installed NAME EXTENSION: control file and library are there
third_party_installed()
{
	local config

	config=$(server_pg_config "$1")
	[ -e "$("$config" --sharedir)/extension/$2.control" ] &&
		[ -e "$("$config" --pkglibdir)/$2.so" ]
}

# missing_third_party NAME: extensions that this server does not have
missing_third_party()
{
	local extension

	for extension in "${THIRD_PARTY[@]}"; do
		third_party_installed "$1" "$extension" || printf '%s\n' "$extension"
	done
}

# third_party_recipe NAME EXTENSION: what the stamp has to say
third_party_recipe()
{
	printf '%s %s for %s\n' "$2" "$(source_version "$(third_party_package "$2")")" \
		"$(server_version "$1")"
}

# third_party_present NAME EXTENSION: installed, and not an outdated build of ours
third_party_present()
{
	local stamp=$CACHE/third/$1/$2/stamp

	third_party_installed "$1" "$2" || return 1
	[ ! -e "$stamp" ] ||
		[ "$(cat "$stamp")" = "$(third_party_recipe "$1" "$2" 2>/dev/null)" ]
}

# fetch_third_party EXTENSION
fetch_third_party()
{
	local package refused

	package=$(third_party_package "$1")
	refused=$CACHE/src/$package.refused
	if [ ! -e "$CACHE/src/$package/.version" ] &&
		[ -n "$(find "$refused" -mtime -1 2>/dev/null)" ]; then
		return 1
	fi
	if fetch_package "$package" "$package"; then
		rm -f "$refused"
	else
		touch "$refused"
		return 1
	fi
}

# third_party_prelude NAME EXTENSION DIR: the header that DIR's source needs on this
# server, if any; prints its name
third_party_prelude()
{
	[ "$2" = vector ] && [ "$(major "$1")" -ge 18 ] || return 0
	grep -qs 'vacuum_delay_point()' "$3"/src/*.c || return 0
	# what the source includes itself must not see "attrs" in another meaning
	cat >"$3/prelude.h" <<-'EOH'
		#include "postgres.h"
		#include "access/tableam.h"
		#include "access/tupdesc.h"
		#include "commands/vacuum.h"
		#include "executor/executor.h"
		#define vacuum_delay_point() vacuum_delay_point(false)
		#define attrs natts * 0 + TupleDescAttr(buildstate->tupdesc, 0)
	EOH
	echo "$3/prelude.h"
}

# third_party_make DIR CONFIG PRELUDE ARGUMENT...: portable code, as Debian's
# packages have it; their warnings are not ours
third_party_make()
{
	local dir=$1 config=$2 prelude=$3

	shift 3
	(
		unset MAKEFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS
		CPATH=$(header_path "$config") \
			make -C "$dir" -s USE_PGXS=1 PG_CONFIG="$config" with_llvm=no OPTFLAGS= \
				COPT="-w${prelude:+ -include $prelude}" "$@"
	)
}

# build_third_party NAME EXTENSION: from a copy of the source, and install
build_third_party()
{
	local dir=$CACHE/third/$1/$2 log=$LOGS/third-$1.log package config prelude

	package=$(third_party_package "$2")
	config=$(server_pg_config "$1")
	[ "$(third_party_recipe "$1" "$2")" != "$(cat "$dir.refused" 2>/dev/null)" ] || return 1
	say "PostgreSQL $1: building $package $(source_version "$package")"
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r "$CACHE/src/$package" "$dir/build" || return 1
	prelude=$(third_party_prelude "$1" "$2" "$dir/build")
	logged "$log" third_party_make "$dir/build" "$config" "$prelude" "-j$JOBS" all &&
		logged "$log" third_party_make "$dir/build" "$config" "$prelude" install || {
		third_party_recipe "$1" "$2" >"$dir.refused"
		return 1
	}
	third_party_recipe "$1" "$2" >"$dir/stamp"
	rm -rf "$dir/build"
}

# need_third_party NAME: what can be had is installed afterwards; never fails
need_third_party()
{
	local extension
	local -a missing=()

	mkdir -p "$CACHE/third"
	for extension in "${THIRD_PARTY[@]}"; do
		third_party_present "$1" "$extension" && continue
		(
			flock 9
			third_party_present "$1" "$extension" && exit 0
			fetch_third_party "$extension" && build_third_party "$1" "$extension"
		) 9>"$CACHE/third/$1.lock" || true
	done
	mapfile -t missing < <(missing_third_party "$1")
	[ ${#missing[@]} -eq 0 ] ||
		warn "PostgreSQL $1: going on without ${missing[*]}, which cannot be had or built; tests of it are skipped"
}
