# shellcheck shell=bash
#
# dev/cluster.d/servers.sh - the servers of dev/cluster, and what is in them.
#
# Sourced.  Servers listen in the directory SOCKETS only, so that ports are but names: the coordinator's is
# COORDINATOR, shard I's that plus I, its standby's 100 more.  Where replies are delayed, the coordinator
# finds the shards in the directory DELAYED.
#
#   start_cluster    all servers, empty; PORTS are those of the shards
#   load_cluster     tables and rows; standbys are made after that
#   cold             all primaries started anew, and the page cache empty

COORDINATOR=5400
VOLUMES=()			# mount points

# run_on PORT [ARGUMENT...]: psql
run_on()
{
	local port=$1

	shift
	as_server "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$SOCKETS" -p "$port" postgres "$@"
}


# data_of PORT
data_of()
{
	if [ "$LATENCY" -gt 0 ] && [ "$1" -gt "$COORDINATOR" ] && [ "$1" -le $((COORDINATOR + SHARDS)) ]; then
		echo "$WORK/volume$1/data"
	else
		echo "$WORK/data$1"
	fi
}

# control PORT ACTION [ARGUMENT...]: pg_ctl
control()
{
	local data

	data=$(data_of "$1")
	logged "$data.log" as_server "$BIN/pg_ctl" -D "$data" -s -w -t 120 -l "$data/server.log" "${@:2}"
}

# all_at_once FUNCTION PORT...: side by side
all_at_once()
{
	local run=$1 port rc=0
	local -a pids=()

	shift
	for port in "$@"; do
		$run "$port" &
		pids+=($!)
	done
	for port in "${pids[@]}"; do
		wait "$port" || rc=1
	done
	return $rc
}

start_server()
{
	control "$1" start
}

restart_server()
{
	control "$1" -m fast restart
}

# settings PORT
settings()
{
	cat <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$SOCKETS'
		port = $1
		shared_preload_libraries = 'pg_lookahead'
		max_connections = 40
		fsync = off
		autovacuum = off
		jit = off
		max_parallel_workers_per_gather = 0
		track_io_timing = on
		max_wal_size = 4GB
		wal_level = replica
		max_wal_senders = 5
	CONF
}

# make_server PORT
make_server()
{
	local data

	data=$(data_of "$1")
	as_server cp -a "$WORK/template" "$data"
	settings "$1" | as_server tee -a "$data/postgresql.conf" >/dev/null
	control "$1" start
	run_on "$1" -c 'CREATE EXTENSION pg_lookahead'
}

# make_volume PORT
make_volume()
{
	VOLUMES+=("$WORK/volume$1")
	logged "$WORK/volume.log" dev/slowdisk start --at "$WORK/volume$1" --image "$WORK/image$1" \
		--size $((2 + ROWS / 1000000)) --latency-us "$LATENCY" --owner "$SERVER_USER" ||
		die "there is no volume with a latency (dev/slowdisk)"
}

# what is to be stopped when the script ends, before its directory is removed (common.sh)
stop_jobs()
{
	local one

	stop_servers "$WORK"
	for one in "$WORK"/d/*.pid; do
		[ ! -e "$one" ] || kill "$(cat "$one")" 2>/dev/null || true
	done
	for one in "${VOLUMES[@]}"; do
		"$ROOT/dev/slowdisk" stop --at "$one" --delete >/dev/null 2>&1 || true
	done
}

start_cluster()
{
	local port

	# the shell that ends is in another directory by then
	cd "$ROOT" || return
	mapfile -t PORTS < <(seq $((COORDINATOR + 1)) $((COORDINATOR + SHARDS)))
	SOCKETS=$WORK/s
	DELAYED=$SOCKETS
	as_server mkdir "$SOCKETS"
	# where SERVER_USER can read it
	cp -r dev/cluster.d "$WORK/sql"
	chmod -R u=rwX,go=rX "$WORK/sql"
	quietly "$WORK/initdb.log" as_server "$BIN/initdb" -D "$WORK/template" -A trust -N --no-locale -E UTF8 ||
		die "initdb failed: $(tail -n 3 "$WORK/initdb.log")"
	if [ "$LATENCY" -gt 0 ]; then
		for port in "${PORTS[@]}"; do
			make_volume "$port"
		done
	fi
	all_at_once make_server "$COORDINATOR" "${PORTS[@]}"
	if [ "$DELAY" -gt 0 ]; then
		DELAYED=$WORK/d
		as_server mkdir "$DELAYED"
		for port in "${PORTS[@]}"; do
			as_server python3 "$WORK/sql/delay.py" "$DELAYED/.s.PGSQL.$port" "$SOCKETS/.s.PGSQL.$port" "$DELAY" \
				"$DELAYED/$port.pid" >>"$WORK/delay.log" 2>&1 &
		done
	fi
}

# attach_shards SCHEMA DIRECTORY PORTS_ABOVE OPTIONS SETTINGS: the tables of the coordinator, over foreign servers
attach_shards()
{
	local i

	run_on "$COORDINATOR" -v schema="$1" -f "$WORK/sql/coordinator.sql"
	for ((i = 1; i <= SHARDS; i++)); do
		run_on "$COORDINATOR" -v schema="$1" -v server="${1}_$i" -v number="$i" -v remainder=$((i - 1)) -v shards="$SHARDS" \
			-v host="$2" -v port=$((COORDINATOR + $3 + i)) -v more="$4" -v settings="$5" -f "$WORK/sql/shard_of_coordinator.sql"
	done
}

load_shard()
{
	run_on "$1" -f "$WORK/sql/shard.sql"
}

finish_shard()
{
	run_on "$1" -c 'VACUUM (ANALYZE, FREEZE)' -c CHECKPOINT
}

make_standby()
{
	local standby=$(($1 + 100)) data

	data=$(data_of $standby)
	logged "$WORK/basebackup$standby.log" as_server "$BIN/pg_basebackup" -h "$SOCKETS" -p "$1" -D "$data" -R -c fast || return 1
	echo "port = $standby" | as_server tee -a "$data/postgresql.conf" >/dev/null
	control $standby start
}

load_cluster()
{
	local fast="async_capable 'true', fetch_size '1000', batch_size '100'" off="-c pg_lookahead.enable=off" on="-c pg_lookahead.enable=on"

	all_at_once load_shard "${PORTS[@]}"
	[ -z "$CHECK" ] || on+=" -c pg_lookahead.force=on -c pg_lookahead.max_distance=16"
	run_on "$COORDINATOR" -c 'CREATE EXTENSION postgres_fdw'
	attach_shards plain "$DELAYED" 0 '' "$off"
	attach_shards stock "$DELAYED" 0 ", $fast" "$off"
	attach_shards ahead "$DELAYED" 0 ", $fast" "$on"
	[ -z "$STANDBYS" ] || attach_shards standby "$SOCKETS" 100 ", $fast" "$on"
	# without delay, which is not what is measured here
	attach_shards loading "$SOCKETS" 0 ", $fast" "$off"
	run_on "$COORDINATOR" -v rows="$ROWS" -f "$WORK/sql/load.sql"
	run_on "$COORDINATOR" -c 'SET client_min_messages = warning' -c 'DROP SCHEMA loading CASCADE'
	all_at_once finish_shard "${PORTS[@]}"
	[ -z "$STANDBYS" ] || all_at_once make_standby "${PORTS[@]}"
	run_on "$COORDINATOR" -c ANALYZE
}

# cold: restarted side by side
cold()
{
	all_at_once restart_server "$COORDINATOR" "${PORTS[@]}"
	if am_root; then
		sync
		echo 3 >/proc/sys/vm/drop_caches
	fi
}

# caught_up: the standbys have what the shards have
caught_up()
{
	local port lsn

	for port in "${PORTS[@]}"; do
		lsn=$(run_on "$port" -c 'SELECT pg_current_wal_insert_lsn()')
		for _ in $(seq 300); do
			[ "$(run_on $((port + 100)) -c "SELECT pg_last_wal_replay_lsn() >= '$lsn'")" != t ] || continue 2
			sleep 0.1
		done
		return 1
	done
}
