# shellcheck shell=bash
#
# dev/lib/indent.sh - PostgreSQL's own formatter, for dev/indent and dev/lint.
#
# pgindent and pg_bsd_indent come with PostgreSQL's source from 17 on; those of
# 18 are used.  pg_bsd_indent needs a configured tree: the build of 18 if it is
# there, else one that is configured for this purpose only.  The result is kept in
# .cache/indent.
#
# The names of types, which the formatter cannot guess, are core's list and ours.
# Ours are found in src/ itself: every La* name that ends a typedef.

INDENT=$CACHE/indent

c_files()
{
	find "$ROOT/src" -name '*.[ch]' 2>/dev/null | sort
}

# need_indent: fetch and build what is missing
need_indent()
{
	local src=$CACHE/src/18 build=$CACHE/pg/18/build

	if [ ! -e "$src/.version" ]; then
		say "the formatter comes with the source of PostgreSQL 18, which is not here yet"
	fi
	fetch_source 18 || return 1
	if [ -x "$INDENT/pg_bsd_indent" ] &&
		[ "$(cat "$INDENT/version" 2>/dev/null)" = "$(source_version 18)" ]; then
		return 0
	fi
	say "building pg_bsd_indent"
	mkdir -p "$INDENT"
	if ! server_present 18 || [ ! -e "$build/src/port/libpgport.a" ]; then
		build=$INDENT/build
		rm -rf "$build"
		mkdir -p "$build"
		(cd "$build" && logged "$LOGS/indent.log" "$src/configure" -q \
			--without-icu --without-readline --without-zlib) || return 1
	fi
	logged "$LOGS/indent.log" make -s "-j$JOBS" -C "$build/src/tools/pg_bsd_indent" all ||
		return 1
	cp "$build/src/tools/pg_bsd_indent/pg_bsd_indent" "$INDENT/"
	rm -rf "$INDENT/build"
	source_version 18 >"$INDENT/version"
}

# own_typedefs: La names that a typedef in src/ defines
own_typedefs()
{
	c_files | xargs -r cat | perl -0777 -ne '
		s{/\*.*?\*/}{}gs;
		print "$1\n" while /\btypedef\s+(?:struct|union|enum)\b[^;{]*?\{(?:[^{}]|\{[^{}]*\})*\}\s*(\w+)\s*;/g;
		print "$1\n" while /\btypedef\b[^;{}]*?\b(\w+)\s*(?:\[[^\]]*\])?;/g;
		print "$1\n" while /\btypedef\b[^;{}]*?\(\s*\*?\s*(\w+)\s*\)\s*\(/g;' | sort -u
}

# run_pgindent ARGUMENT...: on all of src/
run_pgindent()
{
	local -a files

	mapfile -t files < <(c_files)
	[ ${#files[@]} -gt 0 ] || return 0
	{
		cat "$CACHE/src/18/src/tools/pgindent/typedefs.list"
		own_typedefs
	} | sort -u >"$INDENT/typedefs.list"
	(cd "$ROOT" && perl "$CACHE/src/18/src/tools/pgindent/pgindent" \
		--indent="$INDENT/pg_bsd_indent" --typedefs="$INDENT/typedefs.list" \
		"$@" "${files[@]#"$ROOT"/}") && return
	# what it leaves of a file that it cannot format
	rm -f "$ROOT"/pgsrc*.BAK
	return 1
}
