# shellcheck shell=bash
#
# dev/lib/extension.sh - compile and install pg_lookahead for one server.
#
# Each server gets a build directory of its own, .cache/ext/NAME, made afresh
# from the checkout: nothing stale, and four servers can be built at once.  A lock for each
# keeps scripts that run at the same time from taking it away from one another.
#
# Warnings are errors: -Wall -Wextra -Werror.  PostgreSQL's headers would not
# pass -Wextra, so they are declared to be system headers with -isystem (gcc then
# ignores the -I that PGXS gives for the same directory).  That silences what is
# in them and nothing of ours.  One kind of warning is left out for our own code:
# unused-parameter, since hooks and callbacks have the signatures core gives them.
#
# Where the source at hand is of another minor than the server, as happens with packages, the
# extension is also compiled with that minor's headers, for test/t/016_minor.pl.

WARNINGS=(-Wall -Wextra -Wimplicit-fallthrough=5 -Werror -Wno-unused-parameter)

have_extension()
{
	[ -e "$ROOT/src/pg_lookahead.c" ] && [ -e "$ROOT/pg_lookahead.control" ]
}

extension_dir()
{
	echo "$CACHE/ext/$1"
}

# compile_extension NAME: strictly, in its own directory
compile_extension()
{
	mkdir -p "$CACHE/ext"
	(
		flock 9
		compile_locked "$1"
	) 9>"$(extension_dir "$1").lock"
}

compile_locked()
{
	local dir log

	dir=$(extension_dir "$1")
	log=$LOGS/ext-$1.log
	rm -rf "$dir"
	mkdir -p "$dir"
	: >"$log"
	cp -a "$ROOT/Makefile" "$ROOT/pg_lookahead.control" "$ROOT/src" "$ROOT/sql" "$dir/" ||
		return 1
	find "$dir" \( -name '*.o' -o -name '*.so' -o -name '*.bc' \) -delete
	logged "$log" ext_make "$1" "-j$JOBS" all
}

# ext_make NAME ARGUMENT...
ext_make()
{
	local name=$1 config

	shift
	config=$(server_pg_config "$name")
	make -C "$(extension_dir "$name")" -s PG_CONFIG="$config" with_llvm=no \
		COPT="-isystem $("$config" --includedir-server) ${WARNINGS[*]}" "$@"
}

install_extension()
{
	(
		flock 9
		logged "$LOGS/ext-$1.log" ext_make "$1" install && install_older "$1"
	) 9>"$(extension_dir "$1").lock"
}

# install_older NAME: scripts of older versions, which tests update from, and none of versions
# that are gone or were never released, which would offer these still
install_older()
{
	local directory script

	directory=$("$(server_pg_config "$1")" --sharedir)/extension
	for script in "$directory"/pg_lookahead--*.sql; do
		[ -e "$ROOT/sql/${script##*/}" ] || rm -f "$script"
	done
	install -m 644 "$ROOT"/test/data/pg_lookahead--*.sql "$directory"
}

# check_refusal NAME: compat.h must stop an unsupported major with one #error.
# The version is replaced after postgres.h has been read.
check_refusal()
{
	local config version out
	local rc=0

	config=$(server_pg_config "$1")
	for version in 140000 200000; do
		out=$(printf '%s\n' '#include "postgres.h"' \
			'#undef PG_VERSION_NUM' "#define PG_VERSION_NUM $version" \
			'#include "base/compat.h"' |
			LC_ALL=C "${CC:-cc}" -x c -fsyntax-only -fmax-errors=1 \
				-I"$ROOT/src" -isystem "$("$config" --includedir-server)" - 2>&1) || true
		if ! grep 'error: #error' <<<"$out" | grep -qF 'pg_lookahead supports PostgreSQL 15 to 19'; then
			warn "version $version is not refused by an #error of src/base/compat.h that names what is supported: $(head -n 1 <<<"$out")"
			rc=1
		fi
	done
	return $rc
}

# other_minor NAME: the minor of the source at hand, if it is not the server's
other_minor()
{
	local version

	version=$(source_version "$(major "$1")" 2>/dev/null) || return 1
	# a release candidate of the source is no minor
	[[ $version = *.* ]] && [ "$version" != "$(server_version "$1")" ] || return 1
	echo "$version"
}

# other_minor_library NAME: "150018:PATH"; fails if there is none
other_minor_library()
{
	local version path

	version=$(other_minor "$1") || return 1
	path=$(extension_dir "$1-$version")/pg_lookahead.so
	[ -e "$path" ] || return 1
	printf '%d%04d:%s\n' "${version%.*}" "${version#*.}" "$path"
}

# need_headers NAME VERSION: configured, and what is generated made; prints the directory
need_headers()
{
	local src dir=$CACHE/headers/$2 log=$LOGS/headers-$2.log
	local -a flags

	src=$CACHE/src/$(major "$1")
	echo "$dir"
	[ ! -e "$dir/done" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir"
	mapfile -t flags < <(build_flags "$(major "$1")")
	(
		cd "$dir" || exit 1
		unset MAKEFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS
		logged "$log" "$src/configure" -q "${flags[@]}" &&
			logged "$log" make -s -C src/backend generated-headers
	) || return 1
	touch "$dir/done"
}

# compile_other_minor NAME: with the headers of other_minor, if there is one
compile_other_minor()
{
	local version headers dir

	version=$(other_minor "$1") || return 0
	headers=$(need_headers "$1" "$version") || return 1
	dir=$(extension_dir "$1-$version")
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -a "$ROOT/Makefile" "$ROOT/pg_lookahead.control" "$ROOT/src" "$ROOT/sql" "$dir/" ||
		return 1
	find "$dir" \( -name '*.o' -o -name '*.so' -o -name '*.bc' \) -delete
	logged "$LOGS/ext-$1-$version.log" make -C "$dir" -s "-j$JOBS" with_llvm=no \
		PG_CONFIG="$(server_pg_config "$1")" COPT=-w \
		PG_CPPFLAGS="-I./src -I$headers/src/include -I$CACHE/src/$(major "$1")/src/include" all
}
