# shellcheck shell=bash
#
# dev/lib/suites.sh - the jobs of dev/test: our own tests, and PostgreSQL's.
#
# Everything that runs here runs as SERVER_USER and writes below WORK only: tests
# and core suites are copied there, so that neither the rights of the checkout
# nor those of the source tree matter.  A server whose prefix that user cannot
# read (a checkout in root's home) is copied too; PostgreSQL finds its files relative to
# its binaries, and its libraries through LD_LIBRARY_PATH.
#
# Core suites.  PostgreSQL's own regression and isolation suites, of the same
# release as the server, run with pg_lookahead loaded and forced, and must print
# what they print without it.
#   - When only another release's suite can be had than the server's (Debian's
#     mirrors drop old minors, and have nothing of 16, which gets 15's suite), the suite is
#     run once on the stock server.  A test that fails there with byte for byte the same
#     result counts as passed.
#   - What is left is judged once more (queue.sh): some core tests depend on timing.  If it
#     fails again, so is stock, alone as well, and what prints the same there has passed.
#
# What is final, so that no job is judged again for it (queue.sh), is decided here by what a
# suite prints: has_crashed(), differs_from_stock(), and FINAL_CHECKS for scripts of test/t.

# test/modules, but for the library that another test loads (company)
# shellcheck disable=SC2034	# read by dev/test and dev/coverage
MODULES=(descent downlinks normalizedkey load accessmethod functions tableam example)

declare -A HOMES=()				# name -> prefix that SERVER_USER can use

# prepare_server NAME: after installing the extension, before the jobs
prepare_server()
{
	local name=$1 prefix

	prefix=$(server_prefix "$name")
	if ! reachable "$prefix/bin/postgres"; then
		say "PostgreSQL $name: user $SERVER_USER cannot read $prefix; copying it to $WORK"
		prefix=$(copy_prefix "$name" "$WORK/inst/$name")
	fi
	HOMES[$name]=$prefix
}

# pgxs_of NAME: where its test tools are
pgxs_of()
{
	local makefile

	makefile=$("${HOMES[$1]}/bin/pg_config" --pgxs)
	echo "${makefile%/src/makefiles/pgxs.mk}"
}

# no job may hang for ever
LIMIT=(timeout --foreground --kill-after=30 "${LA_TIMEOUT:-1500}")

# in_server NAME COMMAND...: as SERVER_USER, with the server's binaries first
in_server()
{
	local home=${HOMES[$1]} rc=0

	shift
	as_server LD_LIBRARY_PATH="$home/lib" PATH="$home/bin:$PATH" "${LIMIT[@]}" env "$@" ||
		rc=$?
	[ $rc -ne 124 ] || timed_out
	return $rc
}

# timed_out: without their servers, what is left of the tests ends by itself
timed_out()
{
	note "stopped after ${LIMIT[-1]} s"
	stop_servers "$DIR"
}

# job_dir ID: a fresh directory of SERVER_USER, and the current one
job_dir()
{
	DIR=$WORK/job/$1
	if [ -e "$DIR" ]; then
		# of the first run
		stop_servers "$DIR"
		rm -rf "$DIR"
	fi
	mkdir -p "$DIR"
	chmod 755 "$WORK/job" "$DIR"
	if am_root; then
		chown "$SERVER_USER:" "$DIR"
	fi
	cd "$DIR" || return 1
}

# ---- what no second run takes back ----------------------------------------

# Checks of test/t that compare with stock, or look for damage: by their names, if they have
# compared two values.
FINAL_CHECKS='stock|same|rows|pages|agree|sound|amcheck|index(es)? |duplicates|answer|pinned|leak|log is clean|checksum|primary has|as on|bt_index'

# has_crashed LOG...: of servers.  (Tests kill by signal 9, and 15.)
has_crashed()
{
	grep -qsE 'TRAP:|PANIC:|was terminated by (signal ([1-8]|1[0-4])\b|exception)|refcount leak|Sanitizer' "$@"
}

# differs_from_stock DIFFS: does compare() of test/sql/helper.inc say so, or another of its kind?
differs_from_stock()
{
	grep -qsE '^\+(.*WARNING:  differs with| f +\|| f$)' "$1"
}

# tap_differs OUT: has a comparison of FINAL_CHECKS failed?
tap_differs()
{
	awk -v checks="$FINAL_CHECKS" '
		/^ *# +Failed test / {name = $0}
		/^ *# +got: / && name ~ checks {found = 1}
		END {exit !found}' "$1"
}

# ---- our own tests --------------------------------------------------------

# copy_tests: once, into the work area
copy_tests()
{
	local part

	mkdir -p "$WORK/own"
	for part in test src sql Makefile pg_lookahead.control; do
		[ ! -e "$ROOT/$part" ] || cp -r "$ROOT/$part" "$WORK/own/"
	done
	chmod -R u=rwX,go=rX "$WORK/own"
	if am_root; then
		chown -R "$SERVER_USER:" "$WORK/own"
	fi
}

# names_in DIR EXTENSION: of the test files, without directory and extension
names_in()
{
	find "$ROOT/test/$1" -maxdepth 1 -name "*.$2" -printf '%f\n' 2>/dev/null |
		sed "s/\.$2\$//" | sort
}

# own_regress NAME sql|specs
own_regress()
{
	local name=$1 kind=$2 tool rc=0
	local -a tests

	job_dir "$name-own-$kind" || return 1
	if [ "$kind" = sql ]; then
		tool=$(pgxs_of "$name")/src/test/regress/pg_regress
		mapfile -t tests < <(names_in sql sql | grep -vxF "${LA_LEAVE_OUT:-}")
	else
		tool=$(pgxs_of "$name")/src/test/isolation/pg_isolation_regress
		mapfile -t tests < <(names_in specs spec)
	fi
	[ ${#AGAIN[@]} -eq 0 ] || tests=("${AGAIN[@]}")
	in_server "$name" "$tool" --bindir="${HOMES[$name]}/bin" \
		--inputdir="$WORK/own/test" --outputdir="$DIR" \
		--temp-instance="$DIR/tmp" --temp-config="$WORK/own/test/pg_lookahead.conf" \
		--no-locale --encoding=UTF8 "${tests[@]}" >"$DIR/out" 2>&1 || rc=$?
	regress_end "$rc"
}

# regress_end RC: of pg_regress in DIR
regress_end()
{
	local rc=$1

	cat "$DIR/out"
	parts_of_regress "$DIR/out" || rc=1
	# what it printed, for whoever writes the expected files
	rm -rf "${REPORT%.report}.results"
	cp -r "$DIR/results" "${REPORT%.report}.results" 2>/dev/null
	! has_crashed "$DIR/log/postmaster.log" || final "a server has crashed"
	! differs_from_stock "$DIR/regression.diffs" || final "it differs from stock"
	keep_evidence
	return "$rc"
}

# build_library SERVER NAME DIRECTORY: la_test_NAME.so there, from test/modules/NAME.  dev/coverage
# has other sources (LIBRARY_SOURCE) and flags (LIBRARY_FLAGS).
build_library()
{
	local server=$1 name=$2 dir=$3

	mkdir -p "$dir"
	cp -r "$WORK/own/test/modules/$name/." "$dir/"
	chown -R "$SERVER_USER:" "$dir" 2>/dev/null || true
	in_server "$server" make -s -C "$dir" PG_CONFIG="${HOMES[$server]}/bin/pg_config" \
		SRC="${LIBRARY_SOURCE:-$WORK/own/src}" with_llvm=no COPT="-Werror ${LIBRARY_FLAGS:-}" \
		SHLIB_LINK="${LIBRARY_FLAGS:-}" >"$DIR/out" 2>&1 || {
		cat "$DIR/out"
		return 1
	}
}

# have_icu NAME: has the server been compiled with it?
have_icu()
{
	grep -qs '^#define USE_ICU 1' \
		"$("$(server_pg_config "$1")" --includedir-server)"/pg_config*.h
}

# own_library SERVER NAME: test/modules/NAME, a library made for this test, and pg_regress
own_library()
{
	local server=$1 name=$2 rc=0
	local -a tests=("$2")

	if [ -e "$ROOT/test/modules/$name/sql/icu.sql" ]; then
		if have_icu "$server"; then
			tests+=(icu)
		else
			note "without collations of ICU, which this server does not have"
		fi
	fi
	[ ${#AGAIN[@]} -eq 0 ] || tests=("${AGAIN[@]}")
	job_dir "$server-$name" || return 1
	build_library "$server" "$name" "$DIR" || return 1
	in_server "$server" "LA_TEST_${name^^}=$DIR/la_test_$name.so" \
		"$(pgxs_of "$server")/src/test/regress/pg_regress" --bindir="${HOMES[$server]}/bin" \
		--inputdir="$DIR" --outputdir="$DIR" --temp-instance="$DIR/tmp" \
		--no-locale --encoding=UTF8 "${tests[@]}" >"$DIR/out" 2>&1 || rc=$?
	regress_end "$rc"
}

# older_server NAME: the prefix of the oldest server under test, if that is older
older_server()
{
	local name oldest=$1

	for name in "${!HOMES[@]}"; do
		[ "$(major "$name")" -ge "$(major "$oldest")" ] || oldest=$name
	done
	[ "$oldest" = "$1" ] || echo "${HOMES[$oldest]}"
}

# The scripts of test/t that are long: each takes as long as all the others together, or
# nearly so.  What they try is also tried, with fewer cases, by test/sql (all kinds of scans,
# joins, builds and inserts) and the differential test.
LONG_TAP='003_cancel|004_ddl|006_kills|008_access_methods|009_direct_io|010_third_party|013_index_build|014_btree_insert|015_company|016_minor|028_apply|029_replica|038_apply_waits'

# is_deep NAME: do the long scripts, and more of the differential test, run on it, if no server
# was asked for?  On the one with assertions, which would find most; 17 and 19 have SQL, isolation,
# the short scripts and a short differential test; so have 15 and 16, but one half each of the short
# scripts; 18 without assertions has isolation only, since 18 with them has it all.
is_deep()
{
	[[ $1 = *-assert ]]
}

# tap_scripts short|short-1|short-2|long-1|long-2|minor: the long ones in two jobs, so that none is
# left alone at the end; the short ones in halves, for two servers whose code differs little; the last
# is the one of the long ones that is of use where another minor of the server is at hand
tap_scripts()
{
	case $1 in
		long-1) names_in t pl | grep -xE "$LONG_TAP" | sed -n 'p;n' ;;
		long-2) names_in t pl | grep -xE "$LONG_TAP" | sed -n 'n;p' ;;
		minor) echo 016_minor ;;
		short-1) tap_scripts short | sed -n 'p;n' ;;
		short-2) tap_scripts short | sed -n 'n;p' ;;
		*) names_in t pl | grep -vxE "$LONG_TAP" ;;
	esac
}

# own_tap NAME short|short-1|...: a busy machine needs more time for a query, or for crash recovery,
# than the tools' 180 and 60 seconds, and for all scripts together more than for another job;
# what LA_REPLICA_SECONDS asks of t/029_replica.pl comes on top
own_tap()
{
	local name=$1 pgxs missing other older rc=0
	local -a scripts paths

	mapfile -t scripts < <(tap_scripts "$2")
	[ ${#AGAIN[@]} -eq 0 ] || scripts=("${AGAIN[@]}")
	paths=("${scripts[@]/#/$WORK/own/test/t/}")
	LIMIT[-1]=${LA_TIMEOUT:-$((3000 + ${LA_REPLICA_SECONDS:-60}))}
	job_dir "$name-own-tap-$2" || return 1
	build_library "$name" company "$DIR/company" || return 1
	pgxs=$(pgxs_of "$name")
	# where SERVER_USER can read it
	if other=$(other_minor_library "$name"); then
		cp "${other#*:}" "$DIR/pg_lookahead.so"
		other=${other%%:*}:$DIR/pg_lookahead.so
	fi
	older=$(older_server "$name")
	[ -n "$older" ] || note "pg_upgrade to $name: no older server is at hand"
	in_server "$name" PG_REGRESS="$pgxs/src/test/regress/pg_regress" \
		TESTDIR="$DIR" TESTDATADIR="$DIR/tmp_check" TESTLOGDIR="$DIR/tmp_check/log" \
		LA_TEST_COMPANY="$DIR/company/la_test_company.so" \
		TMPDIR="$WORK" PGBENCH_RANDOM_SEED="$LA_SEED" PG_TEST_TIMEOUT_DEFAULT=600 PGCTLTIMEOUT=600 \
		LA_OTHER_MINOR="$other" LA_OLD_SERVER="$older" \
		prove -v -I "$pgxs/src/test/perl" -I "$WORK/own/test/t" \
		"${paths[@]/%/.pl}" >"$DIR/out" 2>&1 || rc=$?
	cat "$DIR/out"
	parts_of_tap "$DIR/out" "${scripts[@]}"
	missing=$(missing_third_party "$name" | paste -sd ' ')
	[ -z "$missing" ] || note "without ${missing// / and }, which cannot be had or built"
	if [ $rc -ne 0 ]; then
		! has_crashed "$DIR"/tmp_check/log/*.log || final "a server has crashed"
		! tap_differs "$DIR/out" || final "it differs from stock"
		mkdir -p "$TESTLOGS/$name/tap-$2"
		cp "$DIR"/tmp_check/log/* "$TESTLOGS/$name/tap-$2/" 2>/dev/null
		{
			# got and expected, or why a script died
			grep -E -A 9 '^not ok |^# Tests were run but no plan|^#   Failed test' "$DIR/out" | head -n 60
			grep -hE 'TRAP:|PANIC:|was terminated by signal' "$DIR"/tmp_check/log/*.log | head -n 10
		} >"${REPORT%.report}.trouble"
		trouble "${REPORT%.report}.trouble"
	fi
	return $rc
}

# parts_of_tap OUT SCRIPT...: what "prove -v" says of each; one that has failed otherwise than by
# a check (it died, or made another number of checks) has failed once more
parts_of_tap()
{
	local out=$1 script

	shift
	for script in "$@"; do
		awk -v script="$script" '
			match($0, /^[^ ]*\/[^ \/]+\.pl \.+/) {
				here = index($0, "/" script ".pl ")
				if (here && / skipped: /)
					ended = 1
			}
			/^Test Summary Report/ {here = 0; sums = 1}
			here && /^ok [0-9]+/ && !/# skip/ {passed++}
			here && /^not ok [0-9]+/ && !/# TODO/ {failed++}
			here && /^(All [0-9]+ subtests passed|ok$|skipped: )/ {ended = 1}
			sums && index($0, "/" script ".pl ") {bad = 1}
			END {print script, passed + 0, failed + ((bad || !ended) && !failed)}' "$out"
	done | while read -r script passed failed; do
		part "$script" "$passed" "$failed"
	done
}

# count_sum RC: count by a closing line "N passed, N failed" in ./out, or else the
# whole program as one test
count_sum()
{
	local sum

	sum=$(grep -oE '[0-9]+ passed, [0-9]+ failed' out | tail -n 1)
	if [ -n "$sum" ]; then
		count "${sum%% *}" "$(sed -E 's/.*, ([0-9]+) failed/\1/' <<<"$sum")"
	elif [ "$1" -eq 0 ]; then
		count 1 0
	fi
	return "$1"
}

# own_unit NAME: the headers are that server's, no server runs
own_unit()
{
	local rc=0

	job_dir unit || return 1
	in_server "$1" make -s -C "$WORK/own/test/unit" \
		PG_CONFIG="${HOMES[$1]}/bin/pg_config" check >out 2>&1 || rc=$?
	cat out
	count_sum $rc
}

# own_fuzz NAME fuzz|worlds|damage ARGUMENT...: from the checkout and as the caller; it keeps a
# Python environment in the cache, and runs its server as SERVER_USER itself
own_fuzz()
{
	local name=$1 what=$2 rc=0

	shift 2
	job_dir "$name-$what" || return 1
	TMPDIR=$WORK LD_LIBRARY_PATH="${HOMES[$name]}/lib" "${LIMIT[@]}" "$ROOT/test/fuzz/run" \
		--bindir "${HOMES[$name]}/bin" --major "$(major "$name")" --seed "$LA_SEED" "$@" >out 2>&1 || rc=$?
	cat out
	[ -z "${LA_DEEP:-}" ] || note "seed $LA_SEED"
	# the first difference; its head says how to repeat it
	sed -n '/^=== /,$p' out | head -n 70 >"$TESTLOGS/$name/$what.trouble"
	trouble "$TESTLOGS/$name/$what.trouble"
	# all but too little work is a difference, or damage
	! grep '^=== ' out | grep -qvE 'hardly (at work|built)' || final "it differs from stock"
	[ $rc -ne 124 ] || timed_out
	count_sum $rc
}

# own_program NAME [ARGUMENT...]: test/NAME, which needs no server of this run; from the
# checkout and as the caller, since only root can mount (slowdisk), and since it may keep
# a Python environment in the cache (report, demo)
own_program()
{
	local program=$1 id=${REPORT#"$TESTLOGS/"} rc=0

	job_dir "${id%.report}" || return 1
	shift
	TMPDIR=$WORK "${LIMIT[@]}" "$ROOT/test/$program" "$@" >out 2>&1 || rc=$?
	cat out
	[ $rc -ne 124 ] || timed_out
	grep -q '^skipped: ' out && note "$(grep '^skipped: ' out)"
	count_sum $rc
}

# ---- PostgreSQL's own suites ----------------------------------------------

# prepare_core NAME: the suites' files and the libraries they load
prepare_core()
{
	local name=$1 source src dl config

	source=$(test_source "$name")
	src=$CACHE/src/$source/src/test
	dl=$WORK/core/$name-lib
	config=$(server_pg_config "$name")

	have_suite "$name" || return 0
	if [ ! -e "$WORK/core/$source" ]; then
		mkdir -p "$WORK/core/$source"
		cp -r "$src/regress" "$src/isolation" "$WORK/core/$source/"
		chmod -R u=rwX,go=rX "$WORK/core"
	fi
	mkdir -p "$dl"
	if [ "$(server_kind "$name")" = built ]; then
		cp "$CACHE/pg/$name/build/src/test/regress/"*.so "$dl/"
		return
	fi
	# packages have the drivers, but not the C functions the tests call; what the headers
	# of one major include, those of another may not
	logged "$LOGS/core-$name.log" "${CC:-cc}" -O2 -fPIC -shared -w \
		-fno-strict-aliasing -fwrapv -I"$("$config" --includedir-server)" \
		-include postgres.h -include utils/array.h \
		-o "$dl/regress.so" "$src/regress/regress.c" || return 1
	cp "$("$config" --pkglibdir)"/{refint,autoinc}.so "$dl/" ||
		die "refint.so and autoinc.so are missing: they belong to PostgreSQL $name's package"
}

# need_suite NAME: the suites come from the source, of the server's minor if possible; it fails where
# there is none for the newest major
need_suite()
{
	if [ "$(server_kind "$1")" = next ]; then
		need_next_source
	else
		fetch_source "$(test_source "$1")" "$(server_version "$1")"
	fi
}

# have_suite NAME
have_suite()
{
	[ -e "$CACHE/src/$(test_source "$1")/.version" ]
}

# suite_version NAME: of the suite at hand; "-" if there is none
suite_version()
{
	if have_suite "$1"; then
		source_version "$(test_source "$1")" | tr -d '~'
	else
		echo -
	fi
}

# suite_differs NAME: is the suite of another release than the server?
suite_differs()
{
	[ "$(suite_version "$1")" != "$(server_version "$1")" ]
}

# core_config LEAF_PAGES: the configuration of the temporary server ("stock": none).
# explain = off: what EXPLAIN (ANALYZE) says about look-ahead is the one thing
# that is meant to differ.
core_config()
{
	echo "fsync = off"
	[ "$1" = stock ] && return
	cat <<-EOF
		shared_preload_libraries = 'pg_lookahead'
		pg_lookahead.force = on
		pg_lookahead.enable_index_build = on
		pg_lookahead.enable_btree_insert = on
		pg_lookahead.explain = off
		pg_lookahead.max_leaf_pages = $1
	EOF
}

# core_run NAME regress|isolation LEAF_PAGES: one run in the current job directory
core_run()
{
	local name=$1 suite=$2 tool=pg_regress schedule=parallel_schedule rc=0 input

	if [ "$suite" = isolation ]; then
		tool=pg_isolation_regress
		schedule=isolation_schedule
	fi
	input=$WORK/core/$(test_source "$name")/$suite
	core_config "$3" >"$DIR/server.conf"
	chmod 644 "$DIR/server.conf"
	# pg_regress since 16 does not know this word of older schedules
	sed '/^ignore:/d' "$input/$schedule" >"$DIR/schedule"
	rm -rf "$DIR/tmp"
	in_server "$name" "$(pgxs_of "$name")/src/test/$suite/$tool" \
		--bindir="${HOMES[$name]}/bin" --inputdir="$input" --outputdir="$DIR" \
		--dlpath="$WORK/core/$name-lib" --max-concurrent-tests=20 \
		--temp-instance="$DIR/tmp" --temp-config="$DIR/server.conf" \
		--no-locale --encoding=UTF8 --schedule="$DIR/schedule" \
		>"$DIR/out" 2>&1 || rc=$?
	cat "$DIR/out"
	failed_regress "$DIR/out" | sort >"$DIR/failed"
	return $rc
}

# keep_evidence: diffs and server log of a failed run, out of the work area
keep_evidence()
{
	local base=${REPORT%.report}

	[ -s "$DIR/regression.diffs" ] && cp "$DIR/regression.diffs" "$base.diffs"
	if [ -s "$base.diffs" ]; then
		cp "$DIR/log/postmaster.log" "$base.postmaster.log" 2>/dev/null
		trouble "$base.diffs"
	fi
	rm -rf "$DIR/tmp"
}

# core_baseline NAME SUITE: the stock server's results for the same suite, made
# when a run first asks for them; prints their directory
core_baseline()
{
	local dir=$WORK/job/$1-$2-baseline

	(
		flock 8
		[ -e "$dir/done" ] && exit 0
		job_dir "$1-$2-baseline" || exit 1
		core_run "$1" "$2" stock >/dev/null
		rm -rf "$DIR/tmp"
		touch "$DIR/done"
	) 8>"$WORK/$1-$2-baseline.lock"
	echo "$dir"
}

# comparable FILE: a result, without what two runs of one server do not have in common.  In
# 16, a table that 15's test makes a view of stays a table, and has an OID and an age.
comparable()
{
	sed -E 's/^ +[0-9]+ \| r +\| +[0-9]+$/ OID | r | XID/' "$1"
}

# core_excused NAME SUITE: failed tests of the current run whose results are
# those of the stock server, which is asked if its release is another one, or in a second run
core_excused()
{
	local baseline test

	[ -s failed ] || return 0
	suite_differs "$1" || [ -n "$SECOND_RUN" ] || return 0
	# alone, as well
	[ -z "$SECOND_RUN" ] || rm -rf "$WORK/job/$1-$2-baseline"
	baseline=$(core_baseline "$1" "$2")
	while read -r test; do
		if grep -qx -- "$test" "$baseline/failed" &&
			cmp -s <(comparable "results/$test.out") \
				<(comparable "$baseline/results/$test.out"); then
			printf '%s\n' "$test"
		fi
	done <failed
}

# core_suite NAME SUITE LEAF_PAGES: the job
core_suite()
{
	local name=$1 suite=$2 rc=0

	job_dir "$name-$suite-$3" || return 1
	core_run "$name" "$suite" "$3" || rc=$?
	: >excused
	[ "$3" = stock ] || core_excused "$name" "$suite" >excused
	if [ $rc -ne 0 ] && [ -s failed ] && cmp -s failed excused; then
		rc=0
	fi

	count_regress "$DIR/out" || rc=1
	if [ -s excused ]; then
		# they were counted as failed
		count "$(wc -l <excused)" "-$(wc -l <excused)"
		note "as stock $(server_version "$name") on $(suite_version "$name")'s suite: $(paste -sd ' ' excused)"
	fi
	if [ $rc -eq 0 ]; then
		rm -rf tmp
	else
		! has_crashed log/postmaster.log || final "a server has crashed"
		echo "failed: $(comm -23 failed excused | paste -sd ' ')"
		keep_evidence
	fi
	return $rc
}
