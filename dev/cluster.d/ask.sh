# shellcheck shell=bash
#
# dev/cluster.d/ask.sh - the questions of dev/cluster, asked in several ways.
#
# Sourced.  A question is a file of dev/cluster.d/questions: one statement, and comments of it,
#   -- title: TEXT
#   -- part: TEXT       what is measured
#   -- set: SETTING     of the session, any number of them
#   -- write: TABLE     it writes to that table, and is rolled back
#   -- like: NAME       the answer must be that of another question
# psql's variables: n, the number of the round, which chooses the rows; rows, and others, as in
# load.sql; shards, so that each of them has as much to do, however many there are.  What a statement
# returns must not depend on the order in which shards answer.
#
#   question_names [NAME...]    all, or those that are named and exist
#   measure                     asks each of them cold, and prints medians
#   check_answers               asks each of them in all ways, forced on the shards
#   advice                      what pg_lookahead_report() says of the foreign servers

question_names()
{
	local file name

	for file in dev/cluster.d/questions/*.sql; do
		name=$(basename "$file" .sql)
		name=${name#*-}
		[ $# -eq 0 ] || [[ " $* " = *" $name "* ]] || continue
		echo "$name"
	done
}

# about NAME KEY: all values
about()
{
	sed -n "s/^-- $2: //p" dev/cluster.d/questions/*-"$1".sql
}

# script NAME WAY: for psql; first what a session does once (connections, catalogs)
script()
{
	local file setting table

	file=$(echo dev/cluster.d/questions/*-"$1".sql)
	table=$(about "$1" write)
	cat <<-SQL
		SET search_path = $2, public;
		SELECT :rows / 100 AS owners, :rows / 4 AS orders, greatest(:rows / 40, 1) AS customers, greatest(:rows / 30, 1) AS parts \\gset
		SELECT $([ "$2" = plain ] || [ "$2" = stock ] && echo "set_config('pg_lookahead.enable', 'off', false)" || echo "''") AS nothing \\gset
		SELECT count(*) AS nothing FROM ping \\gset
		BEGIN;
	SQL
	while read -r setting; do
		[ -z "$setting" ] || echo "SET LOCAL $setting;"
	done < <(about "$1" set)
	printf '%s\n' '\echo plan' 'EXPLAIN (COSTS OFF)'
	cat "$file"
	printf '%s\n' '\echo answer' '\timing on'
	cat "$file"
	printf '%s\n' '\timing off'
	# not by the partitions' order
	[ -z "$table" ] || echo "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM $table t;"
	echo 'ROLLBACK;'
}

# ask NAME WAY N: plan and answer in $WORK/answers/NAME.WAY.N, milliseconds on stdout
ask()
{
	local out=$WORK/answers/$1.$2.$3

	mkdir -p "$WORK/answers"
	script "$1" "$2" | run_on "$COORDINATOR" -v n="$3" -v rows="$ROWS" -v shards="$SHARDS" >"$out.all" 2>&1 || {
		warn "$1 failed: $(tail -n 3 "$out.all")"
		return 1
	}
	sed '/^answer$/,$d' "$out.all" >"$out.plan"
	sed -e '1,/^answer$/d' -e '/^Time: /d' "$out.all" >"$out"
	sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' "$out.all" | tail -n 1
}

# same NAME WAY N WHAT [NAME]: as stock's; WHAT is "" or ".plan"
same()
{
	diff "$WORK/answers/${5:-$1}.stock.$3$4" "$WORK/answers/$1.$2.$3$4"
}

# not_empty FILE: it has a digit
not_empty()
{
	grep -q '[1-9]' "$1"
}

# compare NAME N WAY...: prints what differs
compare()
{
	local name=$1 n=$2 way like

	shift 2
	like=$(about "$name" like)
	not_empty "$WORK/answers/$name.stock.$n" || echo "no rows"
	for way in "$@"; do
		same "$name" "$way" "$n" '' || true
		[ "$way" != ahead ] || same "$name" "$way" "$n" .plan || true
	done
	[ -z "$like" ] || [ ! -e "$WORK/answers/$like.stock.$n" ] || same "$name" stock "$n" '' "$like" || true
}

# ways_of NAME: a standby does not write
ways_of()
{
	echo plain stock ahead
	[ -z "$STANDBYS" ] || [ -n "$(about "$1" write)" ] || echo standby
}

# ---- answers ----------------------------------------------------------------

# asked_alike NAME N
asked_alike()
{
	local way differences
	local -a ways

	read -r -d '' -a ways < <(ways_of "$1" | paste -sd ' ') || true
	for way in "${ways[@]}"; do
		ask "$1" "$way" "$2" >/dev/null || return 1
	done
	differences=$(compare "$1" "$2" "${ways[@]}")
	[ -z "$differences" ] || {
		echo "$differences"
		return 1
	}
}

# ahead_on PORT: did scans look ahead there?
ahead_on()
{
	[ "$(run_on "$1" -c 'SELECT sum(scans_activated) > 0 FROM pg_stat_lookahead')" = t ]
}

# clean_log PORT
clean_log()
{
	! grep -E 'PANIC:|FATAL:|TRAP:|refcount leak|was not closed|leaked|was terminated by signal' "$(data_of "$1")/server.log"
}

check_answers()
{
	local name n port

	test_that "standbys have caught up" caught_up
	for name in "${QUESTIONS[@]}"; do
		for n in 1 2; do
			test_that "$name, $n: the same answer in all ways" asked_alike "$name" "$n"
		done
	done
	for port in "${PORTS[@]}"; do
		test_that "look-ahead was at work on shard $port" ahead_on "$port"
		test_that "... and on its standby" ahead_on $((port + 100))
	done
	for port in "$COORDINATOR" "${PORTS[@]}"; do
		test_that "the log of $port is clean" clean_log "$port"
	done
	for port in "${PORTS[@]}"; do
		test_that "the log of its standby $((port + 100)) is clean" clean_log $((port + 100))
	done
}

# ---- times --------------------------------------------------------------------

# median: of the numbers on stdin
median()
{
	sort -n | awk '{v[NR] = $1} END {print NR ? (v[int((NR + 1) / 2)] + v[int((NR + 2) / 2)]) / 2 : "-"}'
}

measure()
{
	local name n way ways=(plain stock ahead) differences wrong=0
	local -A m

	am_root || say "not root: the page cache is not emptied, so shards may read from memory"
	say "each cold, $ROUNDS rounds$([ "$DELAY" -eq 0 ] || echo ", $DELAY us of network")$([ "$LATENCY" -eq 0 ] || echo ", $LATENCY us for a read")"
	printf '%-16s %10s %10s %10s %7s %7s  %s\n' question plain stock ahead plain/s stock/a part
	for name in "${QUESTIONS[@]}"; do
		rm -f "$WORK"/times.*
		for ((n = 1; n <= ROUNDS; n++)); do
			for way in "${ways[@]}"; do
				cold
				ask "$name" "$way" "$n" >>"$WORK/times.$way" || return 1
			done
			differences=$(compare "$name" "$n" "${ways[@]}")
			[ -z "$differences" ] || {
				warn "$name, round $n: answers or plans differ:"$'\n'"$differences"
				wrong=1
			}
			# the ways take turns
			ways=("${ways[@]:1}" "${ways[0]}")
		done
		for way in plain stock ahead; do
			m[$way]=$(median <"$WORK/times.$way")
		done
		awk -v n="$name" -v p="${m[plain]}" -v s="${m[stock]}" -v a="${m[ahead]}" -v part="$(about "$name" part)" \
			'BEGIN {printf "%-16s %8.1fms %8.1fms %8.1fms %7.2f %7.2f  %s\n", n, p, s, a, p / s, s / a, part}'
	done
	say "plain/s: what async_capable, fetch_size and batch_size bring; stock/a: what look-ahead on the shards brings"
	[ $wrong -eq 0 ]
}

advice()
{
	echo
	say "what pg_lookahead_report() says of the servers without options:"
	run_on "$COORDINATOR" -c "SELECT finding || E'\n    ' || advice FROM pg_lookahead_report() WHERE section = 'foreign' AND finding ~ 'plain'" || true
}
