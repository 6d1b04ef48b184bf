#!/bin/bash
#
# dev/package_lib/minors.sh - the package, when the server gets another minor release.
#
#   minors.sh MAJOR NEW.deb      as root, on a bare machine that has the server and can fetch packages
#
# The machine gets the oldest minor of the server that its lists offer, and the package as it would be
# had it been built for such a one; then the newest server with its headers and a compiler.  The
# package has to notice, build its library again, and look ahead.  It warns when it is removed
# while it is preloaded, and leaves nothing.  dev/package runs it.

set -uo pipefail
. "$(dirname "$0")/checks.sh"

major=$1 new=$(realpath "$2")
package=postgresql-$major-lookahead
config=/etc/postgresql/$major/main/conf.d/lookahead.conf
lib=/usr/lib/postgresql/$major/lib
said=/tmp/apt.said

query()
{
	runuser -u postgres -- psql -XAtq -v ON_ERROR_STOP=1 -d postgres <<<"$1"
}

server()
{
	runuser -u postgres -- pg_ctlcluster "$major" main "$@"
}

# versions: of the server's packages, the oldest first
versions()
{
	apt-cache madison "postgresql-$major" | awk -F'|' '/Packages/ {gsub(/ /, "", $2); print $2}' | sort -V
}

# apt ARGUMENT...: what it says is in $said
apt()
{
	apt-get -y -q --no-install-recommends --allow-downgrades "$@" >$said 2>&1 </dev/null || {
		tail -n 30 $said
		return 1
	}
}

# older_package: which any minor of the server satisfies, as one that was built for the first
older_package()
{
	dpkg-deb -R "$new" /tmp/older &&
		sed -i -E "s/(postgresql-$major) \\(>> [^)]*\\)/\\1/" /tmp/older/DEBIAN/control &&
		rm /tmp/older/DEBIAN/md5sums &&
		echo "$major.0" >"/tmp/older/usr/lib/postgresql/$major/lib/pg_lookahead/built-for" &&
		dpkg-deb --root-owner-group -b /tmp/older /tmp/older.deb && apt install /tmp/older.deb
}

server_of()
{
	apt install "postgresql-$major=$1" "postgresql-client-$major=$1"
}

says()
{
	grep -E -A 3 "^$package: " $said
	grep -qE -- "$package: .*$1" $said
}

# looks_ahead VERSION: does the library that the server has loaded say so, and look ahead?
looks_ahead()
{
	local answer

	answer=$(query "create extension if not exists pg_lookahead;
		select built_for, server, disabled = '{}' from pg_lookahead_library()" | tail -n 1)
	echo "$answer"
	[ "$answer" = "$1|$1|t" ] || return 1
	answer=$(query "create table if not exists t as select (hashint4(i) & 2147483647) % 5000 as a, i::text as w
			from generate_series(1, 20000) i;
		create index if not exists t_a on t (a);
		analyze t;
		set enable_seqscan = off; set enable_bitmapscan = off; set pg_lookahead.force = on;
		select count(w) from t where a between 100 and 4000;
		select blocks_foreseen > 0 from pg_lookahead_last_statement()" | tail -n 1)
	echo "$answer"
	[ "$answer" = t ]
}

restarts()
{
	server restart
}

warns()
{
	grep -A 3 WARNING $said
	grep -q "$package: WARNING: " $said && grep -qx "  $1" $said
}

nothing_left()
{
	local left

	left=$(find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /srv -o -path /var/log -o -path /var/cache \
		-o -path /var/lib/dpkg -o -path /var/lib/postgresql \) -prune -o -name '*look*ahead*' ! -path "$config" -print)
	echo "$left"
	[ -z "$left" ]
}

# removed_in_silence: since nothing preloads it
removed_in_silence()
{
	rm "$config"
	apt install "$new" && apt remove "$package" && ! grep WARNING $said
}

cd /				# where the server's user can be
older=$(versions | head -n 1)
newest=$(versions | tail -n 1)
mkdir -p "$(dirname "$config")"
# no port: other servers of the machine outside may have it
printf '%s\n' "listen_addresses = ''" "shared_preload_libraries = 'pg_lookahead'" >"$config"
chmod 644 "$config"

test_that "the server is $older" server_of "$older"
test_that "the package is installed, which was built for another minor" older_package
test_that "it says so, and what is missing" says "apt-get install postgresql-server-dev-$major .*gcc"
test_that "the server is upgraded to $newest, with its headers" apt install "postgresql-$major" \
	"postgresql-server-dev-$major" gcc make libc6-dev libicu-dev
test_that "which builds the library again" says "in use is the library for PostgreSQL ${newest%%-*}"
test_that "the server starts" restarts
test_that "look-ahead is on" looks_ahead "${newest%%-*}"
test_that "no file of the package has changed" [ -z "$(dpkg -V "$package")" ]
test_that "it is the one that was built" [ "$(readlink $lib/pg_lookahead.so)" = "/var/lib/$package/pg_lookahead.so" ]

echo '#error' >>"/usr/src/$package/src/attach/attach.c"
rm -r "/var/lib/$package"
test_that "sources that cannot be compiled fail no installation" apt install --reinstall "postgresql-server-dev-$major"
test_that "but are told of" says "could not be built"
test_that "the library of the package is there instead" [ -s $lib/pg_lookahead.so ]
test_that "the package is installed again" apt install --reinstall "$new"
test_that "the server starts with the library of the package" restarts
test_that "which looks ahead" looks_ahead "${newest%%-*}"

query "alter system set session_preload_libraries = 'pg_lookahead'" >/dev/null
test_that "removed while it is preloaded" apt remove "$package"
test_that "a warning names the configuration" warns "$config"
test_that "and what ALTER SYSTEM has set" warns "/var/lib/postgresql/$major/main/postgresql.auto.conf"
rm "/var/lib/postgresql/$major/main/postgresql.auto.conf"
server stop -m immediate
test_that "removed when it is not, it warns of nothing" removed_in_silence
test_that "purged" apt purge "$package"
test_that "nothing is left" nothing_left
sum_up
