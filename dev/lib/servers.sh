# shellcheck shell=bash
#
# dev/lib/servers.sh - the PostgreSQL servers that are built against and tested.
#
#   name        what                                     where
#   15          Debian 12's packages, unpacked           .cache/pg/15/inst (debs.sh)
#   16          binaries of two package indexes          .cache/pg/16/inst (binaries.sh)
#   17, 18      built from Debian's source packages      .cache/pg/NAME/inst
#   18-assert   18 with --enable-cassert, -O1 -g         .cache/pg/18-assert/inst
#   18-valgrind 18 with USE_VALGRIND, for dev/valgrind   .cache/pg/18-valgrind/inst
#   18-musl     18-assert by musl-gcc, for dev/machines  .cache/pg/18-musl/inst
#   18-m32      18-assert by gcc -m32, the same          .cache/pg/18-m32/inst
#   19          a later Debian's packages, unpacked      .cache/pg/19/inst (next.sh)
#
# All are servers of our own, into whose directories the extension is installed: PostgreSQL before
# 18 finds control files nowhere else.  A server that is installed on the machine is neither used
# nor changed.  On a later release of Debian its own major is what is unpacked, and 15 is built; so it
# is where packages cannot be had.
#
# A build lives in .cache/pg/NAME/build (out of tree, so 18 and 18-assert share
# one source), and is done when .cache/pg/NAME/stamp holds the recipe it was made
# with.  Without that stamp - interrupted, or the recipe changed - it starts anew.

# what runs once, runs on the last
SERVERS=(15 16 17 18 19 18-assert)

CONTRIB=(amcheck pageinspect pg_prewarm pg_visibility pg_stat_statements
	btree_gist btree_gin pgstattuple pg_buffercache pg_walinspect pg_trgm
	auto_explain bloom)
# those of servers that are built here, which binary packages may lack
BUILT_CONTRIB=("${CONTRIB[@]}" postgres_fdw)

. "$ROOT/dev/lib/binaries.sh"
. "$ROOT/dev/lib/debs.sh"
. "$ROOT/dev/lib/next.sh"

# major NAME: 18-assert -> 18
major()
{
	printf '%s\n' "${1%%-*}"
}

server_known()
{
	local name

	for name in "${SERVERS[@]}"; do
		[ "$name" = "$1" ] && return 0
	done
	return 1
}

# test_source NAME: the major whose source has the suites and test modules for it
test_source()
{
	case $1 in
		16) echo 15 ;;
		*) major "$1" ;;
	esac
}

# server_kind NAME: "package" and "next" (unpacked), "binaries" or "built"
server_kind()
{
	if [ "$1" = 16 ]; then
		echo binaries
	elif [ "$1" = "$NEXT_MAJOR" ]; then
		echo next
	elif [ "$1" = "$(release_major)" ] && [ ! -d "$CACHE/pg/$1/build" ]; then
		echo package
	else
		echo built
	fi
}

declare -A COPIES=()			# name -> prefix of a copy that is used in its place

# use_copy NAME PREFIX
use_copy()
{
	COPIES[$1]=$2
}

# server_prefix NAME: where its bin/ is
server_prefix()
{
	if [ -n "${COPIES[$1]:-}" ]; then
		echo "${COPIES[$1]}"
	else
		echo "$CACHE/pg/$1/inst"
	fi
}

# copy_prefix NAME DIR: copy the whole server below DIR; prints where its bin/ is then.
# PostgreSQL finds its files relative to its programs, and its libraries through
# LD_LIBRARY_PATH, in lib/ beside bin/.
copy_prefix()
{
	local top=$CACHE/pg/$1/inst kind below=

	kind=$(server_kind "$1")
	case $kind in
		package | next)
			# as below /usr, or else the programs would look there for their files
			top=$CACHE/pg/$1/unpacked/usr
			below=/lib/postgresql/$1
			;;
	esac
	mkdir -p "$2"
	cp -a "$top/." "$2/" || return 1
	[ "$kind" != next ] || enter_loader "$2$below" || return 1
	echo "$2$below"
}

# use_libraries NAME: for the programs that are started from here on
use_libraries()
{
	LD_LIBRARY_PATH=$(server_prefix "$1")/lib
	export LD_LIBRARY_PATH
}

server_pg_config()
{
	echo "$(server_prefix "$1")/bin/pg_config"
}

# server_present NAME: can it be used right now, without fetching or building?
server_present()
{
	[ -e "$CACHE/pg/$1/stamp" ] &&
		[ "$(cat "$CACHE/pg/$1/stamp")" = "$(build_recipe "$1")" ]
}

# server_version NAME: such as 18.6 or 19rc1
server_version()
{
	"$(server_pg_config "$1")" --version | sed -E 's/^PostgreSQL ([0-9.]+((beta|rc)[0-9]+)?).*/\1/'
}

# server_assertions NAME: debug_assertions, as the server itself says
server_assertions()
{
	local dir

	dir=$(mktemp -d "${TMPDIR:-/var/tmp}/pg_lookahead.config.XXXXXX") || return 1
	: >"$dir/postgresql.conf"
	LD_LIBRARY_PATH=$(server_prefix "$1")/lib \
		"$(server_prefix "$1")/bin/postgres" -C debug_assertions -D "$dir" 2>/dev/null
	rm -rf "$dir"
}

# check_assertions NAME: a tree that was built before without assertions can give a server
# without them, whatever its name and its headers say
check_assertions()
{
	case $1 in
		*-assert)
			[ "$(server_assertions "$1")" = on ] ||
				die "PostgreSQL $1 has debug_assertions = off; remove $CACHE/pg/$1 to build it anew"
			;;
	esac
}

# build_flags NAME: configure's arguments, one a line
build_flags()
{
	case $1 in
		*-musl | *-m32)
			# Debian has hardly a library for these
			printf '%s\n' --without-icu --without-readline --without-zlib --without-llvm \
				--enable-debug --enable-cassert 'CFLAGS=-O1 -g'
			;;&
		*-musl)
			printf '%s\n' CC=musl-gcc "CPPFLAGS=-idirafter $CACHE/kernel-headers"
			return
			;;
		*-m32)
			echo 'CC=gcc -m32'
			return
			;;
	esac
	printf '%s\n' --enable-debug --with-icu --with-lz4 --with-zstd \
		--with-ssl=openssl --enable-tap-tests --without-llvm
	case $1 in
		18*) echo --with-liburing ;;
	esac
	case $1 in
		*-assert) printf '%s\n' --enable-cassert 'CFLAGS=-O1 -g' ;;
		*-valgrind) printf '%s\n' 'CFLAGS=-O1 -g' 'CPPFLAGS=-DUSE_VALGRIND' ;;
		*) echo "CFLAGS=${LA_SERVER_CFLAGS:--O2}" ;;
	esac
}

# build_recipe NAME: what the stamp has to say for a build to be taken as it is
build_recipe()
{
	local version

	case $(server_kind "$1") in
		binaries)
			binary_recipe "$1"
			return
			;;
		package)
			deb_recipe "$1"
			return
			;;
		next)
			next_recipe
			return
			;;
	esac
	version=$(source_version "$(major "$1")" 2>/dev/null) || version=none
	printf '%s %s / %s\n' "$version" "$(build_flags "$1" | paste -sd ' ')" "${BUILT_CONTRIB[*]}"
}

# build_step NAME TEXT COMMAND...
build_step()
{
	local name=$1 text=$2

	shift 2
	say "PostgreSQL $name: $text"
	logged "$LOGS/build-$name.log" "$@"
}

# build_server NAME: fetch, configure, build, install
build_server()
{
	local name=$1 dir=$CACHE/pg/$1 src=$CACHE/src/${1%%-*} began module
	local -a flags modules=()

	if [ "$(server_kind "$name")" = binaries ]; then
		assemble_server "$name"
		return
	fi
	if [ "$(server_kind "$name")" = next ]; then
		unpack_next "$name"
		return
	fi
	if [ "$(server_kind "$name")" = package ]; then
		if unpack_server "$name"; then
			return
		fi
		warn "going on without Debian's packages of PostgreSQL $name; they cannot be had"
	fi
	began=$(date +%s)
	fetch_source "$(major "$name")" || exit 1
	if add_contrib "$name"; then
		return
	fi
	say "PostgreSQL $name: building $(source_version "$(major "$name")") (5 minutes or so)"
	rm -rf "$dir"
	mkdir -p "$dir/build"
	: >"$LOGS/build-$name.log"
	mapfile -t flags < <(build_flags "$name")
	for module in "${BUILT_CONTRIB[@]}"; do
		[ -d "$src/contrib/$module" ] && modules+=("$module")
	done
	(
		cd "$dir/build" || exit 1
		# no MAKEFLAGS, CFLAGS of whoever calls us
		unset MAKEFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS
		build_step "$name" configure \
			"$src/configure" -q --prefix="$dir/inst" "${flags[@]}" &&
			leave_out_ecpg &&
			build_step "$name" "make -j$JOBS" make -s "-j$JOBS" all &&
			build_step "$name" install make -s install &&
			build_step "$name" "contrib: ${modules[*]}" build_contrib "${modules[@]}"
	) || die "PostgreSQL $name could not be built"
	build_recipe "$name" >"$dir/stamp"
	say "PostgreSQL $name: ready in $(elapsed "$began")"
}

# add_contrib NAME: where nothing has changed but the list of modules, what it has not been
# built with
add_contrib()
{
	local name=$1 dir=$CACHE/pg/$1 stamp recipe module
	local -a modules=()

	stamp=$(cat "$dir/stamp" 2>/dev/null) || return 1
	recipe=$(build_recipe "$name")
	[ "${stamp% / *}" = "${recipe% / *}" ] && [ -d "$dir/build/contrib" ] || return 1
	for module in "${BUILT_CONTRIB[@]}"; do
		if [[ " ${stamp##* / } " != *" $module "* ]] && [ -d "$CACHE/src/$(major "$name")/contrib/$module" ]; then
			modules+=("$module")
		fi
	done
	(
		cd "$dir/build" || exit 1
		unset MAKEFLAGS MAKELEVEL CFLAGS CPPFLAGS LDFLAGS
		[ ${#modules[@]} -eq 0 ] || build_step "$name" "contrib: ${modules[*]}" build_contrib "${modules[@]}"
	) || return 1
	echo "$recipe" >"$dir/stamp"
}

# leave_out_ecpg: it is a tenth of the work, and nothing here needs it
leave_out_ecpg()
{
	rm -f src/interfaces/ecpg/Makefile &&
		printf '%s:\n\n' all install >src/interfaces/ecpg/Makefile
}

build_contrib()
{
	local module

	for module in "$@"; do
		make -s "-j$JOBS" -C "contrib/$module" install || return 1
	done
}

# need_server NAME: usable afterwards
need_server()
{
	local due=

	[ "$(server_kind "$1")" != next ] || ! next_is_due || due=1
	[ -n "$due" ] || ! server_present "$1" || return 0
	mkdir -p "$CACHE/pg"
	(
		# another script may be building it right now
		if ! flock -n 9; then
			say "PostgreSQL $1: waiting for the build that another script has under way"
			flock 9
		fi
		[ -z "$due" ] || ! next_is_due || look_for_next
		server_present "$1" || build_server "$1"
	) 9>"$CACHE/pg/$1.lock" || exit 1
}
