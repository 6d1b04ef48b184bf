--
-- index_build - indexes built from keys that memcmp orders are those that the server builds.
--
-- Each shape of index is built in four ways: with memory for all rows and with so little
-- that the sort spills, by one process and with two workers.  In each way the server builds
-- the index first; then REINDEX and, after DROP INDEX, CREATE INDEX build it with
-- pg_lookahead.enable_index_build.  "same" says that all pages were the same, byte for byte
-- with the unused space, but for LSN and checksum; "whole" that amcheck found nothing wrong.
-- The level of the root page guards the tests of many levels.  Whether the library has built
-- them at all is tested by 013_index_build.pl.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/helper.inc'
\set schema la_ib
\i :helper
create extension if not exists pageinspect schema public;
create extension if not exists amcheck schema public;
set min_parallel_table_scan_size = 0;
set min_parallel_index_scan_size = 0;
set bytea_output = hex;
set timezone = 'UTC';

-- every page, without LSN and checksum
create function fingerprint(index text) returns text language sql as $$
    select count(*) || ' ' || md5(string_agg(md5(overlay(get_raw_page(index, b::int)
            placing '\x00000000000000000000'::bytea from 1 for 10)), ' ' order by b))
        from generate_series(0, pg_relation_size(index) / current_setting('block_size')::int - 1) b
$$;

create function whole(index text) returns bool language plpgsql as $$
begin
    perform bt_index_parent_check(index, heapallindexed => true, rootdescend => true);
    return true;
exception when others then
    raise warning '%: %', index, sqlerrm;
    return false;
end $$;

create type way as (memory text, workers int);

-- what is index i made by this statement, built by the server and by us?
create function built(definition text, out same bool, out whole bool, out level int)
language plpgsql as $$
declare w way; stock text; ours text; again text;
begin
    same := true;
    whole := true;
    for w in values ('64MB', 0), ('1MB', 0), ('64MB', 2), ('1MB', 2) loop
        perform set_config('maintenance_work_mem', w.memory, true),
            set_config('max_parallel_maintenance_workers', w.workers::text, true),
            set_config('pg_lookahead.enable_index_build', 'off', true);
        execute definition;
        stock := la_ib.fingerprint('i');
        perform set_config('pg_lookahead.enable_index_build', 'on', true);
        reindex index i;
        ours := la_ib.fingerprint('i');
        if ours is distinct from stock or w.workers = 0 and w.memory = '1MB' then
            whole := whole and la_ib.whole('i');
        end if;
        drop index i;
        execute definition;
        again := la_ib.fingerprint('i');
        level := (bt_metap('i')).level;
        drop index i;
        if (ours = stock and again = stock) is not true then
            raise warning '%: %: %, again %, stock has %', definition, w, ours, again, stock;
            same := false;
        end if;
    end loop;
end $$;

-- shapes: one row each; %C is a collation that is not byte order, where the server has one
create table shapes (n serial, name text, definition text, kind text);
create function collation_name() returns text language sql as $$
    select coalesce((select quote_ident(collname) from pg_collation
        where collname in ('en-x-icu', 'en_US.utf8') and collencoding in (-1, 6) order by collname limit 1), '"C"')
$$;
create function all_built(out name text, out same bool, out whole bool, out level int) returns setof record
language plpgsql as $$
declare s la_ib.shapes;
begin
    for s in select * from la_ib.shapes order by n loop
        name := s.name;
        select b.same, b.whole, b.level into same, whole, level from la_ib.built(
            format('create %s index i on %s', s.kind, replace(s.definition, '%C', la_ib.collation_name()))) b;
        return next;
    end loop;
    truncate la_ib.shapes;
end $$;

-- ---- a table with many columns -----------------------------------------------

create type colour as enum ('red', 'green');
alter type colour add value 'blue' before 'green';
alter type colour add value 'black' before 'red';
create domain short as text collate "C" check (length(value) < 100);
create type pair as (a int, b text);

-- r is pseudorandom
create table t (id int, r int, few int2, big int8, a text collate "C", b text collate "C", c text collate "C",
    n numeric, f4 float4, f8 float8, d date, ts timestamp, tz timestamptz, tm time, ttz timetz, u uuid, y bytea,
    y2 bytea, o bool, ip inet, ci cidr, mac macaddr, mac8 macaddr8, bt bit(12), vb varbit, iv interval, e colour, nm name,
    bp char(10) collate "C", vc varchar(20) collate "C", ch "char", oi oid, m money, lsn pg_lsn, x8 xid8, dom short,
    ar int[], ra int4range, j jsonb, p pair, tid_ tid, ov oidvector, coll text, nulls int);
insert into t select i, r,
    i % 7 - 3, case i % 1000 when 1 then 9223372036854775807 when 2 then -9223372036854775808
        else (r - 1000000000)::int8 * (r % 5) * 1000000007 end,
    'county ' || r % 120, case when i % 50 > 0 then repeat('c', r % 3) || r % 1200 else '' end,
    case when i % 30 > 0 then (r % 24000)::text end,
    case i % 100 when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then 1.0 when 5 then 1.00
        else (r % 9000 - 4500)::numeric / 7 end,
    case i % 100 when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then '-0' when 5 then 0
        else r % 5000 / 3.0 - 800 end,
    case i % 100 when 1 then 'NaN' when 2 then 'Infinity' when 3 then '-Infinity' when 4 then '-0' when 5 then 0
        when 6 then 1e-310 when 7 then -1e-310 else r / 3.0 - 300000000 end,
    case i % 500 when 1 then 'infinity' when 2 then '-infinity' when 3 then '4714-11-24 BC' else '2000-01-01'::date + r % 4000 - 2000 end,
    case i % 500 when 1 then 'infinity' when 2 then '-infinity' else '2000-01-01'::timestamp + r * '1 s'::interval end,
    case i % 500 when 1 then 'infinity' when 2 then '-infinity' else '1990-01-01'::timestamptz + r * '1 s'::interval end,
    '00:00'::time + r % 86400 * '1 s'::interval,
    (('00:00'::time + r % 86400 * '1 s'::interval)::text || (array['+00', '-05', '+13', '+05:30'])[r % 4 + 1])::timetz,
    md5((r % 9000)::text)::uuid,
    case when i % 20 > 0 then decode(repeat((array['00', 'ff', '0001', '01', 'fe', '00ff', 'ff00'])[r % 7 + 1], r % 6), 'hex') end,
    decode(repeat((array['00', 'ff', '0100'])[r % 3 + 1], r % 4), 'hex'),
    (array[true, false, null])[r % 3 + 1],
    case r % 3 when 0 then set_masklen(('10.' || r % 4 || '.' || r % 250 || '.7')::inet, r % 17 + 16)
        when 1 then ('2001:db8::' || to_hex(r % 60000) || '/' || r % 64 + 64)::inet else ('192.168.0.' || r % 256)::inet end,
    ('10.' || r % 250 || '.0.0/16')::cidr,
    ('08:00:2b:' || lpad(to_hex(r % 256), 2, '0') || ':02:03')::macaddr,
    ('08:00:2b:' || lpad(to_hex(r % 256), 2, '0') || ':02:03:04:05')::macaddr8,
    (r % 4096)::bit(12), substring(r::bit(32) from 1 for r % 20)::varbit,
    case r % 4 when 0 then '1 mon' when 1 then '30 days' when 2 then (r % 999 - 500) * '1 h'::interval else r % 90 * '1 day 3 h'::interval end,
    (array['red', 'green', 'blue', 'black'])[r % 4 + 1]::colour, 'name ' || r % 3000,
    substr('abc   ', 1, r % 6) || r % 300, substr('xyz  ', 1, r % 5 + 1), chr(r % 127 + 1)::"char",
    case i % 10 when 0 then 4294967295 else r::int8 * 2 end::oid, r % 10000 - 5000, '0/0'::pg_lsn + r::numeric,
    (r % 4000)::text::xid8, 'dom' || r % 40, array[r % 9, r % 70], int4range(r % 100, r % 100 + r % 5),
    jsonb_build_object('k', r % 500), row(r % 50, 'x' || r % 3)::pair, format('(%s,%s)', r % 900, r % 90 + 1)::tid,
    (r % 7 || ' ' || r % 300)::oidvector,
    (array['a', 'A', 'ä', 'b', 'B', 'Äpfel', 'apfel', 'a-b', 'ab', ''])[r % 10 + 1] || (array['', ' ', '1'])[r % 3 + 1] || r % 200,
    case when r % 4 > 0 then r % 10 end
    from (select i, hashint4(i) & 2147483647 as r from generate_series(1, 20000) i) s;
alter table t set (parallel_workers = 2);
analyze t;

insert into shapes (name, definition, kind) values
    ('int', 't (r)', ''),
    ('int, ascending in the table', 't (id)', 'unique'),
    ('bigint desc', 't (big desc)', ''),
    ('smallint, many duplicates', 't (few)', ''),
    ('not deduplicated', 't (few) with (deduplicate_items = off)', ''),
    ('three texts', 't (a, b, c)', ''),
    ('three texts, mixed order', 't (a desc, b nulls first, c desc nulls last)', ''),
    ('three texts, other order', 't (c desc, b desc nulls last, a)', ''),
    ('ints, mixed order', 't (nulls nulls first, few desc nulls last, r desc)', ''),
    ('nulls first, descending', 't (nulls desc nulls first, id)', ''),
    ('nulls last, descending', 't (nulls desc nulls last, c desc)', ''),
    ('only nulls', 't (nullif(id, id))', ''),
    ('include', 't (few, nulls) include (c, r)', ''),
    ('unique', 't (a, id)', 'unique'),
    ('unique, nulls', 't ((case when id % 9 = 0 then id end), (nullif(id % 9, 0))) where id % 9 = 0', 'unique'),
    ('unique, include', 't (id desc) include (a, n)', 'unique'),
    ('unique nulls not distinct', 't ((nullif(id, 77)), (nullif(few, few))) nulls not distinct', 'unique'),
    ('partial', 't (a, r) where few > 0', ''),
    ('partial, no row', 't (a, r) where few > 100', ''),
    ('expressions', 't (lower(a), (r % 100), (few + 1))', ''),
    ('expression, long text', 't ((a || repeat(''x'', 60) || b))', ''),
    ('numeric', 't (n)', ''),
    ('numeric desc, int', 't (n desc, id)', ''),
    ('real', 't (f4)', ''),
    ('double precision', 't (f8 desc nulls first, f4)', ''),
    ('date', 't (d)', ''),
    ('timestamps', 't (ts desc, tz)', ''),
    ('times', 't (tm, ttz)', ''),
    ('time with time zone', 't (ttz)', ''),
    ('uuid', 't (u)', ''),
    ('bytea', 't (y)', ''),
    ('bytea, then bytea', 't (y, y2)', ''),
    ('bytea desc, then bytea', 't (y2 desc, y, id)', ''),
    ('boolean', 't (o, o desc)', ''),
    ('inet', 't (ip)', ''),
    ('cidr, mac addresses', 't (ci, mac, mac8)', ''),
    ('bit strings', 't (bt, vb desc)', ''),
    ('interval', 't (iv)', ''),
    ('enum', 't (e, r)', ''),
    ('name', 't (nm)', ''),
    ('bpchar', 't (bp)', ''),
    ('bpchar, then int', 't (bp, few)', ''),
    ('varchar', 't (vc, bp desc, few)', ''),
    ('"char", oid', 't (ch, oi desc)', ''),
    ('money, pg_lsn, xid8', 't (m, lsn, x8 desc)', ''),
    ('domain', 't (dom, id)', ''),
    ('text_pattern_ops', 't (coll text_pattern_ops)', ''),
    ('varchar_pattern_ops', 't (vc varchar_pattern_ops, a)', ''),
    ('bpchar_pattern_ops', 't (bp bpchar_pattern_ops, few)', ''),
    ('array', 't (ar)', ''),
    ('int, array', 't (few, ar desc)', ''),
    ('range', 't (ra)', ''),
    ('jsonb', 't (j)', ''),
    ('composite type', 't (p)', ''),
    ('tid', 't (tid_)', ''),
    -- whether oidvectors can be deduplicated depends on the server
    ('tid, oidvector', 't (tid_, ov) with (deduplicate_items = off)', ''),
    ('default collation', 't (coll)', ''),
    ('other collation', 't (coll collate %C)', ''),
    ('other collation, then text', 't (few, coll collate %C desc, c)', ''),
    ('text, then other collation', 't (a, coll collate %C nulls first)', ''),
    ('thirty-two columns', 't (few, o, e, nulls, a, b, c, n, f4, f8, d, ts, tz, tm, ttz, u, y, y2, ip, ci, mac, mac8, bt, vb, iv, bp, vc, ch, oi, m, lsn, id)', 'unique'),
    ('fillfactor 100', 't (r) with (fillfactor = 100)', ''),
    ('fillfactor 10', 't (r) with (fillfactor = 10)', ''),
    ('fillfactor 100, duplicates', 't (few, a) with (fillfactor = 100)', ''),
    ('fillfactor 10, texts', 't (a, b, c) with (fillfactor = 10)', ''),
    ('one key for all', 't ((0))', '');
select * from all_built();

-- operator classes that order a known type in another way
create function magnitude_cmp(int, int) returns int language sql immutable strict parallel safe
    as 'select btint4cmp(abs($1), abs($2))';
create function magnitude_lt(int, int) returns bool language sql immutable strict parallel safe as 'select abs($1) < abs($2)';
create function magnitude_le(int, int) returns bool language sql immutable strict parallel safe as 'select abs($1) <= abs($2)';
create function magnitude_eq(int, int) returns bool language sql immutable strict parallel safe as 'select abs($1) = abs($2)';
create function magnitude_ge(int, int) returns bool language sql immutable strict parallel safe as 'select abs($1) >= abs($2)';
create function magnitude_gt(int, int) returns bool language sql immutable strict parallel safe as 'select abs($1) > abs($2)';
create operator <| (leftarg = int, rightarg = int, function = magnitude_lt);
create operator <=| (leftarg = int, rightarg = int, function = magnitude_le);
create operator =| (leftarg = int, rightarg = int, function = magnitude_eq);
create operator >=| (leftarg = int, rightarg = int, function = magnitude_ge);
create operator >| (leftarg = int, rightarg = int, function = magnitude_gt);
create operator class magnitude_ops for type int using btree as
    operator 1 <|, operator 2 <=|, operator 3 =|, operator 4 >=|, operator 5 >|, function 1 magnitude_cmp(int, int);
insert into shapes (name, definition, kind) values
    ('another order of int', 't ((1000 - r % 2000) magnitude_ops)', ''),
    ('int, another order of int', 't (few, (id - 10000) magnitude_ops desc)', '');
select * from all_built();

-- ---- texts -------------------------------------------------------------------

-- prefixes of each other, bytes around those that an encoding might use as marks
create table x (id int, s text collate "C", s2 text collate "C", y bytea);
insert into x select i, repeat(chr(case i % 5 when 0 then 1 when 1 then 2 when 2 then 127 when 3 then 255 else 1114111 end), i % 40)
        || case when i % 3 = 0 then chr(1) else '' end,
    case i % 4 when 0 then null when 1 then '' when 2 then chr(1) else repeat('a', i % 300) end,
    decode(repeat(lpad(to_hex(i % 256), 2, '0'), i % 9), 'hex') || '\x00'::bytea
    from generate_series(1, 12000) i order by hashint4(i);
alter table x set (parallel_workers = 2);
analyze x;
insert into shapes (name, definition, kind) values
    ('texts with odd bytes', 'x (s, s2)', ''),
    ('texts with odd bytes, descending', 'x (s desc, s2 desc nulls last, y desc)', ''),
    ('texts with odd bytes, unique', 'x (s2, s, y, id)', 'unique'),
    ('bytea with odd bytes', 'x (y, s)', '');
select * from all_built();

-- wide keys, stored outside of their rows: three on a page, many levels, truncated late or never
create table w (id int, s text collate "C", same text collate "C", z text collate "C", e text collate "C", p text collate "C", y bytea);
alter table w alter s set storage external, alter same set storage external, alter e set storage external, alter p set storage plain,
    alter y set storage external;
insert into w select i, repeat('w', 2400) || lpad((hashint4(i) & 65535)::text, 6, '0'),
    repeat('s', 2500), repeat(md5((i % 40)::text), 200), repeat(i % 10 || 'x', 1200), repeat('p', i % 600),
    decode(repeat('00ff', 1100) || md5(i::text), 'hex')
    from generate_series(1, 700) i;
alter table w set (parallel_workers = 2);
analyze w;
insert into shapes (name, definition, kind) values
    ('wide keys', 'w (s)', ''),
    ('wide keys, descending, unique', 'w (s desc, id)', 'unique'),
    ('wide keys, all equal', 'w (same)', ''),
    ('compressed keys', 'w (z, id)', ''),
    ('compressed keys, duplicates', 'w (z)', ''),
    ('not compressed, duplicates', 'w (e desc)', ''),
    ('key beside wide ones', 'w (id) include (s)', ''),
    ('wide bytea', 'w (y)', ''),
    ('plain storage', 'w (p, id)', '');
select * from all_built();

-- ---- tables ------------------------------------------------------------------

create table empty (a int, s text collate "C");
create table one as select 1 as a, 'x' collate "C" as s;
create table two as select i as a, null::text collate "C" as s from generate_series(1, 2) i;
create unlogged table un as select (hashint4(i) & 65535) as a, ('u' || i % 300) collate "C" as s from generate_series(1, 9000) i;
create temp table te as select * from un;
-- a page and a row more, and so on
create table p as select i as a, null::text as s from generate_series(1, 368) i;
create table large as select hashint4(i) as a, i % 1000 as b, md5((i % 20000)::text) collate "C" as s
    from generate_series(1, 120000) i;
-- equal values of different lengths, which must not be merged; on one page, since stock's assertions do not expect them
create table blanks as select i % 7 as few, rpad((i % 3)::text, i % 4 + 1)::bpchar as bp from generate_series(1, 200) i;
alter table empty set (parallel_workers = 2);
alter table one set (parallel_workers = 2);
alter table un set (parallel_workers = 2);
alter table large set (parallel_workers = 2);
alter table blanks set (parallel_workers = 2);
insert into shapes (name, definition, kind) values
    ('empty table', 'empty (a, s)', ''),
    ('empty table, unique', 'empty (s)', 'unique'),
    ('one row', 'one (a, s)', 'unique'),
    ('two rows', 'two (s, a desc)', ''),
    ('blanks', 'blanks (bp collate "C")', ''),
    ('blanks, other collation', 'blanks (bp collate %C, few)', ''),
    ('blanks, bpchar_pattern_ops', 'blanks (few, bp bpchar_pattern_ops desc)', ''),
    ('unlogged', 'un (a, s)', ''),
    ('temporary', 'te (s, a)', ''),
    ('a page', 'p (a) where a <= 366', 'unique'),
    ('a page and a row', 'p (a) where a <= 367', 'unique'),
    ('a page and two rows', 'p (a) where a <= 368', 'unique'),
    ('large, int', 'large (a)', ''),
    ('large, texts', 'large (s, b desc, a)', ''),
    ('large, long posting lists', 'large (b)', ''),
    ('large, posting lists, full pages', 'large (s) with (fillfactor = 100)', '');
select * from all_built();

-- rows that are dead, that have been updated, with HOT and without; columns dropped and added
create table dead (id int, gone text, a int, s text collate "C", v int) with (fillfactor = 60);
insert into dead select i, 'gone', i % 100, 's' || i % 700, 0 from generate_series(1, 8000) i;
create index dead_a on dead (a);
delete from dead where id % 5 = 0;
update dead set v = v + 1 where id % 3 = 0;
update dead set v = v + 1 where id % 9 = 0;
update dead set a = a + 1000 where id % 7 = 0;
alter table dead drop column gone;
alter table dead add column later int default 42;
alter table dead add column latest text collate "C" default 'none';
begin;
savepoint s;
update dead set v = 99 where id % 11 = 0;
delete from dead where id % 13 = 0;
insert into dead select -i, i, 'rolled back' from generate_series(1, 500) i;
rollback to s;
insert into dead select -i, i, 's' || i, 1, null, null from generate_series(1, 500) i;
commit;
insert into shapes (name, definition, kind) values
    ('dead and updated rows', 'dead (s, a)', ''),
    ('dead and updated rows, unique', 'dead (id)', 'unique'),
    ('columns added later', 'dead (later, latest desc, v)', '');
select * from all_built();
-- rows that this transaction has changed
begin;
update dead set v = v + 1 where id % 4 = 0;
delete from dead where id % 17 = 0;
savepoint s;
insert into dead select 100000 + i, i, 's' || i, i from generate_series(1, 300) i;
release s;
insert into shapes (name, definition, kind) values
    ('rows changed by the transaction', 'dead (s, a, v)', ''),
    ('rows changed by the transaction, unique', 'dead (id)', 'unique');
select * from all_built();
rollback;

\set VERBOSITY terse
set client_min_messages = warning;
drop schema la_ib cascade;
drop extension pageinspect, amcheck;
