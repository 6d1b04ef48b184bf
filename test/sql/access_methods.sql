--
-- access_methods - look-ahead in hash, GiST and SP-GiST indexes, and its limits.
--
-- Their rows are read ahead into a queue with all that the access method says of them:
-- recheck flags, distances, the tuples of index-only scans.  Each query runs with look-ahead
-- off and on, as in scan.sql.  "uses" is the index that the plan names: a test of another
-- plan has tested nothing.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_am
\i :helper

create function uses(q text) returns text language plpgsql as $$
declare line text; name text; out text;
begin
    for line in execute 'explain (costs off) ' || q loop
        name := substring(line from 'Index (?:Only )?Scan.* using (\w+)');
        if name is not null then
            out := concat_ws(', ', out, name);
        end if;
    end loop;
    return out;
end $$;

create function compare(q text, out uses text, out identical bool, out n int, out looked_ahead bool)
language plpgsql as $$
begin
    select * into identical, n, looked_ahead from pg_temp.compare(q);
    uses := la_am.uses(q);
end $$;

create table t (id int, few int, h text, p point, b box, c circle, r int4range, i inet, v tsvector, s text, w text)
    with (fillfactor = 50);
insert into t select i, i % 4, 'key ' || i % 500,
    case when i % 97 > 0 then point(i::bigint * 7919 % 1009, i::bigint * 4447 % 1013) end,
    box(point(i % 61, i % 67), point(i % 61 + i % 5, i % 67 + i % 7)),
    circle(point(i::bigint * 31 % 401, i::bigint * 17 % 397), i % 13),
    case when i % 101 > 0 then int4range(i % 700, i % 700 + i % 40) end,
    ('10.' || i % 3 || '.' || i % 250 || '.' || i % 7)::inet,
    array_to_tsvector(array['a' || i % 10, 'b' || i % 33, 'c' || i % 57]),
    case when i % 89 > 0 then repeat('x', i % 3) || i % 1500 end, repeat('w', 200)
    from generate_series(1, 4000) i order by hashint4(i);
create index t_few on t using hash (few);
create index t_h on t using hash (h);
create index t_p on t using gist (p);
create index t_b on t using gist (b) include (id);
create index t_c on t using gist (c);
create index t_r on t using gist (r);
create index t_i on t using gist (i inet_ops);
create index t_v on t using gist (v);
create index t_rp on t using gist (r, p) where s is not null;
vacuum analyze t;
-- the same rows, SP-GiST
create table u as select * from t;
create index u_p on u using spgist (p);
create index u_k on u using spgist (p kd_point_ops) where few = 1;
create index u_b on u using spgist (b);
create index u_r on u using spgist (r);
create index u_i on u using spgist (i inet_ops);
create index u_s on u using spgist (s);
vacuum analyze u;
\set ECHO all

-- hash: duplicates over several overflow pages, few of them, none
select * from compare('select * from t where few = 1');
select * from compare('select * from t where few = 1 and id % 3 = 0');
select * from compare('select few, count(*), sum(id) from t where few = 2 group by few');
select * from compare('select id, h from t where h = ''key 7''');
select * from compare('select id from t where h = ''none''');
select * from compare('select id from t where few = 3 limit 7');
select * from compare('select id from t where few = 3 offset 900 limit 70');
-- (the order of equal entries depends on the server)
select uses, identical, looked_ahead from compare('select id, 1 / (id - 3001) from t where few = 1');

-- what compares points and texts may fail, for entries that a statement would not come to
select * from compare('select id, p from t where p <@ box(point(100, 100), point(700, 800))');
-- ... but for that somebody can vouch
set pg_lookahead.additional_access_methods = 'gist, spgist';
-- GiST: points, boxes, circles, ranges, addresses, words
select * from compare('select id, p from t where p <@ box(point(100, 100), point(700, 800))');
select * from compare('select id, w from t where p <@ circle(point(500, 500), 300)');
select * from compare('select id, p from t where p is null');
select * from compare('select id, b, w from t where b && box(point(10, 10), point(20, 40))');
select * from compare('select id, c from t where c && circle(point(200, 200), 60)');
select * from compare('select id, r, w from t where r && int4range(100, 400)');
select * from compare('select id, r, w from t where r -|- int4range(300, 400)');
select * from compare('select id, i, w from t where i <<= inet ''10.1.0.0/17''');
select * from compare('select id, v from t where v @@ ''a3 & b7''::tsquery');
select * from compare('select id, v from t where v @@ ''a3 | c9''::tsquery limit 100');
select * from compare('select id, w from t where r && int4range(100, 400) and p <@ box(point(0, 0), point(900, 900)) and s is not null');
select * from compare('select id, 1 / (id - 2777), w from t where p <@ box(point(0, 0), point(1100, 1100))');

-- SP-GiST: quadtree, k-d tree, boxes, ranges, addresses, prefixes
select * from compare('select id, w from u where p <@ box(point(100, 100), point(700, 800))');
select * from compare('select id, w from u where p <@ box(point(100, 100), point(900, 800)) and few = 1');
select * from compare('select id, w from u where p is null');
select * from compare('select id, b, w from u where b && box(point(10, 10), point(20, 40))');
select * from compare('select id, w from u where r && int4range(100, 400)');
select * from compare('select id, w from u where i <<= inet ''10.1.0.0/17''');
select * from compare('select id, w from u where s ^@ ''x1''');
select * from compare('select id, w from u where s between ''x3'' and ''xx5''');
select * from compare('select id, w from u where s = ''xx77''');
select * from compare('select id, w from u where s is null');

-- nearest first: exact distances, and those that are to be computed again
select * from compare('select id, p <-> point(300, 300) as d from t order by p <-> point(300, 300) limit 1');
select * from compare('select id, p <-> point(300, 300) as d, w from t order by p <-> point(300, 300) limit 500');
select * from compare('select id, w from t where p <@ box(point(0, 0), point(800, 800)) order by p <-> point(300, 300)');
select * from compare('select id, c <-> point(100, 100) as d from t order by c <-> point(100, 100) limit 300');
select * from compare('select id, b <-> point(30, 30) as d, w from t order by b <-> point(30, 30) limit 300');
select * from compare('select id, p <-> point(300, 300) as d, w from t order by p <-> point(300, 300) offset 20 limit 200');
select * from compare('select id, p <-> point(300, 300) as d, w from u where p is not null order by p <-> point(300, 300) limit 500');
select * from compare('select id, w from u where p <@ box(point(0, 0), point(800, 800)) order by p <-> point(300, 300)');
select * from compare('select id, b <-> point(30, 30) as d from u order by b <-> point(30, 30) limit 300');
select * from compare('select id, 1 / (id - 997) from t order by p <-> point(300, 300) limit 3900');

-- index-only scans; orders by distance are not run ahead there
select * from compare('select p from t where p <@ box(point(100, 100), point(700, 800))');
select * from compare('select r from t where r && int4range(100, 400)');
select * from compare('select id, b from t where b && box(point(10, 10), point(20, 40))');
select * from compare('select p from t where p is not null order by p <-> point(300, 300) limit 300');
select * from compare('select p from u where p <@ box(point(100, 100), point(700, 800))');
select * from compare('select s from u where s between ''x3'' and ''xx5''');
select * from compare('select r from u where r && int4range(100, 400)');
select * from compare('select i from u where i <<= inet ''10.1.0.0/17''');
-- ... where some pages are not all-visible
update t set w = 'new' where id % 50 = 7;
delete from t where id % 60 = 11;
update u set w = 'new' where id % 50 = 7;
delete from u where id % 60 = 11;
select * from compare('select p from t where p <@ box(point(0, 0), point(700, 800))');
select * from compare('select r from t where r && int4range(0, 400)');
select * from compare('select p from u where p <@ box(point(0, 0), point(700, 800))');
select * from compare('select s from u where s between ''x'' and ''xx5''');
-- dead entries of hash indexes, and those that GiST finds
select * from compare('select * from t where few = 3');
select * from compare('select * from t where few = 3');
select * from compare('select id, w from t where r && int4range(100, 400)');

-- rescans
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
select * from compare('select x.id, y.id from generate_series(0, 499, 3) g, t x, t y where x.h = ''key '' || g and y.id = x.id + 1 and y.h = ''key '' || g + 1');
select * from compare('select g, t.id, t.w from generate_series(-1, 4) g join t on t.few = g');
select * from compare('select g, t.id, t.w from generate_series(0, 900, 50) g join t on t.p <@ box(point(g, g), point(g + 60, g + 60))');
select * from compare('select g, t.id from generate_series(0, 900, 50) g left join t on t.r @> g and t.id % 2 = 0');
select * from compare('select g, u.id from generate_series(0, 1400, 50) g join u on u.s ^@ (''x'' || g)');
-- left early, again and again
select * from compare('select g, x.* from generate_series(1, 900, 30) g, lateral (select id, w from t order by p <-> point(g, g) limit 1 + g % 9) x');
select * from compare('select g, x.* from generate_series(1, 900, 30) g, lateral (select id, w from u where p is not null order by p <-> point(g, g) limit 1 + g % 9) x');
select * from compare('select g, x.* from generate_series(0, 90) g, lateral (select id from t where few = g % 5 limit g) x');
select * from compare('select g, (select count(w) from t where r && int4range(g, g + 5)) from generate_series(0, 700, 20) g');
reset enable_hashjoin;
reset enable_mergejoin;
reset enable_material;
reset enable_memoize;

-- loops that are left early, and an error that is caught in the midst of another scan
create function loops() returns setof text language plpgsql as $$
declare o record; q record; n int := 0; c cursor for select id, w from t where r && int4range(100, 200);
begin
    for o in select id, w from t where p <@ box(point(0, 0), point(900, 900)) loop
        n := n + 1;
        begin
            for q in execute 'select id, 1 / (id % 7) as x from t where few = $1' using o.id % 4 loop
                return next o.id || ' ' || q.id;
                exit when q.id % 11 = 0;
            end loop;
        exception when division_by_zero then
            return next o.id || ' ' || sqlerrm;
        end;
        exit when n = 60;
    end loop;
    for q in c loop
        return next q.id;
    end loop;
    for q in select id from t order by p <-> point(1, 1) loop
        return next q.id;
        exit when q.id % 29 = 0;
    end loop;
end $$;
select identical, looked_ahead from pg_temp.compare('select * from loops()');

-- cursors that cannot turn, and their end
create function forward(q text, steps int[], out uses text, out identical bool, out n int, out looked_ahead bool)
language plpgsql as $$
begin
    select * into identical, n, looked_ahead
        from pg_temp.differ(format('forward_rows(%L, %L)', q, steps));
    uses := la_am.uses(q);
end $$;
select * from forward('select id, w from t where few = 1', '{1, 1, 5, 100, 1, 300, 1, 2000, 1, 1}');
select * from forward('select id, w from t where few = 9', '{1, 1}');
select * from forward('select id, w from t where r && int4range(0, 500)', '{1, 1, 5, 100, 1, 300, 1, 4000, 1, 1}');
select * from forward('select id, w from t order by p <-> point(300, 300)', '{1, 1, 5, 100, 1, 300, 1, 4000, 1, 1}');
select * from forward('select p from t where p <@ box(point(0, 0), point(900, 900))', '{1, 1, 5, 100, 1, 300, 1, 4000, 1, 1}');
select * from forward('select id, w from u where s > ''x''', '{1, 1, 5, 100, 1, 300, 1, 4000, 1, 1}');

-- scroll cursors: hash goes backward, and does not look ahead then; the others are materialized
\set motions 'n n n p p n m40 p n w20 n n l p p n n n f n a-5 p n a-400 n p e p n p s n n a500 r-1 r2 r-300 r700 p a0 n a-1 n p l l n p'
select * from pg_temp.play('select id, w from t where few = 1', :'motions');
select * from pg_temp.play('select id, w from t where h = ''key 7''', :'motions');
select * from pg_temp.play('select id, w from t where few = 9', :'motions');
select identical, n from pg_temp.play('select id, w from t where p <@ box(point(0, 0), point(900, 900))', :'motions');
select identical, n from pg_temp.play('select id from t order by p <-> point(300, 300)', :'motions');
select identical, n from pg_temp.play('select s from u where s > ''x''', :'motions');

-- the row under the cursor; what its transaction changes; beyond the transaction
set pg_lookahead.force = on;
begin;
declare c no scroll cursor for select id, few from t where few = 1;
declare d cursor for select id from t where r && int4range(0, 500);
move 30 from c;
move 30 from d;
update t set few = 2 where current of c returning few;
delete from t where current of d returning id > 0 as deleted;
insert into t (id, few, r) select 10000 + i, 1, '[0,900)' from generate_series(1, 400) i;
move forward all from c;
move forward all from d;
rollback;
begin;
declare c no scroll cursor with hold for select id from t where few = 2;
move 10 from c;
commit;
move forward all from c;
close c;
begin;
declare c no scroll cursor for select id from t where few = 2;
move 10 from c;
savepoint s;
move 10 from c;
select 1 / 0;
rollback to s;
move forward all from c;
commit;
reset pg_lookahead.force;

-- SERIALIZABLE: methods that lock index pages are not run ahead
begin isolation level serializable;
select * from compare('select * from t where few = 1');
select * from compare('select id, r, w from t where r && int4range(100, 400)');
select * from compare('select id, w from u where s ^@ ''x1''');
commit;

-- excluded access methods
show pg_lookahead.excluded_access_methods;
create function activated(q text) returns bool language plpgsql as $$
declare before bigint := pg_temp.activated();
begin
    perform count(*) from pg_temp.rows_of(q) r;
    return pg_temp.activated() > before;
end $$;
create view activated as
    select activated('select id, w from t where few = 1') as hash,
        activated('select id, w from t where r && int4range(100, 400)') as gist,
        activated('select id, w from u where s ^@ ''x1''') as spgist,
        activated('select id, w from o where id > 0') as btree;
create table o as select id, w from t;
create index on o (id);
set pg_lookahead.force = on;
select * from activated;
set pg_lookahead.excluded_access_methods = 'hash';
select * from activated;
set pg_lookahead.excluded_access_methods = gist, spgist;
show pg_lookahead.excluded_access_methods;
select * from activated;
set pg_lookahead.excluded_access_methods = ' BTree ,"hash", nonsense';
select * from activated;
set pg_lookahead.excluded_access_methods = '"HASH"';
select * from activated;
set pg_lookahead.excluded_access_methods = 'hash,,gist';
set pg_lookahead.excluded_access_methods = 'hash gist';
set pg_lookahead.excluded_access_methods = '"hash';
show pg_lookahead.excluded_access_methods;
set pg_lookahead.excluded_access_methods = '';
select * from activated;
begin;
set local pg_lookahead.excluded_access_methods = 'btree, hash, gist, spgist';
select * from activated;
rollback;
reset pg_lookahead.excluded_access_methods;
select * from activated;

-- memory: ranges
show pg_lookahead.scan_memory;
show pg_lookahead.backend_memory;
-- (what the message says depends on the server)
create function refused(name text, value text) returns text language plpgsql as $$
begin
    return set_config(name, value, false);
exception when invalid_parameter_value then
    return sqlstate;
end $$;
select refused('pg_lookahead.scan_memory', v) from unnest('{63, 0, -1, 3TB, 3 s, much}'::text[]) v;
select refused('pg_lookahead.backend_memory', v) from unnest('{-1, 3TB, 3 s}'::text[]) v;
set pg_lookahead.scan_memory = '64kB';
set pg_lookahead.scan_memory = '1GB';
show pg_lookahead.scan_memory;
set pg_lookahead.backend_memory = '1MB';
show pg_lookahead.backend_memory;
reset pg_lookahead.scan_memory;
-- nothing for anybody: nothing looks ahead
set pg_lookahead.backend_memory = 0;
select * from activated;
select * from compare('select * from t where few = 1');
select * from compare('select id, w from o where id in (1, 5, 7, 800) order by id');
-- little: what has room for its window looks ahead, and the answers are the same
set pg_lookahead.backend_memory = '64kB';
set pg_lookahead.scan_memory = '64kB';
set pg_lookahead.max_distance = 4;
select * from activated;
select uses, identical, n from compare('select * from t where few = 1');
select uses, identical, n from compare('select id, p <-> point(300, 300) as d, w from t order by p <-> point(300, 300) limit 500');
select uses, identical, n from compare('select p from t where p <@ box(point(0, 0), point(700, 800))');
select uses, identical, n from compare('select s from u where s between ''x'' and ''xx5''');
select uses, identical, n from compare('select id, w from o where id > 100 order by id');
select uses, identical, n from compare('select id, w from o where id = any (array(select generate_series(1, 4000, 7))) order by id');
select uses, identical, n from compare('select id from o where id > 100 order by id desc');
select identical, n from pg_temp.play('select id, w from o where id > 100 order by id', :'motions');
-- too little for this distance
set pg_lookahead.max_distance = 1024;
select * from activated;
reset pg_lookahead.max_distance;
-- what scans took has come back: still enough for one after many
reset pg_lookahead.scan_memory;
set pg_lookahead.backend_memory = '100kB';
do $$ begin
    for i in 1 .. 100 loop
        perform id from t where few = 1 limit 5;
        begin
            perform 1 / (id - 3001) from t where few = 1;
        exception when division_by_zero then null;
        end;
    end loop;
end $$;
select * from activated;
-- a cursor that holds it
begin;
declare c no scroll cursor for select id, w from t where few = 1;
move 20 from c;
select hash, gist from activated;
move 100 from c;
close c;
select hash, gist from activated;
commit;
reset pg_lookahead.backend_memory;

-- what the functions of an index may raise is kept until its turn: a distance that is too far
create table beyond (id int, p point, q point) with (fillfactor = 20);
insert into beyond select i, point(i % 83, i / 83), point(i % 83, i / 83) from generate_series(1, 6000) i;
insert into beyond select 6000 + i, point(-1.7e308, i), point(-1.7e308, i) from generate_series(1, 3) i;
create index beyond_p on beyond using gist (p);
create index beyond_q on beyond using spgist (q);
vacuum analyze beyond;
-- rows that come before the error, and the error
create function until_error(q text, out n int, out error text) language plpgsql as $$
declare c refcursor; r record; place text;
begin
    n := 0;
    open c no scroll for execute q;
    loop
        fetch c into r;
        exit when not found;
        n := n + 1;
    end loop;
exception when others then
    get stacked diagnostics place = pg_exception_context;
    error := sqlerrm || ' ' || split_part(place, E'\n', 1);
end $$;
create function same(q text, out uses text, out identical bool, out n int, out error text) language plpgsql as $$
declare stock record; ours record;
begin
    set local pg_lookahead.enable = off;
    select * from la_am.until_error(q) into stock;
    set local pg_lookahead.enable = on;
    select * from la_am.until_error(q) into ours;
    n := ours.n;
    error := ours.error;
    uses := la_am.uses(q);
    identical := stock is not distinct from ours;
end $$;
select same('select id from beyond order by p <-> point(1e308, 0)');
select same('select id from beyond order by q <-> point(1e308, 0)');
select same('select id from beyond order by p <-> point(1.7e308, 50)');
select same('select id from beyond order by q <-> point(1e308, 0) limit 3000');
select same('select id from beyond where p <@ circle(point(1e308, 0), 1e307)');
select same('select id from beyond where q <@ box(point(-1.7e308, 0), point(1.7e308, 50))');
-- LIMIT ends before it, and the scan starts over after it was kept
select * from compare('select id from beyond order by q <-> point(1e308, 0) limit 100');
select * from compare('select i, s.id from generate_series(1, 4) i, lateral (select id, q from beyond order by q <-> point(1e308, i) limit 340 + i) s');
select * from compare('select id, p from beyond order by p <-> point(5, 5) limit 500');
select * from compare('select id, q from beyond order by q <-> point(5, 5) limit 500');
select * from compare('select id, 1000 / id from beyond where p <@ box(point(5, 5), point(70, 70))');

-- a tablespace with a concurrency of its own: no scan keeps more reads in flight there
set allow_in_place_tablespaces = on;
create tablespace regress_la_space location '' with (effective_io_concurrency = 3);
create table far tablespace regress_la_space as select * from t;
create index far_few on far using hash (few);
create index far_id on far (id);
vacuum analyze far;
create function capacity(q text) returns setof bigint language plpgsql as $$
begin
    perform count(*) from pg_temp.rows_of(q) r;
    return query execute 'select max(capacity)::bigint from pg_lookahead_last_statement()';
end $$;
select capacity('select id, w from far where few = 1'), capacity('select id, w from far where id > 5 order by id'),
    capacity('select id, w from t where few = 1');
set pg_lookahead.max_distance = 2;
select capacity('select id, w from far where few = 1');
reset pg_lookahead.max_distance;
-- the same as the session's: it is not its own
set effective_io_concurrency = 3;
select capacity('select id, w from far where few = 1');
reset effective_io_concurrency;
-- none: no read is started
alter tablespace regress_la_space set (effective_io_concurrency = 0);
select capacity('select id, w from far where few = 1');
select * from compare('select id, w from far where few = 1');
select * from compare('select id, w from far where id > 5 order by id');
reset pg_lookahead.force;

set client_min_messages = warning;
drop schema la_am cascade;
drop tablespace regress_la_space;
