--
-- gin_insert - inserts into GIN indexes.
--
-- The same statements are executed in stock, forced, and as on slow storage, each on a table of its
-- own.  Then each key of the tables is looked up in the indexes.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_gin_insert
\i :helper

create function la_gin_insert.words(i int) returns tsvector language sql immutable as
    $$select array_to_tsvector(array_agg('w' || abs(hashint4(i * 20 + k) % 3000))) from generate_series(1, 12) k$$;
create function la_gin_insert.doc(i int) returns jsonb language sql immutable as
    $$select jsonb_build_object('a', abs(hashint4(i) % 500), 'b', jsonb_build_array(i % 10, i % 77, null), 'c', i)$$;

create table la_gin_insert.source as
    select i as id, words(i) as v, doc(i) as j, array[i % 10, i % 1013, null, i] as a from generate_series(1, 3000) i;

-- everything that writes, by one way of looking ahead
create procedure pg_temp.write(name text, a pg_temp.ahead) language plpgsql as $$
begin
    perform pg_temp.set_ahead(a);
    execute format('create table %I (id int primary key, v tsvector, j jsonb, a int[])', name);
    execute format('create index on %I using gin (v) with (fastupdate = off)', name);
    execute format('create index on %I using gin (a, v) with (fastupdate = off)', name);
    execute format('create index on %I using gin (j jsonb_path_ops) with (gin_pending_list_limit = 64)', name);
    execute format('create index on %I using gin (j, a) with (gin_pending_list_limit = 64) where id %% 3 > 0', name);
    execute format('insert into %I select * from source where id <= 2000', name);
    for i in 2001 .. 2100 loop
        execute format('insert into %I select * from source where id = $1', name) using i;
    end loop;
    execute format($i$insert into %I values (0, null, null, null), (-1, '', '{}', '{}'), (-2, 'w1 w2', '[1, null]', '{null}')$i$, name);
    execute format('update %I set a = a || 5000 where id %% 7 = 0', name);
    execute format('update %I set v = v || words(id + 1) where id = 55', name);
    execute format('insert into %I select id, v, j, a from source where id between 2050 and 2200
        on conflict (id) do update set j = excluded.j || $j${"x": 1}$j$', name);
    execute format('merge into %I t using (select * from source where id between 2190 and 2400) s on s.id = t.id
        when matched then update set a = s.a || 6000 when not matched then insert values (s.id, s.v, s.j, s.a)', name);
    begin
        execute format('insert into %I select id, v, j, a from source where id >= 2390 order by id desc', name);
    exception when unique_violation then
        raise notice 'unique violation';
    end;
    execute format('delete from %I where id %% 11 = 0', name);
    perform gin_clean_pending_list(c.oid) from pg_class c, pg_index i
        where i.indexrelid = c.oid and i.indrelid = name::regclass and c.relam = 2742 order by c.oid;
    perform set_config('pg_lookahead.enable', 'off', true);
end $$;

-- what the indexes find: rows for each key
create function la_gin_insert.found(name text) returns table (kind text, keys bigint, rows numeric, checksum text) language plpgsql as $$
begin
    set local enable_seqscan = off;
    set local enable_indexscan = off;
    return query execute format($q$
        select 'words', count(*), sum(n), md5(string_agg(k || n || s, ',' order by k))
            from (select 'w' || k as k from generate_series(0, 2999) k) k,
                 lateral (select count(*) as n, coalesce(sum(id), 0) as s from %1$I where v @@ k::tsquery) l
        union all
        select 'arrays', count(*), sum(n), md5(string_agg(k::text || n || s, ',' order by k))
            from generate_series(-1, 6001) k, lateral (select count(*) as n, coalesce(sum(id), 0) as s from %1$I where a @> array[k]) l
        union all
        select 'paths', count(*), sum(n), md5(string_agg(k::text || n || s, ',' order by k))
            from generate_series(0, 500) k, lateral (select count(*) as n, coalesce(sum(id), 0) as s from %1$I where j @> jsonb_build_object('a', k)) l
        union all
        select 'keys', count(*), sum(n), md5(string_agg(k::text || n || s, ',' order by k))
            from generate_series(0, 100) k, lateral (select count(*) as n, coalesce(sum(id), 0) as s from %1$I where id %% 3 > 0 and a @> array[k] and j ? 'b') l
        $q$, name);
end $$;

call pg_temp.write('stock', null);
select * from found('stock');
call pg_temp.write('forced', (true, 64, 64, 0, 0));
select kind, rows, checksum = (select checksum from found('stock') s where s.kind = f.kind) as same from found('forced') f;
call pg_temp.write('slow', (false, 64, 64, 0, 0));
select kind, rows, checksum = (select checksum from found('stock') s where s.kind = f.kind) as same from found('slow') f;

-- which indexes are looked ahead for, and by what statements
create table one (id int, v tsvector, j jsonb);
create index one_v on one using gin (v) with (fastupdate = off);
create index one_j on one using gin (j) with (gin_pending_list_limit = 64);
create function pg_temp.indexes() returns table (relation text, index text, kind text, activated bool) language sql as
    $$select relation::text, index::text, kind, scans_activated > 0 from pg_lookahead_last_statement() where index is not null order by 1, 2$$;
-- (the last statement that attached a node is not always the last one)
create function pg_temp.activated_since(bigint) returns bigint language sql as $$select pg_temp.activated() - $1$$;
set pg_lookahead.force = on;
insert into one values (1, 'a b c', '{"a": [1, 2, 3]}');
select * from pg_temp.indexes();
insert into one select id, v, j from source limit 100;
select * from pg_temp.indexes();
copy one from stdin;
7	a b	{"b": 1}
8	c d	{"b": 2}
\.
select * from pg_temp.indexes();
update one set v = 'x' where id = 7;
select * from pg_temp.indexes();
select pg_temp.activated() as before \gset
delete from one where id = 8;
select pg_temp.activated_since(:before);
select pg_temp.activated() as before \gset
set pg_lookahead.enable_write = off;
insert into one values (2, 'a b c', '{"a": [1, 2, 3]}');
select pg_temp.activated_since(:before);
reset pg_lookahead.enable_write;
set pg_lookahead.excluded_access_methods = 'gin';
insert into one values (3, 'a b c', '{"a": [1, 2, 3]}');
select pg_temp.activated_since(:before);
reset pg_lookahead.excluded_access_methods;
-- an index that comes, and one that goes
create table later (id int, v tsvector);
insert into later values (1, 'a');
create index later_v on later using gin (v) with (fastupdate = off);
insert into later values (2, 'a b');
select * from pg_temp.indexes();
drop index later_v;
select pg_temp.activated() as before \gset
insert into later values (3, 'a b c');
select pg_temp.activated_since(:before);

-- rows that are routed to partitions
create table parts (id int, a int[]) partition by range (id);
create table parts_1 partition of parts for values from (0) to (100);
create table parts_2 partition of parts for values from (100) to (200);
create index on parts using gin (a) with (fastupdate = off);
insert into parts select i, array[i % 7, i] from generate_series(0, 199) i;
select * from pg_temp.indexes();
select count(*) from parts where a @> '{3}';

-- temporary tables, and operator classes whose comparison may be noticed: stock
create temp table tt (a int[]);
create index on tt using gin (a);
select pg_temp.activated() as before \gset
insert into tt select array[i, i % 3] from generate_series(1, 100) i;
select pg_temp.activated_since(:before);
create sequence calls;
create function noticed(a int, b int) returns int language plpgsql as
    $$begin perform nextval('la_gin_insert.calls'); return btint4cmp(a, b); end$$;
create operator class noticed_ops for type int[] using gin as
    operator 1 &&(anyarray, anyarray), operator 2 @>(anyarray, anyarray), storage int,
    function 1 noticed(int, int), function 2 ginarrayextract(anyarray, internal, internal),
    function 3 ginqueryarrayextract(anyarray, internal, int2, internal, internal, internal, internal),
    function 4 ginarrayconsistent(internal, int2, anyarray, int4, internal, internal, internal, internal);
create table n (a int[]);
create index on n using gin (a noticed_ops) with (fastupdate = off);
insert into n select array[i % 13, i] from generate_series(1, 100) i;
select last_value as calls from calls \gset
create table n_stock (a int[]);
create index on n_stock using gin (a noticed_ops) with (fastupdate = off);
set pg_lookahead.enable = off;
alter sequence calls restart;
insert into n_stock select array[i % 13, i] from generate_series(1, 100) i;
select last_value = :calls as same from calls;
set pg_lookahead.enable = on;

-- inserts within inserts, and errors
create table self (a int[]);
create index self_a on self using gin (a) with (fastupdate = off);
create function again() returns trigger language plpgsql as
    $$begin if new.a[1] > 0 then insert into self values (array[new.a[1] - 1, 100]); end if; return new; end$$;
create trigger before before insert on self for each row execute function again();
create trigger after after insert on self for each row when (new.a[1] > 2) execute function again();
insert into self values ('{3}'), ('{1}');
select array_agg(a[1] order by a[1]) from self where a @> '{100}' or a && '{1, 3}';
begin;
insert into self values ('{2}');
savepoint s;
insert into self values ('{2, 7, 8}'), (array[1 / 0]);
rollback to s;
insert into self values ('{0, 7, 8}');
commit;
select count(*) from self where a @> '{7}';

\set ECHO none
set client_min_messages = warning;
drop schema la_gin_insert cascade;
