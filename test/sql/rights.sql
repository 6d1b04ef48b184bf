--
-- rights - what is found out ahead of the server's own checks: nothing.
--
-- Each statement runs with look-ahead off and on by several roles.
-- Its outcome, an error or a number of rows, has to be the same.  Look-ups by name are wrong here
-- if they are done before the server's: they fail where the server says something else first.
--
set client_min_messages = warning;
create extension if not exists pg_lookahead;
create schema la_rights;
create schema la_hidden;
set search_path = la_rights, public;
set pg_lookahead.enable_toast = on;
create role regress_la_some;
create role regress_la_columns;
create role regress_la_files in role pg_read_server_files, pg_write_server_files, pg_execute_server_program;
create role regress_la_all in role regress_la_files;
grant usage on schema la_rights to public;
grant create on schema la_rights to regress_la_all;

create table t (a int primary key, b text, c int generated always as (a + 1) stored);
alter table t alter b set storage external;
insert into t select i, repeat('x', 3000) from generate_series(1, 50) i;
create table la_hidden.t (a int primary key, b text);
create table policed (a int primary key, b text);
alter table policed enable row level security;
create policy odd on policed using (a % 2 = 1);
insert into policed select i, 'p' from generate_series(1, 10) i;
create table parted (a int primary key, b text) partition by range (a);
create table parted_1 partition of parted for values from (0) to (100);
create table parted_2 partition of parted for values from (100) to (200);
create table la_hidden.parted_3 partition of parted for values from (200) to (300);
create view v as select a, b from t;
create view simple as select a, b from t;
create function instead() returns trigger language plpgsql as 'begin return new; end';
create trigger instead instead of insert on v for each row execute function instead();
create materialized view m as select a, b from t;
create foreign data wrapper la_rights_wrapper;
create server la_rights_server foreign data wrapper la_rights_wrapper;
create foreign table f (a int, b text) server la_rights_server;
create sequence s;
create type composite as (a int);
create table referring (a int primary key references t, b text);
grant select, insert on t, policed, parted, v, simple, m, f, s, referring to regress_la_some, regress_la_all;
grant select (a), insert (a) on t, policed, parted, referring to regress_la_columns;

create function outcome(statement text) returns text language plpgsql as $$
declare n bigint; hint text; detail text; message text;
begin
    begin
        execute statement;
        get diagnostics n = row_count;
        raise exception using errcode = 'LA001';
    exception
        when sqlstate 'LA001' then return 'rows: ' || n;
        when others then
            get stacked diagnostics message = message_text, hint = pg_exception_hint, detail = pg_exception_detail;
            return concat_ws(' ', sqlstate, message, detail, hint);
    end;
end $$;

-- which modes give another outcome than stock, as this role
create function compare_as(who text, statement text, modes text[] default '{default}') returns text language plpgsql as $$
declare stock text; other text; mode text; result text = '';
begin
    perform set_config('role', who, true), set_config('pg_lookahead.enable', 'off', true);
    stock = outcome(statement);
    perform set_config('pg_lookahead.enable', 'on', true);
    foreach mode in array modes loop
        perform set_config('pg_lookahead.force', (mode = 'force')::text, true);
        other = outcome(statement);
        if other is distinct from stock then
            result = result || format('%s: %s, stock: %s; ', mode, other, stock);
        end if;
    end loop;
    perform set_config('role', 'none', true), set_config('pg_lookahead.force', 'off', true);
    return result;
end $$;

create table roles (role text);
insert into roles values ('none'), ('regress_la_some'), ('regress_la_columns'), ('regress_la_files'), ('regress_la_all');
create table named (name text);
insert into named values ('t'), ('la_rights.t'), ('t (a)'), ('t (c)'), ('t (a, a)'), ('t (no_column)'), ('t (ctid)'), ('t (b, a)'),
    ('la_hidden.t'), ('la_hidden.missing'), ('la_hidden.parted_3'), ('missing'), ('missing.t'), ('elsewhere.la_rights.t'),
    (current_database() || '.la_hidden.t'), ('pg_temp.t'), ('policed'), ('policed (a)'), ('parted'), ('parted (a)'), ('parted_1'), ('v'),
    ('simple'), ('m'), ('f'), ('s'), ('t_pkey'), ('composite'), ('referring'), ('pg_class'), ('pg_catalog.pg_authid'),
    ((select reltoastrelid::regclass::text from pg_class where oid = 't'::regclass));
create table kinds (kind text);
insert into kinds values ('to ''/dev/null'''), ('to ''relative'''), ('to program ''cat >/dev/null'''), ('from ''/dev/null'''),
    ('from ''/no/such/file'''), ('from program ''echo 1'''), ('from program ''printf "101\tb\n150\tb\n"'''), ('from program ''printf "250\tb\n"'''),
    ('from program ''echo x'''), ('from program ''echo 101'' where a > 5'), ('from program ''echo 101'' where c > 5'),
    ('from ''/dev/null'' where no_column > 5'), ('from ''/dev/null'' (freeze)'), ('to ''/dev/null'' (no_option)'), ('from ''/dev/null'' (format csv, header match)');
create table queries (statement text);
insert into queries select format('copy %s %s', name, kind) from named, kinds
    where kind !~ 'program' or name in ('t', 't (a)', 'parted', 'referring', 'la_hidden.t', 'v');
insert into queries select format('copy (%s) to ''/dev/null''', q) from (values ('select * from t'), ('select a from t'), ('select * from la_hidden.t'),
    ('select * from missing'), ('select 1/0'), ('insert into t values (1000) returning a'), ('select * from policed'), ('table parted')) q (q);
grant select on queries to public;

-- a temporary table hides another; sessions may be read-only
create temporary table simple (a int primary key, b text);
grant select, insert on simple to regress_la_some, regress_la_all;
select role, statement, left(d, 200) as d from (select role, statement, compare_as(role, statement) as d from roles, queries offset 0) c where d <> ''
    order by 1, 2 limit 40;
begin;
set transaction read only;
select role, statement, left(d, 200) as d from (select role, statement, compare_as(role, statement) as d from roles, queries where statement like 'copy t %' offset 0) c
    where d <> '' limit 40;
rollback;
-- names are looked up in the search_path of the moment
set search_path = la_hidden, la_rights, public;
select role, statement, left(d, 200) as d from (select role, statement, compare_as(role, statement) as d from roles, queries where statement like 'copy t %' offset 0) c
    where d <> '' limit 40;
set search_path = la_rights, public;
-- how many have succeeded, so that something has been compared
select role, count(*) filter (where o like 'rows%') > 20 as succeeded, count(*) filter (where o not like 'rows%') > 100 as failed
    from (select role, outcome(statement) as o from (values ('none')) r (role), queries offset 0) q group by 1;

-- ---- functions in an index or a partition key that the user may not call ----------------

create table computed (a int primary key, b int, c text) with (fillfactor = 50);
create index computed_abs on computed (abs(a));
create index computed_where on computed (b) where abs(a) > 0;
create table routed (a int, b int) partition by range (abs(a));
create table routed_1 partition of routed for values from (minvalue) to (maxvalue);
create index routed_b on routed (b);
insert into computed select i, i, repeat('c', 50) from generate_series(1, 2000) i;
create table source as select i as a, i as b from generate_series(3001, 3100) i;
vacuum analyze computed, source;
revoke execute on function abs(int) from public;
grant all on computed, routed, source to regress_la_all;
create table writes (statement text);
insert into writes values ('update computed set c = ''d'' where a < 200'), ('update computed set b = b + 1 where a < 200'),
    ('update computed set c = ''d'' where a < 0'), ('update computed set a = a where a < 100'), ('delete from computed where a < 100'),
    ('insert into computed select a, b from source'), ('insert into computed select a, b from source where a < 0'),
    ('insert into computed select a - 3000, b from source on conflict do nothing'),
    ('insert into computed select a, 1 / (a - 3001) from source'), ('insert into routed select a, b from source where a < 0'),
    ('insert into routed select a, b from source'), ('insert into routed select a, 1 / (a - 3001) from source'),
    ('copy computed from ''/dev/null'''), ('copy computed from program ''seq 4000 4010 | sed "s/$/\t1\t1/"'''),
    ('copy routed from program ''seq 4000 4010 | sed "s/$/\t1/"'''), ('copy routed from ''/dev/null''');
grant select on writes to public;
select role, statement, left(d, 200) as d from (select role, statement, compare_as(role, statement, '{default,force}') as d from (values ('none'), ('regress_la_all')) r (role), writes offset 0) c
    where d <> '';

grant execute on function abs(int) to public;

drop table pg_temp.simple;
drop schema la_rights, la_hidden cascade;
drop foreign data wrapper la_rights_wrapper cascade;
drop role regress_la_some, regress_la_columns, regress_la_all, regress_la_files;
