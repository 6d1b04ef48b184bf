--
-- small_writes - which writes of a few hundred rows look ahead, and why others do not.
--
-- Each statement writes to a table that is made for it, without look-ahead, with it, forced, and as
-- on slow storage.  "same": rows, their order and the error; of a column u, which is random, only
-- the number of different values is compared, and nothing of a column ts, which is of the clock.
-- "ahead": rows were looked ahead over.  Then come the reasons why not.
--
\set ECHO none
set client_min_messages = warning;
create extension if not exists pg_lookahead;
drop schema if exists la_small cascade;
create schema la_small;
set search_path = la_small, public;
set synchronous_commit = off;
set compute_query_id = on;
create type mood as enum ('sad', 'ok', 'happy');
create domain positive as int check (value > 0);
create sequence seq;
create function drawn() returns bigint language plpgsql as $$ begin return nextval('la_small.seq'); end $$;
create function trg() returns trigger language plpgsql as $$ begin return new; end $$;
create table ref (id int primary key);
insert into ref select generate_series(0, 99);
create table src as select i, (i * 7919) % 1009 as k from generate_series(1, 300) i;
analyze src;

create function outcome(ddl text, statement text, ahead text[], out result text) language plpgsql as $$
declare s text;
begin
    begin
        perform setval('seq', 1);
        set local pg_lookahead.enable = off;
        execute ddl;
        execute 'create index on t (k)';
        execute 'insert into t (id, k) select i, i * 3 from generate_series(1, 500) i';
        set local pg_lookahead.attach_threshold = 0;
        set local pg_lookahead.cache_prefetch_threshold = 0;
        foreach s in array ahead loop
            execute 'set local ' || s;
        end loop;
        begin
            execute statement;
        exception when others then
            result := sqlstate || ' ' || sqlerrm;
        end;
        set local pg_lookahead.enable = off;
        result := coalesce(result, '') || (select format('%s %s %s', count(*), count(distinct u),
            string_agg(r::text, '' order by place)) from (select to_jsonb(t) - '{u,ts}'::text[] r, to_jsonb(t) -> 'u' u,
            (t.tableoid, t.ctid) place from t) r) || (select last_value from seq);
        raise exception using errcode = 'LA001';
    exception when sqlstate 'LA001' then
        null;
    end;
end $$;

create function activated() returns bigint language sql as
    $$ select scans_activated from pg_stat_lookahead where kind = 'index insert' $$;

create function shape(ddl text, statement text, out same bool, out ahead bool, out why text) language plpgsql as $$
declare stock text; way text[]; before bigint; now bigint;
begin
    perform pg_stat_lookahead_reset();
    stock := outcome(ddl, statement, array['pg_lookahead.enable = off']);
    same := true;
    ahead := true;
    foreach way slice 1 in array array[
        array['pg_lookahead.enable = on', 'pg_lookahead.force = off', 'pg_lookahead.scan_memory = 512'],
        array['pg_lookahead.enable = on', 'pg_lookahead.force = on', 'pg_lookahead.scan_memory = 512'],
        array['pg_lookahead.enable = on', 'pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0']] loop
        before := activated();
        same := same and outcome(ddl, statement, way) is not distinct from stock;
        now := activated();
        if way[2] = 'pg_lookahead.force = on' then
            ahead := now > before;
        end if;
    end loop;
    select string_agg(distinct r, '; ') into why
        from pg_stat_lookahead_statements l, unnest(l.reasons) r, pg_database d
        where d.oid = l.dbid and d.datname = current_database();
end $$;

-- a table with a column of the kind
create function with_column(text) returns text language sql as
    $$ select 'create table t (id bigint primary key, k int, ' || $1 || ')' $$;
create function partitioned(text, text default '') returns text language sql as $$
    select 'create table t (id bigint, k int, u uuid default gen_random_uuid(), ' || $1 || ' primary key (id, k)) partition by range (k);
        create table t_1 partition of t for values from (minvalue) to (500);
        create table t_2 partition of t for values from (500) to (maxvalue);' || $2 $$;
create function keys() returns text language sql stable as $$ select quote_literal(array_agg(i + 1000 order by i)) || '::bigint[]' from src $$;
create function numbers() returns text language sql stable as $$ select quote_literal(array_agg(k order by i)) || '::int[]' from src $$;
create function rows(int, first int default 1001) returns text language sql stable as
    $$ select 'values ' || string_agg(format('(%s, %s)', first + i, (i * 7919) % 1009), ', ' order by i) from generate_series(0, $1 - 1) i $$;
create function json_rows() returns text language sql stable as
    $$ select quote_literal(json_agg(json_build_object('id', i + 1000, 'k', k) order by i)) from src $$;
select 'insert into t (id, k) select * from unnest(' || keys() || ', ' || numbers() || ')' as "unnest" \gset
select current_setting('server_version_num')::int >= 180000 as has18, current_setting('server_version_num')::int >= 170000 as has17 \gset
\pset format unaligned
\pset tuples_only
\pset null ''
-- 1. sources of rows
select * from shape(with_column('s text'), :'unnest');
select * from shape(with_column('s text'), 'insert into t (id, k) ' || rows(100));
select * from shape(with_column('s text'), 'insert into t (id, k) ' || rows(1000));
select * from shape(with_column('s text'), 'insert into t (id, k) ' || rows(100, 450) || ' on conflict do nothing');
select * from shape(with_column('s text'), 'insert into t (id, k) ' || rows(100, 450) || ' on conflict (id) do update set k = excluded.k');
select * from shape(with_column('s text'), 'insert into t (id, k) ' || rows(100) || ' returning id');
select * from shape(with_column('s text'), 'insert into t (id, k) select unnest(' || keys() || '), unnest(' || numbers() || ')');
select * from shape(with_column('s text'), 'insert into t (id, k) select id, k from json_to_recordset(' || json_rows() || ') x (id bigint, k int)');
select * from shape(with_column('s text'), 'insert into t (id, k) select id, k from jsonb_to_recordset(' || json_rows() || ') x (id bigint, k int)');
select * from shape(with_column('s text'), 'insert into t (id, k) select id, k from json_populate_recordset(null::t, ' || json_rows() || ')');
select * from shape(with_column('s text'), 'insert into t (id, k) select (e ->> ''id'')::bigint, (e ->> ''k'')::int from jsonb_array_elements(' || json_rows() || ') e');
select * from shape(with_column('s text'), 'insert into t (id, k) select 1000 + o, s::int from regexp_split_to_table(''' || repeat('7,', 200) || '8'', '','') with ordinality x (s, o)');
select * from shape(with_column('s text'), 'insert into t (id, k) select 1000 + i, i % 77 from generate_series(1, 300) i');
\if :has17
select * from shape(with_column('s text'), 'insert into t (id, k) select id, k from json_table(' || json_rows() || '::jsonb, ''$[*]'' columns (id bigint path ''$.id'', k int path ''$.k'')) j');
select * from shape(with_column('s text'), 'insert into t (id, k) select j.id, j.k from (select jsonb_build_array(jsonb_build_object(''id'', i + 1000, ''k'', k)) a from src) x, json_table(a, ''$[*]'' columns (id bigint path ''$.id'', k int path ''$.k'')) j');
\else
\echo 't|t|'
\echo 't|f|a node is of a kind that is not known'
\endif
select * from shape(with_column('s text'), 'update t set k = v.b from (' || rows(100, 1) || ') v (a, b) where t.id = v.a');
select * from shape(with_column('s text'), 'update t set k = v.b from unnest(' || numbers() || ', ' || numbers() || ') v (a, b) where t.id = v.a');
select * from shape(with_column('s text'), 'merge into t using unnest(' || numbers() || ', ' || numbers() || ') v (a, b) on t.id = v.a when matched then update set k = v.b when not matched then insert (id, k) values (v.a, v.b)');
select * from shape(with_column('s text'), 'merge into t using (' || rows(100, 450) || ') v (a, b) on t.id = v.a when matched then update set k = v.b when not matched then insert (id, k) values (v.a, v.b)');
-- 2. defaults and kinds of columns
select s.* from unnest(array['u uuid default gen_random_uuid() unique', 'n bigserial', 'n int generated always as identity',
    'n int generated by default as identity unique', 'd timestamptz default now()', 'd timestamptz default current_timestamp, e date default current_date',
    'd timestamptz default statement_timestamp()', 'u float8 default random()', 'u text default md5(random()::text)', 'c text default current_setting(''la.none'', true)',
    'ts timestamptz default clock_timestamp()', 'n bigint default drawn()', 'g int generated always as (k * 2) stored', 's text check (length(s) < 9), check (k >= 0)',
    's text not null default ''x''', 'd positive default 7', 'm mood default ''ok''', 'r int default 5 references ref', 'j jsonb default ''{}'', a text[] default ''{}''']) with ordinality x (c, o), shape(with_column(c), :'unnest') s order by o;
\if :has18
select * from shape(with_column('u uuid default uuidv7() unique'), :'unnest');
select * from shape(with_column('u uuid default uuidv7(interval ''1 day'')'), :'unnest');
select * from shape(with_column('g int generated always as (k * 2) virtual, u uuid default uuidv4()'), :'unnest');
\else
\echo 't|t|'
\echo 't|f|a function is volatile'
\echo 't|t|'
\endif
-- 3. exclusion constraints and triggers beside values that are drawn
select * from shape(with_column('n bigserial, b int4range, exclude using gist (b with &&)'), 'insert into t (id, k, b) select i + 1000, k, int4range(i, i + 1) from src');
select * from shape(with_column('n bigserial, b int4range, exclude using gist (b with &&)'), 'insert into t (id, k, b) select i + 1000, k, int4range(i, i + case i when 200 then 2 else 1 end) from src');
select * from shape(with_column('n bigserial') || '; create trigger b before insert on t for each row execute function trg()', :'unnest');
select * from shape(with_column('n bigserial') || '; create trigger b before update or delete on t for each row execute function trg()', :'unnest');
select * from shape(with_column('n bigserial') || '; create trigger b before update on t for each row execute function trg()', :'unnest' || ' on conflict (id) do update set k = 1');
select * from shape(with_column('n bigserial') || '; create trigger b before insert on t for each row execute function trg()', 'update t set n = nextval(''seq''), k = k + 1');
select * from shape(with_column('n bigserial') || '; create trigger b after insert on t for each row execute function trg()', :'unnest');
-- 4. partitions beside values that are drawn, or a setting
select * from shape(partitioned(''), :'unnest');
select * from shape(partitioned('n bigserial,'), :'unnest');
select * from shape(partitioned('n bigserial,'), :'unnest' || ' on conflict do nothing returning n');
select * from shape(partitioned('n bigserial,'), :'unnest' || ' on conflict (id, k) do update set n = -1');
select * from shape(partitioned('c text default current_setting(''la.none'', true),'), :'unnest');
select * from shape(partitioned('n bigserial,', 'create trigger b before insert on t_2 for each row execute function trg();'), :'unnest');
select * from shape(partitioned('n bigserial,', 'create trigger b before insert on t for each row execute function trg();'), :'unnest');
select * from shape(partitioned('n bigserial,'), 'insert into t_1 (id, k) select i + 1000, k % 500 from src');
select * from shape(partitioned('n bigserial,'), 'insert into t_1 (id, k) select i + 1000, case i when 200 then 700 else k % 500 end from src');
select * from shape(partitioned('n bigserial,'), 'insert into t (id, k) select i + 1000, case i when 200 then 1 / (i - 200) else k end from src');
select * from shape('create table t (n bigserial, id bigint, k int, primary key (id, k)) partition by range (k); create table t_1 partition of t for values from (0) to (500); create table t_d partition of t default', :'unnest');
select s.* from (select string_agg(format('create table t_%s partition of t for values with (modulus 8, remainder %s);', i, i), ' ') d from generate_series(0, 7) i) x,
    shape('create table t (n bigserial, id bigint, k int, primary key (id, k)) partition by hash (k); ' || d, :'unnest') s;
select * from shape(partitioned('n bigserial,'), 'update t set k = k + 1, n = nextval(''seq'')');
-- a trigger of the partition that reads what the plan draws
create function last_drawn() returns trigger language plpgsql as $$ begin new.n := currval('la_small.seq'); return new; end $$;
select * from shape(partitioned('n bigint default nextval(''seq''),', 'create trigger b before insert on t_2 for each row execute function last_drawn();'), :'unnest');
-- 5. writes in a CTE
select * from shape(with_column('n bigserial'), 'with x as (' || :'unnest' || ' returning id) select count(*) from x');
select * from shape(with_column('n bigint default nextval(''seq'')'), 'create table seen as with x as (' || :'unnest' || ' returning id, n) select x.id, x.n from x');
select * from shape(with_column('n bigint default nextval(''seq'')'), 'do $d$ declare r record; begin for r in with x as (' || :'unnest' || ' returning id, n) select x.n, (select last_value from la_small.seq where x.id > 0) l from x loop if r.n <> r.l then raise exception ''% %'', r.n, r.l; end if; end loop; end $d$');
select * from shape(with_column('n bigint default nextval(''seq'')'), 'with x as (' || :'unnest' || ' returning id), y as (insert into src select nextval(''seq''), 1 from x returning 1) select 1');
select * from shape(with_column('s text'), 'with s (i, k) as (' || rows(100, 450) || '), x as (insert into t (id, k) select i, k from s on conflict do nothing returning id) select id from x union all select t.id from s join t on t.id = s.i');
select * from shape(with_column('s text'), 'with s as materialized (select i + 1000 as i, 100 / (i - 200) as k from src), x as (insert into t (id, k) select i, k from s returning id) select count(*) from x, s where s.i = x.id');
-- 6. row-level security
create role la_small_user;
grant all on schema la_small to la_small_user;
grant all on all tables in schema la_small to la_small_user;
grant all on all sequences in schema la_small to la_small_user;
select * from shape(with_column('u uuid default gen_random_uuid(), o text default current_user') || '; alter table t enable row level security; alter table t force row level security; create policy a on t using (o = current_user); alter table t owner to la_small_user; set local role la_small_user', :'unnest');
drop owned by la_small_user;
drop role la_small_user;
drop schema la_small cascade;
