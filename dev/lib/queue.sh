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
#   count PASSED FAILED   add to the job's tests
#   note TEXT             a remark for the summary
#   trouble FILE          a file whose tail explains a failure (a diff)
# What a failed job had to say is shown when it ends, and again below the sum: of a long
# run often nothing but the end is kept.
# A job that ends with an exit code but no failed test counts one failed test:
# what did not run has not passed.

TESTLOGS=$LOGS/test
QUEUE=()				# ids, in order
declare -A COMMANDS=()			# id -> command line, quoted
declare -A RUNNING=()			# pid -> id
LEFT_OUT=()			# ids, since the time was over
DONE=()				# ids, in order of completion

job()
{
	local id=$1

	shift
	QUEUE+=("$id")
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

trouble()
{
	[ ! -s "$1" ] || printf 'trouble %s\n' "$1" >>"$REPORT"
}

# job_sum ID: "PASSED FAILED"
job_sum()
{
	awk '$1 == "count" {p += $2; f += $3} END {print p + 0, f + 0}' "$TESTLOGS/$1.report"
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
		if [ $rc -ne 0 ] && ! awk '$1 == "count" && $3 > 0 {f = 1} END {exit !f}' "$REPORT"; then
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
	DONE+=("$id")
	say "$(printf 'end    %-28s %-6s %4d passed, %d failed, %s%s' "$id" "$verdict" \
		"$passed" "$failed" "$(elapsed "$(cat "$TESTLOGS/$id.began")")" "${notes:+ ($notes)}")"
	[ "$failed" -eq 0 ] || explain_failure "$id"
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

run_jobs()
{
	local slots=$1 pid

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
}

# stop_jobs: on exit, with whatever they have started
stop_jobs()
{
	local pid

	for pid in "${!RUNNING[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
}

# summary: returns 1 when anything failed or nothing ran
summary()
{
	local id passed failed took notes all_passed=0 all_failed=0
	local -a broken=()

	echo
	printf '%-30s %8s %8s %8s\n' job passed failed time
	for id in "${DONE[@]}"; do
		read -r passed failed took notes <"$TESTLOGS/$id.result"
		printf '%-30s %8d %8d %8s  %s\n' "$id" "$passed" "$failed" "$took" "$notes"
		all_passed=$((all_passed + passed))
		all_failed=$((all_failed + failed))
		[ "$failed" -eq 0 ] || broken+=("$id")
	done
	echo
	for id in "${broken[@]}"; do
		echo "what failed in $id:"
		explain_failure "$id"
		echo
	done
	[ ${#LEFT_OUT[@]} -eq 0 ] || say "left out, as $LA_MINUTES minutes were over: ${LEFT_OUT[*]}"
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

# failed_regress LOG: the names of the tests that failed
failed_regress()
{
	sed -nE -e 's/^not ok [0-9]+ +[-+] +([^ ]+) .*/\1/p' \
		-e 's/^(test| )? +([^ ]+) +\.\.\. FAILED.*/\2/p' "$1"
}
