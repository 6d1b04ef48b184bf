--
-- privileges - what a user without rights can do with the extension, search_path, limits of settings.
--
-- All objects and settings are taken from the catalogs, so that a new one cannot be forgotten: it
-- changes the expected output, or fails one of the conditions that hold for all.
--
\set VERBOSITY terse
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_privileges;
set search_path = la_privileges, public;
create role regress_la_nobody;
grant usage on schema la_privileges to regress_la_nobody;

create view functions as
    select p.oid::regprocedure::text as signature, p.*, l.lanname
    from pg_depend d join pg_proc p on p.oid = d.objid join pg_language l on l.oid = p.prolang
    where d.classid = 'pg_proc'::regclass and d.deptype = 'e' and
        d.refobjid = (select oid from pg_extension where extname = 'pg_lookahead');
create view relations as
    select c.* from pg_depend d join pg_class c on c.oid = d.objid
    where d.classid = 'pg_class'::regclass and d.deptype = 'e' and
        d.refobjid = (select oid from pg_extension where extname = 'pg_lookahead');
grant select on functions, relations to regress_la_nobody;

-- ---- what there is -------------------------------------------------------------

select signature, has_function_privilege('regress_la_nobody', oid, 'execute') as public, prosecdef as definer, lanname
    from functions order by signature collate "C";
-- everybody may look at all, and change nothing
select relname, relkind from relations where relkind <> 'i' and
    not has_table_privilege('regress_la_nobody', oid, 'select');
select relname, p from relations, unnest(array['insert', 'update', 'delete', 'truncate', 'references', 'trigger']) p
    where relkind <> 'i' and has_table_privilege('regress_la_nobody', oid, p);
select relname, p from relations, unnest(array['insert', 'update', 'references']) p
    where relkind <> 'i' and has_any_column_privilege('regress_la_nobody', oid, p);
-- names of others cannot be in the way of what is written in SQL (that one is a list of constants)
select signature from functions where lanname not in ('c', 'internal') and prosqlbody is null and
    not coalesce(array_to_string(proconfig, ' ') ~ '^search_path=pg_catalog, pg_temp', false);
-- what has its owner's rights is not for everybody
select signature from functions where prosecdef and has_function_privilege('regress_la_nobody', oid, 'execute');

-- ---- all functions, called with all kinds of values -----------------------------

-- for each type of an argument, something small, something wrong, and something large
create table samples (type regtype primary key, v text[]);
insert into samples values
    ('bigint', '{0,-9223372036854775808,9223372036854775807}'), ('integer', '{0,-2147483648,2147483647}'),
    ('oid', '{0,4294967295,1663}'), ('text', array['', 'x;)''"%s\', 'select 1; select 2']),
    ('name', '{"",no_such,pg_default}'), ('double precision', '{0,-Infinity,NaN}'), ('boolean', '{f,t,t}'),
    ('interval', '{0,-1 year,178000000 years}'), ('timestamptz', '{-infinity,infinity,now}'),
    ('double precision[]', array['{}', '{NaN,Infinity,-1,NULL}', '{{1,2},{3,4}}']),
    ('integer[]', array['{}', '{-2147483648,0,NULL}', '[5:6]={1,2}']), ('text[]', array['{}', '{NULL,""}', '{{a,b}}']),
    ('jsonb', array['{}', '{"a": [null, 1e300, {}], "figures": 1}', '[]']);
select signature, format_type(t, null) as no_sample from functions, unnest(proargtypes::oid[]) t
    where t not in (select type from samples);
-- what a call has as its arguments: nulls, or the samples of that number
create function arguments(types oid[], kind int) returns text language sql as $$
    select coalesce(string_agg(format('%s::%s', quote_nullable((select v[kind] from samples where type = t.type)), format_type(t.type, null)), ', ' order by n), '')
    from unnest(types) with ordinality t(type, n)
$$;
create table calls as
    select signature, format('select count(*) from (select * from %s(%s) limit 50) s', oid::regproc, arguments(proargtypes::oid[], kind)) as statement
    from functions, generate_series(0, case when pronargs = 0 then 0 else 3 end) kind;
create function outcome(statement text) returns text language plpgsql as $$
begin
    execute statement;
    return 'done';
exception when others then
    return sqlstate;
end $$;
grant select on calls to regress_la_nobody;

set role regress_la_nobody;
select signature, outcome, count(*) from (select signature, outcome(statement) as outcome from calls offset 0) s
    where outcome <> 'done' group by 1, 2 order by signature collate "C", 2;
select relname, outcome from (select relname, outcome(format('select count(*) from (select * from %s limit 50) s', oid::regclass)) as outcome
    from relations where relkind in ('r', 'v') offset 0) s where outcome <> 'done';
reset role;
-- a superuser; what measures, or removes what has been measured, has tests of its own
select signature, outcome, count(*) from (select signature, outcome(statement) as outcome from calls
    where signature !~ 'calibrat|measure|reset|forget|claim' offset 0) s
    where outcome <> 'done' group by 1, 2 order by signature collate "C", 2;

-- ---- a schema in front of pg_catalog ---------------------------------------------

-- Functions and operators of pg_catalog are there, too, as ones that fail.
create schema la_trap;
do $$
declare f record;
begin
    for f in select proname, format_type(prorettype, null) as result, (select string_agg(format_type(t, null), ', ' order by n)
            from unnest(proargtypes::oid[]) with ordinality a(t, n)) as args
        from pg_proc where pronamespace = 'pg_catalog'::regnamespace and prokind = 'f' and pronargs between 1 and 3 and not proretset and
            proname ~ '^[a-z_0-9]+$' and not exists (select from pg_type where (oid = prorettype or oid = any (proargtypes::oid[])) and typtype = 'p')
    loop
        execute format('create function la_trap.%I(%s) returns %s language plpgsql as ''begin raise assert_failure; end''', f.proname, f.args, f.result);
    end loop;
    for f in select oprname, oprleft::regtype as lefttype, oprright::regtype as righttype, p.proname
        from pg_operator o join pg_proc p on p.oid = oprcode
            join pg_proc t on t.pronamespace = 'la_trap'::regnamespace and t.proname = p.proname and t.proargtypes = p.proargtypes
        where oprleft <> 0
    loop
        execute format('create operator la_trap.%s (function = la_trap.%I, leftarg = %s, rightarg = %s)', f.oprname, f.proname, f.lefttype, f.righttype);
    end loop;
end $$;
select count(*) > 1000 as functions from pg_proc where pronamespace = 'la_trap'::regnamespace;
select count(*) > 300 as operators from pg_operator where oprnamespace = 'la_trap'::regnamespace;
create function trapped(statement text) returns text language plpgsql as $$
begin
    execute statement;
    return null;
exception when assert_failure then
    return 'trapped';
    when others then
    return null;
end $$;
create table attacks as
    select replace(replace(replace(statement, 'select count(*) from (', ''), ' limit 50) s', ''), 'from pg_', 'from public.pg_') as statement
        from calls where signature !~ 'calibrate\(|measure|claim'
    union select format('select * from public.%I', relname) from relations where relkind in ('r', 'v')
    union select 'select lower(''A'')';
create function attack(statement text) returns text language plpgsql as $$
declare result text;
begin
    perform set_config('search_path', 'la_trap, pg_catalog, la_privileges', true);
    result := la_privileges.trapped(statement);
    set local search_path = la_privileges, public;
    return result;
end $$;
-- the trap works, and nothing else falls into it
select statement, result from (select statement, attack(statement) as result from attacks offset 0) s where result is not null;
set client_min_messages = error;
drop schema la_trap cascade;
set client_min_messages = warning;

-- ---- settings ----------------------------------------------------------------------

create table t as select i as id, (i * 7919) % 5000 as a, repeat('w', 300) as w from generate_series(0, 4999) i;
create index t_a on t (a);
create index t_id on t (id);
analyze t;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_mergejoin = off;
set max_parallel_workers_per_gather = 0;
-- reads and writes, of which nothing is left
create function answer() returns text language plpgsql as $$
declare r text; s text;
begin
    select string_agg(a || w, ',') into r from (select a, w from t where a > 100 order by a limit 300) s;
    select count(*) || ' ' || sum(x.a + y.id) into s from t x join t y on x.a = y.id and x.id < 500;
    r := r || s;
    set local enable_hashjoin = off;
    select count(*) || ' ' || sum(x.a + y.id) into s from t x join t y on x.a = y.id and x.id < 500;
    r := r || s;
    update t set w = 'v' where a < 100;
    insert into t select -i, -i, 'new' from generate_series(1, 200) i;
    create index later on t (a, id);
    select count(*) || ' ' || sum(id) into s from (select * from t where a < 50 order by a, id offset 0) s;
    raise exception using message = md5(r || s);
exception when raise_exception then
    return sqlerrm;
end $$;
create view ours as select * from pg_settings where name like 'pg\_lookahead.%';
set pg_lookahead.enable = off;
select answer() as expected \gset
reset pg_lookahead.enable;
create function try(setting text, value text) returns text language plpgsql as $$
begin
    perform set_config(setting, value, true);
    return 'taken';
exception when others then
    return sqlstate;
end $$;
create function try_and_answer(setting text, value text) returns text language plpgsql as $$
declare result text;
begin
    perform set_config(setting, value, true);
    result := answer();
    raise exception using message = result;
exception when raise_exception then
    return sqlerrm;
end $$;
-- each, at the ends of what it may be
create table ends as
    select name, unnest(case when vartype = 'bool' then array['on', 'off'] when vartype = 'enum' then enumvals else array[min_val, max_val] end) as value
    from ours where context in ('user', 'superuser') and vartype <> 'string';
select count(*) > 30 as settings from ends;
set pg_lookahead.force = on;
select name, value from ends where try_and_answer(name, value) <> :'expected';
reset pg_lookahead.force;
-- all at one end, and all at the other
begin;
select bool_and(try(name, min_val) = 'taken') as taken from ours where context in ('user', 'superuser') and min_val is not null;
set local pg_lookahead.force = on;
select answer() = :'expected' as same;
rollback;
begin;
select bool_and(try(name, max_val) = 'taken') as taken from ours where context in ('user', 'superuser') and max_val is not null;
set local pg_lookahead.force = on;
select answer() = :'expected' as same;
rollback;
-- and beyond
select name, v as taken from ours, unnest(array[(min_val::numeric - 1)::text, (max_val::numeric + 1)::text, '1e30', '-1e30', 'NaN', '', 'x', '0x', '1 parsec',
    '99999999999999999999', chr(1)]) v
    where context in ('user', 'superuser') and vartype in ('integer', 'real') and try(name, v) <> '22023';
select name, v as taken from ours, unnest(array['', 'x', '2', '-1', 'onn', 'tru e']) v
    where vartype in ('bool', 'enum') and context in ('user', 'superuser') and try(name, v) <> '22023';
-- what a user may not set
create table refused as select name, reset_val, context from ours where context <> 'user';
grant select on refused to regress_la_nobody;
set role regress_la_nobody;
select name, context, try(name, reset_val) from refused order by name collate "C";
reset role;

set client_min_messages = error;
drop schema la_privileges cascade;
drop role regress_la_nobody;
