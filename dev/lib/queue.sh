# shellcheck shell=bash
#
# dev/lib/queue.sh - a small queue of test jobs and their sum.
#
#   job ID COMMAND...     put a job into the queue
#   run_jobs N            run what is queued, at most N at a time
#   summary               a line per job, then "N passed, N failed"
#
# A job is a shell function.  It runs in a subshell and a process group of its
# own, with its output in .cache/log/test/ID.log, and reports by
#   count PASSED FAILED       add to the job's tests
#   part NAME PASSED FAILED   the same, for a part that the job can run without the others
#   note TEXT                 a remark for the summary
#   trouble FILE              a file whose tail explains a failure (a diff)
#   final TEXT                it has failed in a way that no second run takes back
# What a failed job had to say is shown when it ends, and again below the sum: of a long
# run often nothing but the end is kept.
# A job that ends with an exit code but no failed test counts one failed test:
# what did not run has not passed.
#
# Judged once more.  A machine that is busy enough stops any process for seconds, so a job that
# has failed runs again when all others have ended: with nothing beside it, with the same seeds,
# and if only parts of it have failed, these (their names are in AGAIN, which is empty the first
# time; SECOND_RUN is 1 the second time).  What passes then has passed; the summary names it and what had failed, and
# ID.first.log keeps the first run.  So that no fault hides behind this rule,
#   - a job calls final(), and is not asked again, if a server has crashed or an assertion has
#     failed; if rows, pages, plans or errors differ from stock's; if something was left pinned,
#     leaked or damaged.  Whether stock itself gives different answers has been asked by then: a
#     test that knows such statements asks stock again itself.
#   - what is the same each time (lint, builds, units, expected output) fails twice.
#   - nothing is judged a third time, and no bound is another one in the second run.
# What remains are time limits, bounds on how much was done, and things that had not happened
# yet when somebody looked.

TESTLOGS=$LOGS/test
QUEUE=()				# ids, in order
declare -A COMMANDS=()			# id -> command line, quoted
declare -A RUNNING=()			# pid -> id
ALL=()				# ids of all jobs, in order
ONLY=()				# if not empty: which jobs there are, by the last part of their ids
LEFT_OUT=()			# ids, since the time was over
DOUBTFUL=()			# ids of those that have failed and may be judged once more
JUDGED=()			# ids of those that were
# shellcheck disable=SC2034	# these are for the jobs
SECOND_RUN=			# 1 in that of a job
AGAIN=()			# the parts to run, if not all

job()
{
	local id=$1

	[ ${#ONLY[@]} -eq 0 ] || [[ " ${ONLY[*]} " = *" ${id##*/} "* ]] || return 0
	shift
	QUEUE+=("$id")
	ALL+=("$id")
	COMMANDS[$id]=$(printf '%q ' "$@")
}

count()
{
	printf 'count %d %d\n' "$1" "$2" >>"$REPORT"
}

note()
{
	printf 'note %s\n' "$*" >>"$REPORT"
}

part()
{
	printf 'part %s %d %d\n' "$1" "$2" "$3" >>"$REPORT"
}

final()
{
	printf 'final %s\n' "$*" >>"$REPORT"
}

trouble()
{
	[ ! -s "$1" ] || printf 'trouble %s\n' "$1" >>"$REPORT"
}

# job_sum ID: "PASSED FAILED"
job_sum()
{
	awk '$1 == "count" {p += $2; f += $3}
		$1 == "part" {p += $3; f += $4}
		END {print p + 0, f + 0}' "$TESTLOGS/$1.report"
}

start_job()
{
	local id=$1

	say "start  $id"
	mkdir -p "$(dirname "$TESTLOGS/$id")"
	: >"$TESTLOGS/$id.report"
	date +%s >"$TESTLOGS/$id.began"
	set -m
	(
		set +e
		REPORT=$TESTLOGS/$id.report
		eval "${COMMANDS[$id]}"
		rc=$?
		if [ $rc -ne 0 ] && ! awk '$1 ~ /^(count|part)$/ && $NF > 0 {f = 1} END {exit !f}' "$REPORT"; then
			count 0 1
			note "ended with code $rc"
		fi
		exit 0
	) >"$TESTLOGS/$id.log" 2>&1 </dev/null 7>&- &	# 7: dev/test's lock
	RUNNING[$!]=$id
	set +m
}

end_job()
{
	local id=$1 passed failed notes verdict=ok

	# a job that was killed has reported nothing
	[ -s "$TESTLOGS/$id.report" ] || REPORT=$TESTLOGS/$id.report count 0 1
	read -r passed failed < <(job_sum "$id")
	notes=$(sed -n 's/^note //p' "$TESTLOGS/$id.report" | paste -sd ';')
	[ "$failed" -eq 0 ] || verdict=FAILED
	printf '%s %s %s %s\n' "$passed" "$failed" \
		"$(elapsed "$(cat "$TESTLOGS/$id.began")")" "$notes" >"$TESTLOGS/$id.result"
	say "$(printf 'end    %-28s %-6s %4d passed, %d failed, %s%s' "$id" "$verdict" \
		"$passed" "$failed" "$(elapsed "$(cat "$TESTLOGS/$id.began")")" "${notes:+ ($notes)}")"
	[ "$failed" -ne 0 ] || return 0
	explain_failure "$id"
	grep -q '^final ' "$TESTLOGS/$id.report" || DOUBTFUL+=("$id")
}

# explain_failure ID: the end of its log, and of what it has called trouble
explain_failure()
{
	local id=$1 file

	echo "    ---- $TESTLOGS/$id.log"
	tail -n 15 "$TESTLOGS/$id.log" | sed 's/^/    /'
	while read -r file; do
		echo "    ---- $file"
		tail -n 70 "$file" | sed 's/^/    /'
	done < <(sed -n 's/^trouble //p' "$TESTLOGS/$id.report")
}

# leave_out: what is queued, when the time is over
leave_out()
{
	[ -n "${LA_MINUTES:-}" ] && [ ${#QUEUE[@]} -gt 0 ] || return 0
	[ $(($(date +%s) - STARTED)) -ge $((LA_MINUTES * 60)) ] || return 0
	LEFT_OUT+=("${QUEUE[@]}")
	QUEUE=()
}

# failed_parts REPORT: none if something has failed that is in no part
failed_parts()
{
	awk '$1 == "count" && $3 > 0 {whole = 1}
		$1 == "part" && $4 > 0 {names = names $2 "\n"}
		END {if (!whole) printf "%s", names}' "$1"
}

# judge_again ID: by itself.  What had passed of a job that runs in parts counts as before.
# shellcheck disable=SC2034	# the job reads SECOND_RUN
judge_again()
{
	local id=$1 log=$TESTLOGS/$1 file

	say "once more, alone: $id"
	for file in "$log".{log,report,result,trouble,diffs}; do
		[ ! -e "$file" ] || mv "$file" "$log.first.${file##*.}"
	done
	sed -i "s|$log\.|$log.first.|" "$log.first.report"
	mapfile -t AGAIN < <(failed_parts "$log.first.report")
	SECOND_RUN=1
	start_job "$id"
	SECOND_RUN=
	wait "${!RUNNING[@]}" || true
	RUNNING=()
	if [ ${#AGAIN[@]} -gt 0 ]; then
		awk '$1 == "part" && $4 == 0 || $1 == "count"' "$log.first.report" >>"$log.report"
	fi
	AGAIN=()
	JUDGED+=("$id")
	end_job "$id"
}

# run_jobs N: those that fail are judged once more when the others have ended
run_jobs()
{
	local slots=$1 pid id
	local -a again

	DOUBTFUL=()
	while [ ${#QUEUE[@]} -gt 0 ] || [ ${#RUNNING[@]} -gt 0 ]; do
		leave_out
		while [ ${#QUEUE[@]} -gt 0 ] && [ ${#RUNNING[@]} -lt "$slots" ]; do
			start_job "${QUEUE[0]}"
			QUEUE=("${QUEUE[@]:1}")
		done
		[ ${#RUNNING[@]} -gt 0 ] || break
		wait -n -p pid "${!RUNNING[@]}" || true
		[ -n "${pid:-}" ] || continue
		end_job "${RUNNING[$pid]}"
		unset "RUNNING[$pid]"
	done
	again=("${DOUBTFUL[@]}")
	for id in "${again[@]}"; do
		judge_again "$id"
	done
}

# stop_jobs: on exit, with whatever they have started
stop_jobs()
{
	local pid

	for pid in "${!RUNNING[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
}

# tell_of_second_runs: what had failed in the first
tell_of_second_runs()
{
	local id first log

	for id in "${JUDGED[@]}"; do
		log=$TESTLOGS/$id
		read -r _ first _ <"$log.first.result"
		echo "judged once more, alone: $id, $first failed at first ($log.first.log):"
		sed -n 's/^trouble //p' "$log.first.report" | xargs -r cat | head -n 12 | sed 's/^/    /'
	done
	[ ${#JUDGED[@]} -eq 0 ] || echo
}

# summary: in the order of the jobs; returns 1 when anything failed or nothing ran
summary()
{
	local id passed failed took notes all_passed=0 all_failed=0
	local -a broken=()

	echo
	printf '%-30s %8s %8s %8s\n' job passed failed time
	for id in "${ALL[@]}"; do
		[ -e "$TESTLOGS/$id.result" ] || continue
		read -r passed failed took notes <"$TESTLOGS/$id.result"
		printf '%-30s %8d %8d %8s  %s\n' "$id" "$passed" "$failed" "$took" "$notes"
		all_passed=$((all_passed + passed))
		all_failed=$((all_failed + failed))
		[ "$failed" -eq 0 ] || broken+=("$id")
	done
	echo
	tell_of_second_runs
	for id in "${broken[@]}"; do
		echo "what failed in $id:"
		explain_failure "$id"
		echo
	done
	[ ${#LEFT_OUT[@]} -eq 0 ] || say "left out, as $LA_MINUTES minutes were over: ${LEFT_OUT[*]}"
	[ ${#JUDGED[@]} -eq 0 ] || say "judged once more, alone: ${JUDGED[*]}"
	say "finished; logs in $TESTLOGS"
	echo "$all_passed passed, $all_failed failed"
	[ "$all_failed" -eq 0 ] && [ "$all_passed" -gt 0 ]
}

# count_regress LOG: count pg_regress's tests, in either format:
#   15      test boolean              ... ok          231 ms     (or FAILED)
#   16+     ok 2         + boolean                    231 ms     (or not ok)
count_regress()
{
	local passed failed

	passed=$(grep -cE '^ok [0-9]+ | \.\.\. ok( |$)' "$1" || true)
	failed=$(grep -cE '^not ok [0-9]+ | \.\.\. FAILED' "$1" || true)
	count "$passed" "$failed"
	[ "$passed" -gt 0 ] || return 1
}

# parts_of_regress LOG: the same, each test as a part
parts_of_regress()
{
	local rc=1 name passed failed

	while read -r passed failed name; do
		part "$name" "$passed" "$failed"
		rc=0
	done < <(sed -nE -e 's/^ok [0-9]+ +[-+] +([^ ]+) .*/1 0 \1/p' \
		-e 's/^(test| )? +([^ ]+) +\.\.\. ok( .*|$)/1 0 \2/p' "$1"
		failed_regress "$1" | sed 's/^/0 1 /')
	return $rc
}

# failed_regress LOG: the names of the tests that failed
failed_regress()
{
	sed -nE -e 's/^not ok [0-9]+ +[-+] +([^ ]+) .*/\1/p' \
		-e 's/^(test| )? +([^ ]+) +\.\.\. FAILED.*/\2/p' "$1"
}
