--
-- descent - searches of src/btree/descent.c lead where the index says.
--
-- Each index is searched for keys that it holds and for mixtures of them.
--
\set ECHO none
\getenv library LA_TEST_DESCENT
create schema la_descent;
create extension pageinspect schema la_descent;
set search_path = la_descent, public;
create function la_test_search(index regclass, keys regclass, ncolumns int, stride int,
    meanwhile text, out searched bigint, out wrong bigint, out first_wrong text, out given_up bigint)
    as :'library' language c strict;
create function la_test_remember(index regclass, stride int) returns bool as :'library' language c strict;
create function la_test_recall(index regclass, out searched bigint, out wrong bigint, out first_wrong text,
    out given_up bigint) as :'library' language c strict;
create function la_test_time(index regclass, ncolumns int, searches int, seed int)
    returns float8[] as :'library' language c strict;

-- every prefix of the index's columns; keys from `keys`
create function check_index(name text, keys text, out searches bool, out wrong bigint, out first_wrong text,
    out given_up bigint)
language plpgsql as $$
declare n bigint := 0; t record; cols int;
begin
    wrong := 0;
    given_up := 0;
    select indnkeyatts into cols from pg_index where indexrelid = name::regclass;
    for c in 1 .. cols loop
        select * into t from la_test_search(name::regclass, keys::regclass, c, 2, '');
        n := n + t.searched;
        wrong := wrong + t.wrong;
        given_up := given_up + t.given_up;
        if t.wrong > 0 and first_wrong is null then
            first_wrong := format('%s columns: %s', c, t.first_wrong);
        end if;
    end loop;
    searches := n > 0;
end $$;
create function check_index(name text, out searches bool, out wrong bigint, out first_wrong text,
    out given_up bigint)
language sql begin atomic select * from check_index(name, name); end;
\set ECHO all

create table t (i2 int2, i4 int4, i8 int8, o oid, f4 float4, f8 float8, n numeric, b bool,
    c "char", s text, sc text collate "C", v varchar collate "C", bp bpchar(20), nm name, y bytea,
    d date, ts timestamp, tz timestamptz, ti time, iv interval, u uuid, ip inet, mac macaddr,
    a int[], r int4range, j jsonb, bit bit varying, e int4 not null);
insert into t
    select i % 300 - 150, (i::bigint * 7919 % 100003)::int - 50000, i * 1000000007::bigint - 5e12::bigint,
        (i::bigint * 900000007 % 4294967291)::oid, i / 7.0, sin(i), (i % 1000) / 13.0, i % 2 = 0,
        chr(32 + i % 90)::"char", 'key ' || i % 4000, repeat(chr(97 + i % 5), i % 30) || i % 50, repeat('prefix ', 5) || i,
        'b' || i % 3000, ('n' || i % 2500)::name, decode(md5(i::text), 'hex'),
        '2000-01-01'::date + i % 5000 - 2500, 'epoch'::timestamp + (i % 9999) * interval '1 d', 'epoch'::timestamptz + i * interval '7 s',
        '00:00'::time + i * interval '1 s', (i % 777) * interval '1 h', md5((i % 6000)::text)::uuid,
        ('10.' || i % 200 || '.' || i % 7 || '.1')::inet, ('08:00:2b:01:02:' || to_hex(16 + i % 200))::macaddr,
        array[i % 20, i % 7], int4range(i % 100, i % 100 + 5), jsonb_build_object('k', i % 500), (i % 64)::bit(6), i % 10
    from generate_series(1, 12000) i;
-- nulls, infinities, extremes, values that index tuples compress
update t set i2 = null, i4 = null, s = null, sc = null, ts = null, u = null where e = 7;
update t set i4 = -2147483648, i8 = 9223372036854775807, ts = 'infinity', tz = '-infinity', d = 'infinity', f8 = 'NaN' where i2 = 3;
update t set sc = repeat('compressed ', 300) || i4 % 50, y = convert_to(repeat('compressed ', 300) || i4 % 50, 'UTF8') where e = 3;
vacuum t;
analyze t;

-- with keys that it holds, and those of an index of all rows on an index of half of them
create function check_columns() returns table (col text, searches bool, wrong bigint, first_wrong text, given_up bigint)
language plpgsql as $$
declare name text; option text;
begin
    for name in select attname from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum loop
        foreach option in array array['', 'desc', 'nulls first', 'desc nulls last'] loop
            execute format('create index idx on t (%I %s) with (fillfactor = 30)', name, option);
            col := concat_ws(' ', name, option);
            execute format('create index half on t (%I %s) with (fillfactor = 30) where e in (3, 4, 5, 8)', name, option);
            select i.searches and h.searches, i.wrong + h.wrong, coalesce(i.first_wrong, h.first_wrong),
                i.given_up + h.given_up
                into searches, wrong, first_wrong, given_up
                from check_index('idx') i, check_index('half', 'idx') h;
            return next;
            drop index idx, half;
        end loop;
    end loop;
end $$;
select * from check_columns() where wrong > 0 or not searches or given_up > 0;

-- keys of another type
create function check_types(names text[]) returns table (col text, key text, wrong bigint, first_wrong text)
language plpgsql as $$
begin
    foreach col in array names loop
        foreach key in array names loop
            execute format('create index idx on t (%I desc)', col);
            execute format('create index keys on t (%I)', key);
            select i.wrong, i.first_wrong into wrong, first_wrong from check_index('idx', 'keys') i;
            return next;
            drop index idx, keys;
        end loop;
    end loop;
end $$;
select count(*), sum(wrong) from check_types('{i2,i4,i8}');
select count(*), sum(wrong) from check_types('{d,ts,tz}');
select count(*), sum(wrong) from check_types('{f4,f8}');
select * from check_types('{s,nm}') where wrong > 0;

-- several columns: fixed and variable widths, nulls between them, directions, truncated pivots
create index two_ints on t (e, i4) with (fillfactor = 20);
create index three_texts on t (sc, s, v) with (fillfactor = 20);
create index mixed on t (i2 desc, sc nulls first, ts desc nulls last, u) with (fillfactor = 20);
create index prefixed on t (v, i8) with (fillfactor = 20);
create index posting on t (e, b);
create index covering on t (e, sc) include (v) with (fillfactor = 20);
create index narrow on t (b, c, i2, i8, nm);
-- four levels, pivot tuples too long to be remembered
create table wide as
    select (select string_agg(md5(g::text), '') from generate_series(1, 25) g) || lpad((i * 7919 % 6000)::text, 4, '0') as p, i
    from generate_series(1, 6000) i;
create index wide_p on wide (p collate "C", i);
select (bt_metap('wide_p')).level >= 3 as deep;
select * from check_index('wide_p');
-- duplicates over many pages: their pivots end with a row address
create table same with (autovacuum_enabled = off) as select i / 3000 as k from generate_series(1, 12000) i;
create index same_k on same (k) with (deduplicate_items = off);
select * from check_index('same_k');
create temp table temporary as select i % 500 as k from generate_series(1, 9000) i;
create index temporary_k on temporary (k);
select * from check_index('temporary_k');
select * from check_index('two_ints');
select * from check_index('three_texts');
select * from check_index('mixed');
select * from check_index('prefixed');
select * from check_index('posting');
select * from check_index('covering');
select * from check_index('narrow');

-- pages split, deleted and half empty
insert into t select * from t where e in (1, 2);
delete from t where i4 between -20000 and 20000 or e = 2;
vacuum t;
insert into t select * from t where e = 5;
select * from check_index('two_ints');
select * from check_index('three_texts');
select * from check_index('mixed');
select * from check_index('posting');

-- entries marked dead
delete from same where k = 1;
set enable_seqscan = off;
set enable_bitmapscan = off;
select count(*) from same where k = 1;
select * from check_index('same_k');

-- pages split after their number was found, and before they are searched
create table growing as select i * 10 as k from generate_series(1, 3000) i;
create index growing_k on growing (k);
create sequence grown;
select searched > 0 as searches, wrong, first_wrong, given_up
    from la_test_search('growing_k', 'growing_k', 1, 10,
        'insert into growing select 5 + (nextval(''grown'') * 70 + i * 10) % 30000 from generate_series(1, 50) i');
select searched > 0 as searches, wrong, first_wrong, given_up
    from la_test_search('growing_k', 'growing_k', 1, 100,
        'insert into growing select 40000 + nextval(''grown'') from generate_series(1, 900)');
-- ... or deleted; on pages that are gone there is nothing to find
select la_test_remember('growing_k', 20);
delete from growing where k % 20000 < 12000;
vacuum growing;
select searched > 0 as searches, wrong, first_wrong from la_test_recall('growing_k');

-- one leaf page; no page at all
create table small (i int);
create index on small (i);
select * from la_test_search('small_i_idx', 'same_k', 1, 1000, '');
insert into small select i % 5 from generate_series(1, 100) i;
select * from check_index('small_i_idx');

-- the measurements search for the same
select t[2] = t[4] as same_places from la_test_time('mixed', 4, 1000, 1) t;
select t[2] = t[4] as same_places from la_test_time('posting', 2, 1000, -1) t;

\set ECHO none
set client_min_messages = warning;
