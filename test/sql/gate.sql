--
-- gate - what may be done early, and what may not: the questions that every room asks.
--
-- Each statement runs with look-ahead off, and then in the ways of helper.inc and of write.sql.
-- "same" must be true; the other columns tell what stock does, and that something was ahead.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_gate
\i :helper
\set ECHO none
set synchronous_commit = off;
set client_min_messages = warning;

-- a statement that writes into w; it is rolled back
create function written(statement text, ahead text[], out error text, out n bigint, out result text)
language plpgsql as $$
declare s text;
begin
    foreach s in array ahead loop
        execute 'set local ' || s;
    end loop;
    error := '';
    begin
        execute statement;
        get diagnostics n = row_count;
    exception when others then
        error := sqlerrm;
    end;
    set local pg_lookahead.enable = off;
    select count(*) || ' ' || sum(hashtextextended(w::text, 0)) into result from w;
    raise exception using errcode = 'LA001';
exception when sqlstate 'LA001' then
    null;
end $$;

create function write(statement text, out same bool, out ahead bool, out n bigint, out error text)
language plpgsql as $$
declare stock record; ours record; way text[]; before bigint;
begin
    stock := written(statement, array['pg_lookahead.enable = off']);
    same := true;
    before := pg_temp.activated();
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.enable_btree_insert = off'],
        array['pg_lookahead.force = on', 'pg_lookahead.enable_btree_insert = on'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0']] loop
        ours := written(statement, way);
        if ours is distinct from stock then
            same := false;
            raise warning '% %', way, ours;
            raise warning 'stock %', stock;
        end if;
    end loop;
    ahead := pg_temp.activated() > before;
    n := stock.n;
    error := stock.error;
end $$;

\pset format unaligned
\pset tuples_only
\set ECHO all
-- 1. ON CONFLICT without an arbiter that is known
create table src as select i, i * 7919 % 5003 k, 'x' || i % 900 s, int4range(i * 2, i * 2 + 1) r from generate_series(1, 3000) i;
create function conflicts(indexes text, out n text) returns setof text language plpgsql as $$
declare target text;
begin
    create table w (k int, b int, s text, r int4range);
    execute indexes;
    insert into w select i * 3, i, 'y' || i, int4range(i * 6, i * 6 + 2) from generate_series(1, 5000) i;
    for target in values ('do nothing'), ('(k) do nothing'), ('(k) do update set b = -w.b') loop
        n := target || ': ' || write('insert into w select k, i, s, r from src on conflict ' || target);
        continue when n ~ 'there is no unique';
        return next;
    end loop;
    drop table w;
end $$;
select * from conflicts('create index on w using hash (k)');
select * from conflicts('create index on w using hash (k); create index on w (k); create index on w (s, b)');
select * from conflicts('create unique index on w (k) where b > 0; create index on w using hash (s)');
select * from conflicts('create unique index on w (k) where b < 0; create index on w using hash (s)');
select * from conflicts('create unique index on w (k); create index on w using hash (k)');
select * from conflicts('alter table w add exclude using gist (r with &&); create index on w using hash (k)');
select * from conflicts('alter table w add exclude using hash (k with =); create index on w (s)');
select * from conflicts('alter table w add exclude (k with =); create index on w using hash (b)');
select * from conflicts('alter table w add unique (k) deferrable; create index on w using hash (k)');
select * from conflicts('create unique index on w ((k / 2)); create index on w using hash (s)');
select * from conflicts('create unique index on w ((k * 10000 + 1 / nullif(b - 9000, 0))); create index on w using hash (s)');
select * from conflicts('create unique index u on w (k); create index on w using hash (s);
    update pg_index set indisready = false, indisvalid = false where indexrelid = ''u''::regclass');
select * from conflicts('create unique index u on w (k); create index on w using hash (s); update pg_index set indisvalid = false where indexrelid = ''u''::regclass');
select * from conflicts('create index on w using gist (r); create index on w using brin (b); create index on w using hash (b)');
-- in partitions
create table wp (k int, b int, s text, r int4range) partition by range (k);
create table w partition of wp for values from (0) to (3000) with (fillfactor = 50);
create table wq partition of wp for values from (3000) to (100000);
create index on wp using hash (k);
create unique index on w (k);
insert into wp select i * 3, i, 'y' || i, null from generate_series(1, 3000) i;
select * from write('insert into wp select k, i, s, r from src on conflict do nothing');
drop table wp;
drop schema la_gate cascade;
