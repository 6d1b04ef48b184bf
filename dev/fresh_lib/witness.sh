#!/bin/bash
#
# dev/fresh_lib/witness.sh - is a server that runs on the machine as it was after a command?
#
#   witness.sh COMMAND...      as root, on a machine with postgresql-15
#
# Starts a cluster of the machine's PostgreSQL, runs the command, and compares: the packages that
# were installed, the files of PostgreSQL and of the cluster's configuration, the postmaster, and
# what the server answers.  What differs is printed.  The code is the command's, or 1.

set -uo pipefail

VERSION=15
DATA=/var/lib/postgresql/$VERSION/main

query()
{
	runuser -u postgres -- psql -XAtqc "$1" 2>&1
}

# packages: whatever is installed, in which version
packages()
{
	dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' | grep '^ii' | sort
}

# server: files, with the time at which each was written or renamed; processes; answers
server()
{
	find /usr/lib/postgresql /usr/share/postgresql /usr/include/postgresql /etc/postgresql \
		-printf '%p %s %C@\n' 2>/dev/null | sort
	pg_lsclusters -h
	head -n 3 "$DATA/postmaster.pid"
	query "select pg_postmaster_start_time(), version(), system_identifier from pg_control_system()"
	query "select datname from pg_database order by 1"
	find "$DATA" -maxdepth 1 -name 'postgresql*conf' -printf '%p %s %C@\n'
}

cd /tmp || exit
here=$OLDPWD
pg_lsclusters -h | grep -q . || pg_createcluster "$VERSION" main >/dev/null || exit
# no port: other servers of the machine outside may have it
mkdir -p "/etc/postgresql/$VERSION/main/conf.d"
echo "listen_addresses = ''" >"/etc/postgresql/$VERSION/main/conf.d/port.conf"
pg_ctlcluster "$VERSION" main start || exit
packages >/tmp/packages.before
server >/tmp/server.before

(cd "$here" && "$@")
rc=$?

packages >/tmp/packages.after
server >/tmp/server.after
changed=$(comm -23 /tmp/packages.before /tmp/packages.after)
added=$(comm -13 /tmp/packages.before /tmp/packages.after | grep -E ' (postgresql|libpq)')
if [ -n "$changed$added" ]; then
	printf '%s\n' "these packages have changed:" "$changed" "$added"
	rc=1
fi
diff /tmp/server.before /tmp/server.after || {
	echo "the server has changed"
	rc=1
}
pg_ctlcluster "$VERSION" main stop -m immediate
exit $rc
