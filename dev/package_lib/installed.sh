#!/bin/bash
#
# dev/package_lib/installed.sh - the life of the package on a machine that has only a server.
#
#   installed.sh MAJOR OLD.deb NEW.deb      as root, on a bare machine; OLD.deb may be ""
#
# Installs it, uses it, upgrades it from the older version with a server running, removes it,
# and compares the machine's files with what there was before.  dev/package runs it.

set -uo pipefail
. "$(dirname "$0")/checks.sh"

major=$1 old=${2:+$(realpath "$2")} new=$(realpath "$3")
package=postgresql-$major-lookahead
config=/etc/postgresql/$major/main/conf.d/lookahead.conf

on_server()
{
	runuser -u postgres -- "$@"
}

query()
{
	on_server psql -XAtq -v ON_ERROR_STOP=1 -d postgres -c "$1"
}

server()
{
	on_server pg_ctlcluster "$major" main "$@"
}

# files: everything that a package could leave; what servers, apt and dpkg write is not
files()
{
	find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /srv \
		-o -path /var/lib/postgresql -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \
		-o -path /var/lib/dpkg \) -prune -o ! -type d -print | sort
	dpkg-query -W -f '${Package} ${db:Status-Status}\n'
}

installs()
{
	apt-get install -y -q --no-install-recommends "$1"
}

version_is()
{
	[ "$(dpkg-query -W -f '${Version}' "$package")" = "$(dpkg-deb -f "$1" Version)" ]
}

nothing_changed()
{
	dpkg -V "$package" && [ -z "$(dpkg -V "$package")" ]
}

answers()
{
	local stock ours

	stock=$(query "set enable_seqscan = off; set enable_bitmapscan = off; set pg_lookahead.enable = off;
		select md5(string_agg(w, ',')) from (select w from t where a between 100 and 4000 order by a, w offset 0) s")
	ours=$(query "set enable_seqscan = off; set enable_bitmapscan = off; set pg_lookahead.force = on;
		select md5(string_agg(w, ',')) from (select w from t where a between 100 and 4000 order by a, w offset 0) s")
	echo "$stock $ours"
	[ -n "$stock" ] && [ "$stock" = "$ours" ]
}

# looks_ahead: a query does, and returns the same rows
looks_ahead()
{
	local before after

	before=$(query "select sum(blocks_foreseen) from pg_stat_lookahead")
	answers || return 1
	after=$(query "select sum(blocks_foreseen) from pg_stat_lookahead")
	echo "$before $after"
	[ "$after" -gt $((before + 100)) ]
}

says()
{
	local answer

	answer=$(query "$1")
	echo "$answer"
	[ "$answer" = "$2" ]
}

nothing_left()
{
	files | diff /tmp/files.before - && ! dpkg-query -W "$package" 2>/dev/null
}

cd /				# where the server's user can be
# no port: other servers of the machine outside may have it
mkdir -p "$(dirname "$config")"
echo "listen_addresses = ''" >"$config"
chmod 644 "$config"
first=${old:-$new}
was=$(dpkg-deb -f "$first" Version)
is=$(dpkg-deb -f "$new" Version)

files >/tmp/files.before
test_that "package ${was} is installed on a machine that has only a server" installs "$first"
test_that "it is of that version" version_is "$first"
echo "shared_preload_libraries = 'pg_lookahead'" >>"$config"
test_that "the server starts with it" server start
test_that "CREATE EXTENSION" query "create extension pg_lookahead"
test_that "its version is that of the package" \
	says "select extversion from pg_extension where extname = 'pg_lookahead'" "${was%-*}"
test_that "a table" query "create table t as select (hashint4(i) & 2147483647) % 5000 as a, i::text as w
	from generate_series(1, 20000) i; create index on t (a); analyze t"
test_that "a query looks ahead, with the same rows" looks_ahead
if [ -n "$old" ]; then
	test_that "upgraded to $is with the server running" installs "$new"
	test_that "it is of that version" version_is "$new"
	test_that "the running server goes on with the older library" looks_ahead
	test_that "the server starts with the new library" server restart
	test_that "which works with the older objects" looks_ahead
	test_that "ALTER EXTENSION UPDATE" query "alter extension pg_lookahead update"
	test_that "the version is the new one" \
		says "select extversion from pg_extension where extname = 'pg_lookahead'" "${is%-*}"
	test_that "and a query looks ahead" looks_ahead
fi
test_that "every file is as it was packaged" nothing_changed
test_that "DROP EXTENSION" query "drop extension pg_lookahead"
sed -i '$d' "$config"
test_that "purged with the server running" apt-get purge -y -q "$package"
test_that "the server starts without it" server restart
test_that "the table is there" says "select count(*) from t" 20000
server stop
test_that "nothing is left" nothing_left
rm -f "$config"
sum_up
