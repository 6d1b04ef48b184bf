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

-- every seventh row of a cursor is deleted, changed, or nothing of both
create function visited(q text, options text, ahead text[]) returns text language plpgsql as $$
declare c refcursor := 'la_cursor'; s text; r record; i int := 0; result text;
begin
    foreach s in array ahead loop
        execute 'set local ' || s;
    end loop;
    begin
        if options = 'scroll' then open c scroll for execute q;
        elsif options = 'no scroll' then open c no scroll for execute q;
        else open c for execute q;
        end if;
        loop
            fetch c into r;
            exit when not found;
            i := i + 1;
            result := md5(concat(result, r::text));
            if options = 'scroll' and i % 50 = 0 and i < 400 then
                move backward 3 from c;
                fetch c into r;
                result := md5(concat(result, r::text));
            end if;
            if i % 14 = 0 then
                delete from a where current of c;
            elsif i % 14 = 7 then
                update a set v = v + 1000 where current of c;
            end if;
        end loop;
        close c;
    exception when others then
        result := concat(i, ' ', sqlerrm);
    end;
    set local pg_lookahead.enable = off;
    select concat(result, ' ', count(*), ' ', sum(hashtextextended(a::text, 0))) into result from a;
    raise exception using errcode = 'LA001', message = result;
exception when sqlstate 'LA001' then
    return sqlerrm;
end $$;

create function current_of(q text, out same bool, out ahead bool, out stock text) language plpgsql as $$
declare ours text; way text[]; options text; before bigint := pg_temp.activated();
begin
    same := true;
    foreach options in array array['no scroll', '', 'scroll'] loop
        stock := visited(q, options, array['pg_lookahead.enable = off']);
        foreach way slice 1 in array array[
            array['pg_lookahead.force = on', 'pg_lookahead.enable = on', 'pg_lookahead.enable_subplan = on'],
            array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0', 'pg_lookahead.cache_prefetch_threshold = 0']] loop
            ours := visited(q, options, way);
            if ours <> stock then
                same := false;
                raise warning '% % %: %, stock %', q, options, way, ours, stock;
            end if;
        end loop;
    end loop;
    ahead := pg_temp.activated() > before;
    stock := case when stock ~ '^[0-9a-f]{32} ' then 'moved' else regexp_replace(stock, ' \d+ -?\d+$', '') end;
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
-- 2. WHERE CURRENT OF: nobody moves the scan that says which row is the current one
create table a (id int primary key, v int, s text) with (fillfactor = 60);
insert into a select i, i * 7919 % 1009, repeat('a', 100) from generate_series(1, 600) i;
create table b (aid int, w int);
insert into b select i % 600, i from generate_series(1, 3000) i;
create index on b (aid);
vacuum analyze a, b;
create view va with (security_barrier) as select * from a where v > 10;
create view vl as select * from a offset 0;
create table ap (id int, v int, s text) partition by range (id);
create table ap2 partition of ap for values from (10000) to (20000);
insert into ap select i + 10000, i, 's' from generate_series(1, 100) i;
set enable_bitmapscan = off;
select * from current_of('select id, (select max(w) from b where b.aid = va.id) from va');
select * from current_of('select id, (select max(w) from b where b.aid = vl.id) from vl');
select * from current_of('select id, (select max(w) from b where b.aid = va.id) from va limit 300');
select * from current_of('select id, (select max(w) from b where b.aid = q.id) from (select * from va offset 3) q where (select count(*) from b where b.aid = q.id) > 1');
select * from current_of('select id, (select max(w) from b where b.aid = q.id) from (select id from a union all select id from ap offset 0) q');
select * from current_of('select id, (select max(w) from b where b.aid = q.id) from (select id, v from a where random() >= 0 limit 500) q');
select * from current_of('select id, (select max(w) from b where b.aid = va.id) from va for update of va');
select * from current_of('select id, (select max(w) from b where b.aid = a.id) from a for update');
select * from current_of('select id, (select max(w) from b where b.aid = q.id) from (select id from a where id > 5 order by id offset 2) q');
select * from current_of('select id, (select max(w) from b where b.aid = q.id) from (select id, v from a order by v, id offset 0) q');
select * from current_of('select a.id, b.w from a join b on b.aid = a.id');
select * from current_of('select a.id, (select max(w) from b where b.aid = a.id) from a tablesample bernoulli (50) repeatable (1)');
select * from current_of('select q.id, (select max(w) from b where b.aid = q.id) from (select id from a where ctid = any (array(select ctid from a)) offset 0) q');
select * from current_of('with c as materialized (select id from a) select c.id, (select max(w) from b where b.aid = c.id) from c');
-- the same in SQL; rows leave the statement one by one, and by all
begin;
set local pg_lookahead.force = on;
declare c no scroll cursor for select id, (select max(w) from b where b.aid = va.id) from va;
fetch 3 from c;
delete from a where current of c returning id;
move 40 from c;
delete from a where current of c returning id;
close c;
select kind, reason from pg_lookahead_last_statement();
rollback;
begin;
set local pg_lookahead.force = on;
select count(m) from (select id, (select max(w) from b where b.aid = va.id) m from va offset 0) s;
select scans_activated > 0 as ahead, reason from pg_lookahead_last_statement() where kind = 'subplan';
rollback;
-- 4. index pages are compared in their turn, where the comparison reads settings, fails, warns or has effects
set enable_seqscan = off;
set enable_bitmapscan = off;
create table tt (ts timestamp, d date, w text);
insert into tt select timestamp '2024-01-01' + i * interval '1 min', date '2024-01-01' + i / 1440, repeat('w', 60) from generate_series(0, 19999) i;
create index on tt (ts);
create index on tt (d);
vacuum analyze tt;
create function timed(q text) returns text language plpgsql as $$
declare r text;
begin
    set local timezone = 'UTC';
    execute q into r;
    return r;
exception when others then
    return sqlerrm;
end $$;
-- an aggregate or error of stock, and whether the ways give the same
create function way_of(q text, ahead text[]) returns text language plpgsql as $$
declare s text; r text;
begin
    foreach s in array ahead loop
        execute 'set local ' || s;
    end loop;
    r := timed(q);
    raise exception using errcode = 'LA001', message = coalesce(r, 'null');
exception when sqlstate 'LA001' then
    return sqlerrm;
end $$;
create function same(q text, out same bool, out ahead bool, out stock text) language plpgsql as $$
declare ours text; way text[]; before bigint := pg_temp.activated();
begin
    stock := way_of(q, array['pg_lookahead.enable = off']);
    same := true;
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.max_leaf_pages = 64'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0'],
        array['pg_lookahead.cache_prefetch_threshold = 0', 'pg_lookahead.attach_threshold = 0']] loop
        ours := way_of(q, way);
        if ours <> stock then
            same := false;
            raise warning '% %: %, stock %', q, way, ours, stock;
        end if;
    end loop;
    ahead := pg_temp.activated() > before;
end $$;
select * from same($$select count(*) from (select set_config('timezone', case when extract(epoch from ts) > 1704067200 + 6000 then 'Asia/Tokyo' else 'UTC' end, false) z from tt where ts < timestamptz '2024-01-01 20:00+00' order by ts offset 0) q where length(z) > 0$$);
select * from same($$select count(*) from (select set_config('timezone', case when w > '' and extract(epoch from ts) > 1704067200 + 6000 then 'Asia/Tokyo' else 'UTC' end, false) z from tt where ts < timestamptz '2024-01-01 20:00+00' order by ts offset 0) q where length(z) > 0$$);
select * from same($$select count(*) from (select set_config('timezone', 'Asia/Tokyo', false) z from tt where d < timestamptz '2024-01-09 20:00+00' and w > '' order by d offset 0) q where length(z) > 0$$);
select * from same($$select count(*) from (select set_config('timezone', 'Asia/Tokyo', false) z from tt where ts = any (array[timestamptz '2024-01-01 20:00+00', '2024-01-02 00:00+00', '2024-01-05 00:00+00']) and w > '' order by ts offset 0) q where length(z) > 0$$);
select * from same($$select count(w) from tt where ts < timestamptz '2024-01-01 20:00+00'$$);
begin;
set local pg_lookahead.force = on;
select count(z), count(w) from (select w, set_config('la.x', 'y', false) z from tt where ts < timestamptz '2024-01-01 20:00+00' offset 0) q;
select kind, scans_activated, reason from pg_lookahead_last_statement();
rollback;
-- SET between FETCHes
create function fetched(q text, sets text, ahead text[]) returns text language plpgsql as $$
declare c refcursor := 'la_cursor'; s text; r record; n int := 0;
begin
    foreach s in array ahead loop
        execute 'set local ' || s;
    end loop;
    set local timezone = 'UTC';
    begin
        open c no scroll for execute q;
        loop
            fetch c into r;
            exit when not found;
            n := n + 1;
            if n = 30 then
                execute sets;
            end if;
        end loop;
        s := n;
    exception when others then
        s := n || ' ' || sqlerrm;
    end;
    raise exception using errcode = 'LA001', message = s;
exception when sqlstate 'LA001' then
    return sqlerrm;
end $$;
create function set_between(q text, sets text, out same bool, out stock text) language plpgsql as $$
declare ours text; way text[];
begin
    stock := fetched(q, sets, array['pg_lookahead.enable = off']);
    same := true;
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.max_leaf_pages = 64'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0'],
        array['pg_lookahead.cache_prefetch_threshold = 0', 'pg_lookahead.attach_threshold = 0']] loop
        ours := fetched(q, sets, way);
        if ours <> stock then
            same := false;
            raise warning '% %: %, stock %', q, way, ours, stock;
        end if;
    end loop;
end $$;
select * from set_between($$select w from tt where ts < timestamptz '2024-01-01 20:00+00' order by ts$$, $$set local timezone = 'Asia/Tokyo'$$);
select * from set_between($$select ts from tt where ts < timestamptz '2024-01-01 20:00+00' order by ts$$, $$set local timezone = 'Asia/Tokyo'$$);
select * from set_between($$select ts from tt where (ts, d) < (timestamptz '2024-01-01 20:00+00', date '2025-01-01') order by ts$$, $$set local timezone = 'Asia/Tokyo'$$);
select * from set_between($$select w from tt where ts between date '2024-01-01' and timestamptz '2024-01-01 20:00+00' order by ts desc$$, $$set local timezone = 'America/Lima'$$);
-- an operator class in PL/pgSQL, which notes its calls; a composite key that fails on a later page
create function cmp(a int, b int) returns int language plpgsql immutable as $$
begin
    perform set_config('la.calls', (coalesce(nullif(current_setting('la.calls', true), ''), '0')::int + 1)::text, false);
    return btint4cmp(a, b);
end $$;
create function lt(int, int) returns bool language plpgsql immutable as 'begin return cmp($1, $2) < 0; end';
create function le(int, int) returns bool language plpgsql immutable as 'begin return cmp($1, $2) <= 0; end';
create function eq(int, int) returns bool language plpgsql immutable as 'begin return cmp($1, $2) = 0; end';
create function ge(int, int) returns bool language plpgsql immutable as 'begin return cmp($1, $2) >= 0; end';
create function gt(int, int) returns bool language plpgsql immutable as 'begin return cmp($1, $2) > 0; end';
create operator <! (leftarg = int, rightarg = int, function = lt);
create operator <=! (leftarg = int, rightarg = int, function = le);
create operator =! (leftarg = int, rightarg = int, function = eq);
create operator >=! (leftarg = int, rightarg = int, function = ge);
create operator >! (leftarg = int, rightarg = int, function = gt);
create operator class noted for type int using btree as
    operator 1 <!, operator 2 <=!, operator 3 =!, operator 4 >=!, operator 5 >!, function 1 cmp(int, int);
create table n (i int, w text);
insert into n select i, repeat('w', 60) from generate_series(1, 3000) i;
create index on n (i noted);
vacuum analyze n;
create function calls() returns text language sql volatile as $$select current_setting('la.calls')$$;
select same, ahead from same($$select md5(string_agg(c, ' ')) from (select w, set_config('la.calls', '0', false), calls() c from n where i <! 2500 and w > '' offset 0) q$$);
select same, ahead from same($$select md5(string_agg(c, ' ')) from (select i, calls() c from n where i =! any (array[3, 600, 1200, 1800]) and w > '' offset 0) q$$);
create type ij as (i int, j json);
create table ct (k ij, w text);
insert into ct select row(i, null)::ij, repeat('w', 60) from generate_series(1, 4000) i;
create index on ct (k);
vacuum analyze ct;
set la.calls = '0';
-- rows are returned before the comparison of json fails
select * from set_between($$select w from ct where k >= row(3, null)::ij and k <= row(2500, '1')::ij$$, $$select 1$$);
select * from set_between($$select k from ct where k < any (array[row(2500, '1'), row(20, '2')]::ij[])$$, $$select 1$$);
-- a range type's canonical function, which operators call as well
create type ir;
create function ir_canon(ir) returns ir language internal immutable strict as 'int4range_canonical';
create type ir as range (subtype = int4, canonical = ir_canon);
create or replace function ir_canon(ir) returns ir language plpgsql immutable strict as $$
begin
    return case when current_setting('la.empty', true) = 'on' then 'empty' else $1 end;
end $$;
create table rt (x ir, w text);
insert into rt select format('[%s,%s)', - (i * 7919 % 1000), 10 - i % 2)::ir, repeat('w', 60) from generate_series(1, 8000) i;
create index rt_x on rt using gist (x);
create index rt_spgist on rt using spgist (x);
vacuum analyze rt;
set la.empty = off;
select * from set_between($$select w from rt where x -|- '[10,11)'::ir$$, $$set local la.empty = on$$);
drop index rt_x;
select * from set_between($$select w from rt where x -|- '[10,11)'::ir$$, $$set local la.empty = on$$);
-- the common types look ahead
create table common (a smallint, b int, c bigint, d text, e varchar(30), f uuid, g timestamptz, h timestamp, i numeric, j date, k boolean, l bytea, m oid, n inet, o char(9), p float8, q interval, r int[], s int4range, t name, w text);
insert into common select i, i, i, i, i, md5(i::text)::uuid, timestamptz '2024-01-01+00' + i * interval '1 min', timestamp '2024-01-01' + i * interval '1 min',
    i / 8.0, date '2024-01-01' + i, i % 2 = 0, i::text::bytea, i, inet '10.0.0.0' + i, i, i, i * interval '1 s', array[i, 1], int4range(i, i + 1), i, repeat('w', 60) from generate_series(1, 3000) i;
do $$ declare c text; begin for c in select attname from pg_attribute where attrelid = 'common'::regclass and attnum > 0 and attname <> 'w' loop execute format('create index on common (%I)', c); end loop; end $$;
vacuum analyze common;
create function pages_ahead(cond text) returns text language plpgsql as $$
declare n bigint; reasons text;
begin
    set local pg_lookahead.force = on;
    execute 'create temp table x on commit drop as select w from common where ' || cond || ' order by ' || split_part(cond, ' ', 1);
    get diagnostics n = row_count;
    select string_agg(distinct reason, ', ') into reasons from pg_lookahead_last_statement();
    drop table x;
    return concat_ws(' ', n, reasons);
end $$;
set client_min_messages = warning;
select cond, pages_ahead(cond) from (values ('a > 5'), ('a > 5::bigint'), ('b between 3 and 4000'), ('c > 7'), ('d > ''2'''), ('e > ''3'''), ('f > ''1a000000-0000-0000-0000-000000000000'''),
    ('g > ''2024-01-01 05:00+00'''), ('h > ''2024-01-01 05:00'''), ('i > 4.5'), ('j > ''2024-02-01'''), ('k = true'), ('l > ''\x31'''), ('m > 70'), ('n > ''10.0.0.80'''), ('o > ''2'''), ('p > 3.5'), ('q > ''7 s'''),
    ('r > array[5]'), ('s > int4range(7, 8)'), ('t > ''2'''), ('h > timestamptz ''2024-01-01 05:00+00''')) v (cond);
reset enable_seqscan;
reset enable_bitmapscan;
-- 5. kinds of expressions, of types and of nodes in what is taken ahead
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
set pg_lookahead.enable_subplan = on;
create type pair as (a int, b text);
create type mood as enum ('low', 'high');
create table kinds (id int, s smallint, f int, w text, a int[], aa pair[], r int4range, m int4multirange, p pair, e mood);
insert into kinds select i, i % 40, i % 50, 'w' || i, array[i, i % 9], array[row(i, 'x')::pair], int4range(i, i + 2),
    int4multirange(int4range(i, i + 2)), row(i % 7, 'y' || i % 3)::pair, case when i % 3 = 0 then 'low' else 'high' end::mood from generate_series(1, 400) i;
create index on kinds (id);
create index on kinds (f);
create table inner_side (id int, w text);
insert into inner_side select i, repeat('i', 60) from generate_series(1, 2000) i;
create index on inner_side (id);
create table pairs (a int, b int);
insert into pairs select i, i % 50 from generate_series(1, 100) i;
vacuum analyze kinds, inner_side, pairs;
-- the outer side, in parentheses
create function taken(outer_side text) returns text language sql as $$
    select concat_ws(' ', x.identical, x.n, x.looked_ahead) from pg_temp.compare(
        format('select count(i.w), sum(i.id) from (%s offset 0) o join inner_side i on i.id = o.id', outer_side)) x
$$;
select outer_side, taken('select * from kinds where ' || outer_side) from (values
    ('id / 3::smallint > 5'), ('id % 5::bigint <> 0'), ('id / s > 3'), ('s % 7::smallint = 1'), ('w like ''w1%'''), ('w like ''w\1%'''),
    ('(id, f) not in (select a, b from pairs)'), ('(id, f) in (select a, b from pairs)'), ('id not in (select a from pairs)'),
    ('a[2] = 3'), ('aa[1] is not null'), ('(f, id) < (10, 5)'), ('kinds is not null'), ('array[[f, 1], [2, 3]] <> a'), ('p is null'), ('(p).a > 3'),
    ('a <> array[1]'), ('aa <> array[row(1, ''x'')]::pair[]'), ('r <> int4range(7, 9)'), ('m <> int4multirange(int4range(7, 9))'), ('m @> 70'),
    ('p <> row(1, ''y1'')::pair'), ('e = ''low'''), ('greatest(p, row(3, ''y'')::pair) <> p'), ('greatest(m, ''{}'') = m'), ('w::name <> ''w7'''),
    ('a in (array[7, 7], array[8, 8])'), ('f not in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)'), ('current_date > date ''2024-01-01'' and f > 3'),
    ('case when f > 3 then true when s = 2 then false end'), ('coalesce(nullif(f, 7), 3) > 5'), ('f is distinct from 3'),
    ('(f > 3) is not unknown')) v (outer_side);
select outer_side, taken(outer_side) from (values
    ('select f as id from kinds group by f'), ('select distinct a[2] as id from kinds'), ('select distinct on (f) id from kinds order by f, id'),
    ('select max(id) as id from kinds group by a'), ('select max(id) as id from kinds group by aa'), ('select max(id) as id from kinds group by r'),
    ('select max(id) as id, string_agg(w, '','' order by w desc) as w, count(distinct e) from kinds group by f'),
    ('select max(id) as id from kinds group by m'), ('select max(id) as id from kinds group by p'), ('select max(id) as id from kinds group by e'),
    ('select f as id, s from kinds group by grouping sets ((f, s), (f), (s))'), ('select coalesce(f, 1) as id from kinds group by cube (f, s, e)'),
    ('select id from kinds where f = 7 and id < 300'), ('select id from kinds where f = 7 or id < 30'), ('select id from kinds union select f from kinds'),
    ('select id from kinds except select a from pairs'), ('select id, row_number() over (partition by p order by r) from kinds'),
    ('select id, sum(f) over (order by id range between 3 preceding and 4 following) from kinds'),
    ('select id from kinds order by m limit 100'), ('(select id from kinds order by id) union all (select a from pairs order by a)'),
    ('select column1 as id from (values (7), (8), (3)) v union all select id from kinds where id = (select max(id) from kinds)'),
    ('select x.id from generate_series(3, 9) x (id)'), ('select unnest(a) as id from kinds'),
    ('with recursive r as (select 1 as id union select id + 1 from r where id < 50) select id from r')) v (outer_side);
-- above the join: a key may fail early if nothing there can be noticed, and nothing fails
select * from pg_temp.compare($$select count((select x.w from inner_side x where x.id = i.id limit 1))
    from (select id from kinds where 100 / (s + 1) >= 0 offset 0) o join inner_side i on i.id = o.id$$);
select * from pg_temp.compare($$select count((select x.w from inner_side x where x.id > i.id order by x.id limit 1 offset 1))
    from (select id from kinds where 100 / (s + 1) >= 0 offset 0) o join inner_side i on i.id = o.id$$);
create table ident (id int generated always as identity, v int);
set pg_lookahead.force = on;
insert into ident (v) select i.id from (select id from kinds where 100 / (s + 1) >= 0 offset 0) o join inner_side i on i.id = o.id;
reset pg_lookahead.force;
select count(*), max(id), sum(v) from ident;
set enable_hashagg = off;
set enable_indexscan = off;
select taken('select f as id from kinds group by f'), taken('select max(id) as id from kinds group by m'), taken('select id from kinds where f = 7 and id < 300'),
    taken('select coalesce(f, 1) as id from kinds group by grouping sets ((f, s), (f), (s), (e))');
reset enable_indexscan;
reset enable_hashagg;
-- rows that workers sort; index scans whose support functions, or rows of keys, are asked for
set max_parallel_workers_per_gather = 2;
set parallel_setup_cost = 0;
set parallel_tuple_cost = 0;
set min_parallel_table_scan_size = 0;
explain (costs off) select count(i.w) from (select id from kinds order by w, id offset 0) o join inner_side i on i.id = o.id;
select count(i.w), sum(i.id) from (select id from kinds order by w, id offset 0) o join inner_side i on i.id = o.id;
set pg_lookahead.force = on;
select count(i.w), sum(i.id) from (select id from kinds order by w, id offset 0) o join inner_side i on i.id = o.id;
reset pg_lookahead.force;
set max_parallel_workers_per_gather = 0;
-- two bitmaps of the outer side
create table two as select i as id, i % 100 as a, i / 100 % 100 as b, repeat('t', 60) as w from generate_series(1, 20000) i;
create index on two (a);
create index on two (b);
vacuum analyze two;
set enable_seqscan = off;
set enable_indexscan = off;
explain (costs off) select id from two where a = 3 and b = 5;
select taken('select id from two where a = 3 and b = 5');
reset enable_indexscan;
create index on kinds using gist (m);
create index on kinds using gist (r);
create index on kinds using spgist (w);
create index on kinds (a, p, f);
set enable_seqscan = off;
set enable_bitmapscan = off;
select index_cond, taken('select * from kinds where ' || index_cond) from (values
    ('m && int4multirange(int4range(7, 90))'), ('r && int4range(7, 90)'), ('w ^@ ''w1'''), ('(a, p, f) > (array[3, 3], row(3, ''y'')::pair, 5)'),
    ('(a, f) < (array[30], 5)')) v (index_cond);
reset enable_bitmapscan;
reset enable_seqscan;
reset enable_memoize;
reset enable_material;
reset enable_mergejoin;
reset enable_hashjoin;
drop schema la_gate cascade;
