--
-- settings - names, defaults, limits and privileges of pg_lookahead's settings.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
reset client_min_messages;

show pg_lookahead.enable;
show pg_lookahead.enable_index_scan;
show pg_lookahead.force;
show pg_lookahead.explain;
show pg_lookahead.attach_threshold;
show pg_lookahead.max_distance;
show pg_lookahead.miss_threshold;
show pg_lookahead.min_read_time;
show pg_lookahead.cache_prefetch_threshold;
show pg_lookahead.max_leaf_pages;

-- what writes permanent pages is off unless it is asked for
select name, boot_val from pg_settings where name like 'pg\_lookahead.enable%' order by name collate "C";

-- every setting is described, and any user may change it, but for those that trust code with more
select name, context, vartype, setting = reset_val as default, short_desc ~ '^(Enables|Forces|Includes|Sets) ' as described
    from pg_settings where name in ('pg_lookahead.enable', 'pg_lookahead.enable_index_scan',
        'pg_lookahead.force', 'pg_lookahead.explain', 'pg_lookahead.attach_threshold',
        'pg_lookahead.max_distance',
        'pg_lookahead.miss_threshold', 'pg_lookahead.min_read_time',
        'pg_lookahead.cache_prefetch_threshold', 'pg_lookahead.max_leaf_pages')
    order by name collate "C";
select name from pg_settings where name like 'pg\_lookahead.%' and
    (context <> 'user' or short_desc is null or short_desc !~ '\.$') order by name collate "C";

-- limits
set pg_lookahead.max_distance = 1;
set pg_lookahead.max_distance = 1024;
set pg_lookahead.max_distance = 0;
set pg_lookahead.max_distance = 1025;
show pg_lookahead.max_distance;
reset pg_lookahead.max_distance;
set pg_lookahead.tablespace_max_in_flight = 1;
set pg_lookahead.tablespace_max_in_flight = 65536;
set pg_lookahead.tablespace_max_in_flight = -1;
set pg_lookahead.tablespace_max_in_flight = 65537;
show pg_lookahead.tablespace_max_in_flight;
reset pg_lookahead.tablespace_max_in_flight;
show pg_lookahead.tablespace_max_in_flight;
set pg_lookahead.max_leaf_pages = 2;
set pg_lookahead.max_leaf_pages = 256;
set pg_lookahead.max_leaf_pages = 1;
set pg_lookahead.max_leaf_pages = 257;
reset pg_lookahead.max_leaf_pages;
set pg_lookahead.miss_threshold = 0;
set pg_lookahead.miss_threshold = -1;
reset pg_lookahead.miss_threshold;
set pg_lookahead.attach_threshold = 0;
set pg_lookahead.attach_threshold = -1;
set pg_lookahead.attach_threshold = 1001;
reset pg_lookahead.attach_threshold;
set pg_lookahead.cache_prefetch_threshold = -1;
reset pg_lookahead.cache_prefetch_threshold;
set pg_lookahead.enable = perhaps;
set pg_lookahead.force = 2;
set pg_lookahead.max_distance = many;
set pg_lookahead.max_distance = '64kB';

-- lists of access methods: a name that does not exist here is accepted, but not silently
set pg_lookahead.excluded_access_methods = 'hash, "gist", SPGIST';
set pg_lookahead.excluded_access_methods = 'hash, hnws, heap';
show pg_lookahead.excluded_access_methods;
set pg_lookahead.additional_access_methods = 'no_such_method';
set pg_lookahead.excluded_access_methods = 'hash,,gist';
set pg_lookahead.excluded_access_methods = '"hash';
set pg_lookahead.excluded_access_methods = '';
set pg_lookahead.excluded_access_methods = '   ';
set pg_lookahead.excluded_access_methods = a, b, c;
show pg_lookahead.excluded_access_methods;
begin;
set local pg_lookahead.excluded_access_methods = 'hash';
savepoint a;
set local pg_lookahead.excluded_access_methods = 'gist';
rollback to a;
show pg_lookahead.excluded_access_methods;
rollback;
show pg_lookahead.excluded_access_methods;
reset pg_lookahead.excluded_access_methods;
reset pg_lookahead.additional_access_methods;
create function la_excludes() returns text language sql
    set pg_lookahead.excluded_access_methods = 'missing' as $$ select current_setting('pg_lookahead.excluded_access_methods') $$;
select la_excludes(), current_setting('pg_lookahead.excluded_access_methods');
drop function la_excludes();

-- times have units
set pg_lookahead.min_read_time = '100us';
show pg_lookahead.min_read_time;
set pg_lookahead.min_read_time = '2ms';
show pg_lookahead.min_read_time;
set pg_lookahead.min_read_time = '3 parsecs';
reset pg_lookahead.min_read_time;
show pg_lookahead.min_read_time;

-- a misspelt name is an error, not a placeholder
set pg_lookahead.enabled = on;
set pg_lookahead.xyz = 1;
select set_config('pg_lookahead.max_distanze', '3', false);

-- by transaction, function, role and database
begin;
set local pg_lookahead.max_distance = 5;
show pg_lookahead.max_distance;
rollback;
show pg_lookahead.max_distance;
create function la_distance() returns text language sql
    set pg_lookahead.max_distance = 7 as $$ select current_setting('pg_lookahead.max_distance') $$;
select la_distance(), current_setting('pg_lookahead.max_distance');
drop function la_distance();
create role regress_la_user;
alter role regress_la_user set pg_lookahead.enable = off;
alter role regress_la_user set pg_lookahead.max_distance = 0;
set role regress_la_user;
set pg_lookahead.max_distance = 9;
set pg_lookahead.force = on;
show pg_lookahead.max_distance;
set pg_lookahead.tablespace_max_in_flight = 0;
set pg_lookahead.enable_index_build = on;
set pg_lookahead.enable_btree_insert = on;
set pg_lookahead.additional_access_methods = '';
reset role;
drop role regress_la_user;

-- force does not outlive enable
set pg_lookahead.force = on;
create table la_settings as select i as a from generate_series(1, 5000) i;
create index on la_settings (a);
set enable_seqscan = off;
set enable_bitmapscan = off;
create function la_activated() returns bool language plpgsql as $$
declare n bigint := (select sum(scans_activated) from pg_stat_lookahead); dummy record;
begin
    for dummy in select * from la_settings where a > 10 loop end loop;
    return (select sum(scans_activated) from pg_stat_lookahead) > n;
end $$;
select la_activated() as activated;
set pg_lookahead.enable = off;
select la_activated() as activated;
set pg_lookahead.enable = on;
set pg_lookahead.enable_index_scan = off;
select la_activated() as activated;
reset pg_lookahead.enable_index_scan;
select la_activated() as activated;
drop function la_activated();
drop table la_settings;
