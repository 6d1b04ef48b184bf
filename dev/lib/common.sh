# shellcheck shell=bash
#
# dev/lib/common.sh - what every development script shares.
#
# Sourced, never run.  It gives
#   ROOT, CACHE        the checkout and its private cache (git-ignored)
#   say, die           progress lines with the time elapsed since the script started
#   logged             run a step with its output in a log file, shown only when it fails
#   quietly            the same for what fails for a reason that the caller can name
#   need_space         stop where a file system is too full for what is to come
#   as_server          run a command as the unprivileged user that may own a server
#   work_area          a fresh scratch directory of that user, removed on exit
#
# PostgreSQL refuses to run as root.  A script started by root therefore runs
# every server as SERVER_USER ("postgres" when it exists, else "nobody"),
# through setpriv; a script started by anybody else runs servers as itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${LA_CACHE:-$ROOT/.cache}
LOGS=$CACHE/log
# shellcheck disable=SC2034	# for those who source this
JOBS=$(nproc 2>/dev/null || echo 2)
STARTED=${STARTED:-$(date +%s)}
export STARTED

umask 022

# --help of the scripts here and in test/ is their head; bench/ has help of its own.  (The script may have
# been named relative to where it was called.)
SCRIPT=$0
[ -f "$SCRIPT" ] || SCRIPT=${OLDPWD:-}/$0
case $(dirname "$(realpath "$SCRIPT")"):${1:-} in
	"$ROOT"/dev:--help | "$ROOT"/dev:-h | "$ROOT"/test:--help | "$ROOT"/test:-h)
		sed -n '3,/^[^#]*$/s/^# \{0,1\}//p' "$SCRIPT"
		exit 0
		;;
esac

# elapsed [SINCE]: minutes and seconds since the script (or SINCE) started
# shellcheck disable=SC2120
elapsed()
{
	local s=$(($(date +%s) - ${1:-$STARTED}))

	printf '%d:%02d' $((s / 60)) $((s % 60))
}

say()
{
	printf '[%s] %s\n' "$(elapsed)" "$*"
}

warn()
{
	printf '[%s] %s\n' "$(elapsed)" "$*" >&2
}

die()
{
	printf '[%s] error: %s\n' "$(elapsed)" "$*" >&2
	exit 1
}

# make cannot deal with them; a script that does without it sets ANY_PATH
if [ -z "${ANY_PATH:-}" ] && [[ $ROOT$CACHE = *[[:space:]]* ]]; then
	die "the path of the checkout, or of LA_CACHE, has a blank in it, which make cannot deal with"
fi

mkdir -p "$LOGS" 2>/dev/null && [ -w "$LOGS" ] ||
	die "$(id -un) cannot write to $CACHE: use a checkout of your own, or set LA_CACHE to a directory"

# quietly LOG COMMAND...: append the output to LOG
quietly()
{
	local log=$1

	shift
	mkdir -p "$(dirname "$log")"
	"$@" >>"$log" 2>&1 </dev/null
}

# logged LOG COMMAND...: and show its tail on failure
logged()
{
	local log=$1
	local rc=0

	shift
	quietly "$log" "$@" || rc=$?
	if [ "$rc" -ne 0 ]; then
		warn "failed ($rc): $*"
		tail -n 25 "$log" | sed 's/^/    /' >&2
		warn "whole log: $log"
	fi
	return "$rc"
}

# need_space DIR MB WHAT: stop if fewer are free; an existing directory or one to come
need_space()
{
	local dir=$1 free

	while [ ! -d "$dir" ]; do
		dir=$(dirname "$dir")
	done
	free=$(df -Pk "$dir" | awk 'NR == 2 {print int($4 / 1024)}')
	[ "$free" -ge "$2" ] || die "$dir has $free MB free, and $3 needs $2 MB"
}

am_root()
{
	[ "$(id -u)" -eq 0 ]
}

# ---- the unprivileged user ------------------------------------------------

if am_root; then
	if [ -n "${LA_SERVER_USER:-}" ]; then
		SERVER_USER=$LA_SERVER_USER
	elif id postgres >/dev/null 2>&1; then
		SERVER_USER=postgres
	else
		SERVER_USER=nobody
	fi
else
	SERVER_USER=$(id -un)
fi

# as_server COMMAND...: run it as SERVER_USER, with HOME in the work area.
# The variables that would redirect a client are dropped on the way.
as_server()
{
	local -a clean=(env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE
		-u PGDATA -u PGOPTIONS -u PGSERVICE -u PGPASSWORD
		HOME="${WORK:-/tmp}" LC_ALL=C.UTF-8)

	if am_root; then
		setpriv --reuid="$(id -u "$SERVER_USER")" \
			--regid="$(id -g "$SERVER_USER")" --clear-groups -- \
			"${clean[@]}" "$@"
	else
		"${clean[@]}" "$@"
	fi
}

# ---- the work area --------------------------------------------------------

WORK=
WORK_OWNER=

# work_area NAME: create WORK (under TMPDIR or /var/tmp), owned by SERVER_USER.
# On exit every server whose data directory lies in it is stopped by pg_ctl, and
# the directory goes, unless LA_KEEP is set.
work_area()
{
	WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/pg_lookahead.${1:-work}.XXXXXX") ||
		die "cannot create a work area under ${TMPDIR:-/var/tmp}"
	WORK_OWNER=$BASHPID
	if am_root; then
		chown "$SERVER_USER:" "$WORK"
	fi
	chmod 755 "$WORK"
	as_server test -w "$WORK" ||
		die "user $SERVER_USER cannot reach $WORK; set TMPDIR to a directory open to all"
	trap work_area_end EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# stop_servers DIR: stop what still runs on a data directory below DIR.
# The postmaster's pid file names its process; its own pg_ctl is found through
# the binary that process runs, so that nothing else can be hit.
stop_servers()
{
	local pidfile data pid exe bin

	[ -d "$1" ] || return 0
	while IFS= read -r pidfile; do
		data=$(dirname "$pidfile")
		pid=$(head -n 1 "$pidfile" 2>/dev/null) || continue
		# (the number may be another process's by now, or of another namespace)
		[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$(realpath "$data")" ] || continue
		exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || continue
		bin=$(dirname "$exe")
		[ -x "$bin/pg_ctl" ] || continue
		as_server "$bin/pg_ctl" -D "$data" -m immediate -w stop \
			>/dev/null 2>&1 || true
	done < <(find "$1" -maxdepth 8 -name postmaster.pid 2>/dev/null)
}

work_area_end()
{
	local rc=$?

	# a subshell must not clear away its parent's directory
	[ "${WORK_OWNER:-}" = "$BASHPID" ] || return "$rc"
	[ -n "$WORK" ] && [ -d "$WORK" ] || return "$rc"
	cd / || true
	# the jobs first (queue.sh), then the servers they may have left
	if declare -F stop_jobs >/dev/null; then
		stop_jobs
	fi
	stop_servers "$WORK"
	if [ -n "${LA_KEEP:-}" ]; then
		warn "kept: $WORK"
	else
		rm -rf "$WORK"
	fi
	return "$rc"
}

# reachable PATH: can SERVER_USER read it?
reachable()
{
	as_server test -r "$1"
}
