# shellcheck shell=bash
#
# bench/prepare.sh - what the workload runner and the demo need before Python starts.
#
# Sourced after dev/lib/*.sh.  It gives
#   need_tools PACKAGE...    Debian packages, installed when root, named otherwise
#   need_python [NAME...]    PYTHON: an interpreter with what bench/requirements.txt names,
#                            and bench/requirements-NAME.txt
#   install_into NAME        pg_lookahead compiled and installed for that server

VENV=$CACHE/venv

need_tools()
{
	local -a missing

	is_debian || return 0
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -gt 0 ] || return 0
	am_root || die "these Debian packages are missing: ${missing[*]}" \
		"(as root: apt-get install --no-install-recommends ${missing[*]})"
	read_lists
	install_packages "${missing[@]}" || die "cannot install: ${missing[*]}"
}

# read_lists: apt-get update, once in a script
read_lists()
{
	[ -z "${LISTS_READ:-}" ] || return 0
	say "reading the package lists"
	logged "$LOGS/packages.log" apt-get update ||
		warn "apt-get update failed; trying with the lists at hand"
	LISTS_READ=1
}

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
				logged "$LOGS/venv.log" "$base" -m venv --clear "$VENV" || exit 1
			fi
			logged "$LOGS/venv.log" "$PYTHON" -m pip install -q \
				--disable-pip-version-check -r "$list" || exit 1
			cp "$list" "$VENV/" || exit 1
		done
	) 9>"$CACHE/venv.lock" || die "the Python environment could not be made"
}

# install_into NAME: without dev/test's strictness, for compilers that we do not know
install_into()
{
	# shellcheck disable=SC2034 # read by compile_extension
	local -a WARNINGS=()

	have_extension || die "there is no src/pg_lookahead.c and pg_lookahead.control to build"
	say "building pg_lookahead for PostgreSQL $1"
	compile_extension "$1" && install_extension "$1" || die "pg_lookahead could not be built"
}
