# shellcheck shell=bash
#
# bench/prepare.sh - what scripts need before Python starts: bench/, the demo, the tests.
#
# Sourced after dev/lib/*.sh.  It gives
#   need_python [NAME...]    PYTHON: an interpreter with what bench/requirements.txt names,
#                            and bench/requirements-NAME.txt
#   install_into NAME        pg_lookahead compiled and installed for that server
#   own_directory DIR        made, and the server's user's
#   run_alone NAME TOOLS ARGUMENT...
#                            lookbench.NAME on a server of its own, of the --major among the
#                            arguments; TOOLS: Debian packages that it needs, or nothing

VENV=$CACHE/venv

# base_python: an interpreter that can make a virtual environment
base_python()
{
	local candidate

	for candidate in /usr/bin/python3 python3; do
		if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' \
			2>/dev/null; then
			command -v "$candidate"
			return 0
		fi
	done
	return 1
}

# need_python: in .cache/venv, which others use too; a copy of each list that was installed
# lies in it, so that it is read again when the list has changed
need_python()
{
	local base list name
	local -a lists=("$ROOT/bench/requirements.txt")

	for name in "$@"; do
		lists+=("$ROOT/bench/requirements-$name.txt")
	done
	PYTHON=$VENV/bin/python
	(
		flock 9
		for list in "${lists[@]}"; do
			cmp -s "$list" "$VENV/${list##*/}" && continue
			say "making a Python environment: ${list##*/}"
			if ! "$PYTHON" -m pip --version >/dev/null 2>&1; then
				base_python >/dev/null || need_tools python3-venv
				base=$(base_python) || die "Python 3.9 or newer with the module venv is needed"
				quietly "$LOGS/venv.log" "$base" -m venv --clear "$VENV" ||
					die "no Python environment can be made; log: $LOGS/venv.log"
			fi
			quietly "$LOGS/venv.log" "$PYTHON" -m pip install -q \
				--disable-pip-version-check -r "$list" ||
				die "cannot install the Python packages ${list##*/} names" \
					"(no network?); log: $LOGS/venv.log"
			cp "$list" "$VENV/" || exit 1
		done
	) 9>"$CACHE/venv.lock" || exit 1
}

# install_into NAME: without dev/test's strictness, for compilers that we do not know
install_into()
{
	# shellcheck disable=SC2034 # read by compile_extension
	local -a WARNINGS=()
	local compiler

	have_extension || die "there is no src/pg_lookahead.c and pg_lookahead.control to build"
	need_command make build-essential
	compiler=$("$(server_pg_config "$1")" --cc)
	need_command "${compiler%% *}" build-essential
	say "building pg_lookahead for PostgreSQL $1"
	compile_extension "$1" && install_extension "$1" || die "pg_lookahead could not be built"
}

# own_directory DIR: for data, where LA_BENCH_DATA may have placed it
own_directory()
{
	mkdir -p "$1"
	if am_root; then
		chown "$SERVER_USER:" "$1"
	fi
	chmod 700 "$1"
	as_server test -w "$1" ||
		die "user $SERVER_USER cannot reach $1; set LA_BENCH_DATA to a directory open to all"
}

run_alone()
{
	local name=$1 tools=$2 major=18
	local -a arguments

	shift 2
	arguments=("$@")
	while [ $# -gt 0 ]; do
		case $1 in
			--major) major=${2:-} && shift ;;
			--major=*) major=${1#*=} ;;
			-h | --help)
				need_python run
				exec "$PYTHON" -m "lookbench.$name" --help
				;;
		esac
		shift
	done
	case $major in
		15 | 17 | 18 | 19) ;;
		*) die "--major is 15, 17, 18 or 19" ;;
	esac
	need_packages
	# shellcheck disable=SC2086
	[ -z "$tools" ] || need_tools $tools
	need_python run
	need_server "$major"
	use_libraries "$major"
	install_into "$major"
	work_area "$name"
	own_directory "$WORK/data"
	"$PYTHON" -m "lookbench.$name" "${arguments[@]}" --bindir "$(server_prefix "$major")/bin" \
		--data "$WORK/data" --sockets "$WORK" --user "$SERVER_USER"
}
