# shellcheck shell=bash
#
# test/checks.sh - what the test programs written in bash share (test/slowdisk, test/demo,
# test/makefile, test/readme, dev/fresh).
#
# Sourced.  It gives
#   test_that TEXT COMMAND...   one test: "ok N - TEXT" or "not ok N - TEXT"
#   sum_up                      "N passed, N failed"; its code says whether none failed

passed=0
failed=0

# test_that TEXT COMMAND...: it passes if the command succeeds; the output of one that
# does not is shown
test_that()
{
	local text=$1 rc=0 output

	shift
	output=$("$@" 2>&1) || rc=$?
	if [ $rc -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok $((passed + failed)) - $text"
	else
		failed=$((failed + 1))
		echo "not ok $((passed + failed)) - $text"
		printf '%s\n' "code $rc: $*" "$output" | sed 's/^/# /'
	fi
}

sum_up()
{
	echo "$passed passed, $failed failed"
	[ $failed -eq 0 ]
}
