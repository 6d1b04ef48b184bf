--
-- normalizedkey - keys of src/indexbuild/normalizedkey.c order rows as the operator classes do.
--
-- Indexes have a predicate that is never true: only the rows and the definition count, and
-- no value is too long.
--
\set ECHO none
\getenv library LA_TEST_NORMALIZEDKEY
set client_min_messages = warning;
create schema la_normalizedkey;
set search_path = la_normalizedkey, public;
create function la_test_normalizedkey(index regclass, most int, out "rows" bigint, out nulls bigint, out pairs bigint,
    out equal bigint, out wrong bigint, out first_wrong text) as :'library' language c strict;
create function la_test_normalizedkey_why(index regclass) returns text as :'library' language c strict;
create function la_test_normalizedkey_time(index regclass, rounds int) returns float8 as :'library' language c strict;

-- The values of a query, each twice and some null, as a column of that type, in all orders.
create function check_values(type text, class text, query text, most int default 2000)
returns table ("rows" bigint, nulls bigint, pairs bigint, equal bigint, wrong bigint, first_wrong text)
language plpgsql as $$
declare option text; r record; n int := 0;
begin
    execute format('create temp table x (a %s)', type);
    execute format('insert into x select v from (%s) q(v)', query);
    execute 'insert into x select * from x';
    insert into x values (null), (null), (null);
    foreach option in array array['', 'desc', 'nulls first', 'desc nulls last'] loop
        execute format('create index idx on x (a %s %s) where false', class, option);
        select * into r from la_test_normalizedkey('idx', most) t;
        if n = 0 then
            rows := r.rows; nulls := r.nulls; pairs := r.pairs; equal := r.equal; wrong := 0;
        end if;
        wrong := wrong + r.wrong;
        if first_wrong is null and r.first_wrong is not null then
            first_wrong := concat_ws(' ', option, r.first_wrong);
        end if;
        if (r.rows, r.nulls, r.pairs, r.equal) is distinct from (rows, nulls, pairs, equal) then
            first_wrong := coalesce(first_wrong, 'other counts ' || option);
        end if;
        drop index idx;
        n := n + 1;
    end loop;
    drop table x;
    return next;
end $$;
-- a number from a number, without an order
create function scatter(i bigint) returns bigint immutable language sql as
    $$ select ('x' || substr(md5(i::text), 1, 16))::bit(64)::bigint $$;
-- strings of all kinds of bytes: common prefixes, lengths around whole words, 01 and FF
create view strings as
    select repeat(chr(97 + i % 3), i) s from generate_series(0, 40) i
    union all select repeat('prefix_', n) || c || repeat(d, m)
        from unnest(array[0, 2]) n, unnest(array['', chr(1), chr(2), ' ', 'a', chr(127), chr(255), chr(1114111)]) c,
            unnest(array['', chr(1), ' ', 'b', 'ü']) d, unnest(array[1, 2]) m
    union all select md5(i::text) from generate_series(1, 20) i
    union all select repeat('x', i) || chr(1) || repeat('x', 9 - i) from generate_series(0, 9) i;
\set ECHO all

-- integers and what is stored as one
select * from check_values('bool', '', 'values (true), (false)');
select * from check_values('"char"', '', $$select v from unnest(array['', 'a', 'b', '~', 'Z', E'\\001', E'\\200', E'\\377']::"char"[]) v$$);
select * from check_values('int2', '', 'select v::int2 from generate_series(-32768, 32767, 257) v union all values (-32768), (-1), (0), (32767), (256)');
select * from check_values('int4', '', 'select scatter(i)::bit(64)::bit(32)::int4 from generate_series(1, 200) i union all values (-2147483648), (-2147483647), (-1), (0), (1), (256), (2147483646), (2147483647)');
select * from check_values('int8', '', 'select scatter(i) from generate_series(1, 200) i union all values (-9223372036854775808), (-9223372036854775807), (-1), (0), (1), (256), (9223372036854775806), (9223372036854775807)');
select * from check_values('oid', '', 'select (scatter(i) & 4294967295)::oid from generate_series(1, 200) i union all values (0::oid), (1), (2147483647), (2147483648), (4294967295)');
select * from check_values('regtype', '', $$values ('int4'::regtype), ('int8'), ('text'), ('-')$$);
select * from check_values('xid8', '', $$select (scatter(i) & 9223372036854775807)::text::xid8 from generate_series(1, 100) i union all values ('0'::xid8), ('1'), ('9223372036854775808'), ('18446744073709551615')$$);
select * from check_values('pg_lsn', '', $$values ('0/0'::pg_lsn), ('0/1'), ('1/0'), ('0/FFFFFFFF'), ('80000000/0'), ('FFFFFFFF/FFFFFFFF'), ('FFFFFFFF/FFFFFFFE')$$);
select * from check_values('money', '', $$select (scatter(i) / 1000)::numeric::money from generate_series(1, 50) i union all values ('0'::money), ('-1'), ('-92233720368547758.08'), ('92233720368547758.07')$$);
create type mood as enum ('sad', 'ok', 'happy', 'ecstatic');
select * from check_values('mood', '', $$select unnest(enum_range(null::mood))$$);
select * from check_values('tid', '', $$select format('(%s,%s)', b, o)::tid from unnest(array[0, 1, 65535, 65536, 2147483648, 4294967295]) b, unnest(array[0, 1, 255, 256, 65535]) o$$);

-- floating point
select * from check_values('float4', '', $$select (scatter(i) / 1e17)::float4 from generate_series(1, 200) i union all values ('-0'::float4), (0), ('NaN'), ('-NaN'), ('infinity'), ('-infinity'), (1e-45), (-1e-45), (3.4028235e38), (-3.4028235e38), (1), (-1), (1.0000001)$$);
select * from check_values('float8', '', $$select scatter(i) / 1e17 from generate_series(1, 200) i union all values ('-0'::float8), (0), ('NaN'), ('-NaN'), ('infinity'), ('-infinity'), (5e-324), (-5e-324), (1.7976931348623157e308), (-1.7976931348623157e308), (1), (-1), (1.0000000000000002)$$);

-- dates and times
select * from check_values('date', '', $$select '2000-01-01'::date + i * 997 from generate_series(-50, 50) i union all values ('infinity'::date), ('-infinity'), ('4714-11-24 BC'), ('5874897-12-31'), ('1999-12-31')$$);
select * from check_values('time', '', $$select '00:00'::time + i * interval '7.000001 min' from generate_series(0, 200) i union all values ('00:00'::time), ('24:00'), ('23:59:59.999999')$$);
select * from check_values('timestamp', '', $$select '2000-01-01'::timestamp + i * interval '997.000001 h' from generate_series(-50, 50) i union all values ('infinity'::timestamp), ('-infinity'), ('4714-11-24 BC'), ('294276-12-31 23:59:59.999999'), ('1999-12-31 23:59:59.999999')$$);
select * from check_values('timestamptz', '', $$select '2000-01-01 00:00+00'::timestamptz + i * interval '997.000001 h' from generate_series(-50, 50) i union all values ('infinity'::timestamptz), ('-infinity'), ('4714-11-25 00:00+00 BC'), ('294276-12-31 23:59:59.999999+00')$$);
select * from check_values('timetz', '', $$select format('%s:%s%s', lpad(h::text, 2, '0'), m, z)::timetz from generate_series(0, 23) h, unnest(array['00', '30', '59:59.999999']) m, unnest(array['+00', '+01', '-01', '+15:59', '-15:59', '+00:00:01']) z union all values ('24:00+15'::timetz), ('24:00-15:59')$$);
-- (infinite ones are of 17)
select * from check_values('interval', '', $$
    select make_interval(months => m, days => d, secs => s)
        from unnest(array[0, 1, -1, 12, 2147483646, -2147483647]) m, unnest(array[0, 30, -30, 1, -1, 360, 2147483646, -2147483647]) d,
            unnest(array[0, 86400, -86400, 0.000001, -0.000001, 86399.999999, 2592000, 9e11, -9e11]) s
    union all select case when current_setting('server_version_num')::int >= 170000 then v else replace(v, 'infinity', '7777 h') end::interval
        from unnest(array['infinity', '-infinity']) v$$);

-- addresses
select * from check_values('uuid', '', $$select md5(i::text)::uuid from generate_series(1, 100) i union all values ('00000000-0000-0000-0000-000000000000'::uuid), ('00000000-0000-0000-0000-000000000001'), ('00000000-0000-0000-0100-000000000000'), ('ffffffff-ffff-ffff-ffff-ffffffffffff'), ('ffffffff-ffff-ffff-ffff-fffffffffffe'), ('ffffffff-ffff-ffff-0000-000000000000')$$);
select * from check_values('macaddr', '', $$select substr(md5(i::text), 1, 12)::macaddr from generate_series(1, 100) i union all values ('00:00:00:00:00:00'::macaddr), ('00:00:00:00:00:01'), ('ff:ff:ff:ff:ff:ff'), ('ff:ff:ff:ff:ff:fe'), ('80:00:00:00:00:00'), ('7f:ff:ff:ff:ff:ff')$$);
select * from check_values('macaddr8', '', $$select substr(md5(i::text), 1, 16)::macaddr8 from generate_series(1, 100) i union all values ('00:00:00:00:00:00:00:00'::macaddr8), ('00:00:00:00:00:00:00:01'), ('ff:ff:ff:ff:ff:ff:ff:ff'), ('ff:ff:ff:ff:ff:ff:ff:fe'), ('80:00:00:00:00:00:00:00'), ('7f:ff:ff:ff:ff:ff:ff:ff')$$);
create view addresses as
    select format('%s/%s', a, b)::inet v
        from unnest(array['0.0.0.0', '255.255.255.255', '10.0.0.0', '10.0.0.1', '10.1.0.0', '10.1.255.7', '10.128.0.0', '128.0.0.0', '11.0.0.0']) a,
            unnest(array[0, 1, 7, 8, 9, 15, 16, 17, 31, 32]) b
    union all select format('%s/%s', a, b)::inet
        from unnest(array['::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::', '2001:db8::1', '2001:db8:8000::', '::10.0.0.1', 'a00::']) a,
            unnest(array[0, 1, 8, 31, 32, 33, 64, 127, 128]) b;
select * from check_values('inet', '', 'table addresses');
select * from check_values('cidr', '', 'select v::cidr from addresses');

-- text and bytes
select * from check_values('text collate "C"', '', 'table strings');
select * from check_values('text collate "POSIX"', '', 'table strings');
select * from check_values('text', '', 'table strings');
select * from check_values('varchar(60) collate "C"', '', 'table strings');
select * from check_values('varchar', 'varchar_pattern_ops', 'table strings');
create collation la_libc (provider = libc, locale = 'C.UTF-8');
select * from check_values('text collate la_libc', 'text_pattern_ops', 'table strings');
select * from check_values('bpchar', '', $$select s || repeat(' ', length(s) % 3) from strings$$);
select * from check_values('char(45)', '', 'select left(s, 40) from strings');
select * from check_values('bpchar collate la_libc', 'bpchar_pattern_ops', $$select s || repeat(' ', length(s) % 3) from strings$$);
select * from check_values('name', '', 'select left(s, 60)::name from strings');
select * from check_values('bytea', '', $$select convert_to(s, 'UTF8') from strings
    union all select decode(repeat(a, n) || b || c, 'hex')
        from unnest(array['00', '01', '02', 'ff', '00ff', '61']) a, unnest(array['', '00', '01', '02', 'fe', 'ff']) b, unnest(array['', '00', 'ff']) c,
            unnest(array[0, 1, 8]) n$$);
select * from check_values('varbit', '', $$select (i::bit(16)::text)::varbit from generate_series(0, 65535, 771) i
    union all select substr(i::bit(10)::text, 1, n)::varbit from unnest(array[0, 1, 512, 1023, 341]) i, generate_series(0, 10) n
    union all select (repeat('1', n) || repeat('0', m))::varbit from unnest(array[0, 1, 7, 8, 9, 16, 64, 65]) n, unnest(array[0, 1, 7, 8, 9, 63]) m$$);
select * from check_values('bit(11)', '', 'select i::bit(11) from generate_series(0, 2047, 13) i');
select * from check_values('oidvector', '', $$values (''::oidvector), ('0'), ('1'), ('4294967295'), ('1 2'), ('1 0'), ('2147483648 1'), ('1 2 3'), ('0 0 0 0'), ('4294967295 4294967295')$$);

-- numeric
select * from check_values('numeric', '', $$
    select sign * m * 10::numeric ^ e from unnest(array[1, -1]) sign, unnest(array[1, 1.0, 1.00, 9.999, 9999, 10000, 10001, 1.0001, 12345678.87654321, 0.5]) m,
        unnest(array[-5, -4, -3, 0, 1, 2, 3, 4, 5, 8, 20]) e
    union all select v::numeric from unnest(array['NaN', 'infinity', '-infinity', '0', '0.0000', '-0', '-0.00', '100000000.0', '100000000']) v
    union all select (s || v)::numeric from unnest(array['', '-']) s,
        unnest(array['1e236', '1e237', '1e239', '1e240', '1e243', '1e244', '1e245', '2e248', '1e252', '1e256', '1e260', '9e1000', '1e131071', '9999e131068',
            '1e-232', '1e-235', '1e-236', '1e-237', '1e-240', '1e-241', '1e-256', '1e-260', '3e-16383', '1e-16383', '1e-16382']) v$$);
select * from check_values('numeric(12, 3)', '', $$select scatter(i) / 1e13 from generate_series(1, 200) i union all values (0), ('NaN'), (0.001), (-0.001), (999999999.999)$$);

-- domains
create domain percent as int4 check (value between 0 and 100);
create domain word as varchar(20) collate "C";
create domain word_of_word as word;
create domain good_mood as mood check (value >= 'ok');
select * from check_values('percent', '', 'select generate_series(0, 100, 7)');
select * from check_values('word', '', 'select left(s, 20) from strings');
select * from check_values('word_of_word', '', 'select left(s, 20) from strings');
select * from check_values('good_mood', '', $$values ('ok'::mood), ('happy'), ('ecstatic')$$);

-- values that are compressed, or elsewhere
create table toasted (t text collate "C", b bytea, n numeric, v varbit, c bpchar collate "C");
insert into toasted select repeat(s, 200), convert_to(repeat(s, 200), 'UTF8'), (repeat('1234500067890000', 400 + i::int % 3) || '.5')::numeric,
    repeat('0110100', 8000 + i::int % 4)::varbit, repeat(s, 200) || repeat(' ', 100) from (select s, row_number() over () i from strings) q where length(s) between 9 and 32;
alter table toasted alter t set storage external, alter b set storage external, alter n set storage external, alter v set storage external, alter c set storage external;
insert into toasted select * from toasted;
insert into toasted select repeat(s, 200), convert_to(repeat(s, 200), 'UTF8'), (repeat('1234500067890000', 400 + i::int % 3) || '.5')::numeric,
    repeat('0110100', 8000 + i::int % 4)::varbit, repeat(s, 200) || repeat(' ', 100) from (select s, row_number() over () i from strings) q where length(s) between 9 and 32;
insert into toasted values ('short', 'short', 1, B'0', 'short'), ('', '', 0, B'', '   ');
select count(distinct pg_column_size(t)) > 1 as text, count(distinct pg_column_size(n)) > 1 as "numeric", pg_relation_size(reltoastrelid) > 0 as elsewhere
    from toasted, pg_class where pg_class.oid = 'toasted'::regclass group by reltoastrelid;
create index toasted_t on toasted (t) where false;
create index toasted_b on toasted (b desc) where false;
create index toasted_n on toasted (n) where false;
create index toasted_v on toasted (v) where false;
create index toasted_c on toasted (c) where false;
create index toasted_all on toasted (n desc, c, v, t desc, b) where false;
-- computed values have headers of four bytes
create index toasted_expression on toasted (left(t, 5), (n + 1) desc, (b || 'x')) where false;
select i, r.* from unnest(array['t', 'b', 'n', 'v', 'c', 'all', 'expression']) i, la_test_normalizedkey(('toasted_' || i)::regclass, 2000) r;

-- several columns in all kinds of orders, and other columns behind them
create table mixed as select (scatter(i) % 3)::int4 i, (array[null, '', 'a', 'ab', 'b' || chr(1), 'b'])[1 + abs(scatter(i + 1000) % 6)] collate "C" t,
    (array[null, 0, -0.5, 1.50, 1.5, 15000, 'NaN'])[1 + abs(scatter(i + 2000) % 7)]::numeric n, (array[null, '', '\x00', '\x0000', '\xff', '\x01'])[1 + abs(scatter(i + 3000) % 6)]::bytea y,
    nullif(scatter(i + 4000) % 4, 0)::int2 s, (array[null, 'ff000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '00000000-0000-0000-0000-000000000000'])[1 + abs(scatter(i + 5000) % 4)]::uuid u,
    (array[null, '1 mon', '30 d', '1 d', '24 h'])[1 + abs(scatter(i + 6000) % 5)]::interval v, (array[null, 'a', 'a ', 'b  ', ''])[1 + abs(scatter(i + 7000) % 5)]::bpchar c,
    (array[null, '10.0.0.0/8', '10.0.0.1/8', '10.0.0.0/32', '::/0'])[1 + abs(scatter(i + 8000) % 5)]::inet a, (array[null, '-0', '0', 'NaN', '1'])[1 + abs(scatter(i + 9000) % 5)]::float8 f,
    (array[null, 'x', '', 'xy'])[1 + abs(scatter(i + 10000) % 4)]::name m, (array[null, '', '0', '00', '1', '000000000'])[1 + abs(scatter(i + 11000) % 6)]::varbit b,
    nullif(abs(scatter(i + 12000) % 3), 2)::int::bool o
    from generate_series(1, 250) i;
create function check_mixed(indexes int) returns table ("rows" bigint, pairs bigint, wrong bigint, first_wrong text)
language plpgsql as $$
declare columns text; r record; names text[] := '{i,t,n,y,s,u,v,c,a,f,m,b,o}'; options text[] := '{"", "desc", "nulls first", "desc nulls last"}';
begin
    pairs := 0; wrong := 0;
    for k in 1 .. indexes loop
        select string_agg(names[1 + (abs(scatter(k * 10 + j)) % 13)::int] || ' ' || options[1 + (abs(scatter(k * 10 + j + 100000)) % 4)::int], ', ')
            into columns from generate_series(1, 2 + k % 4) j;
        execute format('create index idx on mixed (%s) include (i, t) where false', columns);
        select * into r from la_test_normalizedkey('idx', 1000) t;
        rows := r.rows; pairs := pairs + r.pairs; wrong := wrong + r.wrong;
        if r.first_wrong is not null and first_wrong is null then
            first_wrong := columns || ': ' || r.first_wrong;
        end if;
        drop index idx;
    end loop;
    return next;
end $$;
select * from check_mixed(60);

-- many rows: neighbours and a few others
create table many as select (scatter(i) % 1000)::int4 a, md5((scatter(i) % 500)::text) collate "C" b, (scatter(i * 3) % 100000) / 1000.0 c from generate_series(1, 20000) i;
create index many_idx on many (a, b desc, c);
select * from la_test_normalizedkey('many_idx', 20);
create table nothing (a int primary key);
select * from la_test_normalizedkey('nothing_pkey', 20);
select la_test_normalizedkey_time('many_idx', 1) > 0 as takes_time;

-- which columns are taken, and why others are not
create type odd_mood as enum ('l1', 'l2');
alter type odd_mood add value 'l0' before 'l1';
create type pair as (a int, b int);
create function reverse_cmp(int, int) returns int immutable strict language sql as 'select btint4cmp($2, $1)';
create operator class reverse_ops for type int4 using btree as
    operator 1 >, operator 2 >=, operator 3 =, operator 4 <=, operator 5 <, function 1 reverse_cmp(int, int);
create operator class same_ops for type int4 using btree as
    operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 btint4cmp(int, int);
create table columns (number serial, type text, class text default '');
insert into columns (type) values ('int4'), ('text'), ('text collate "C"'), ('text collate ucs_basic'), ('text collate la_libc'),
    ('varchar collate la_libc'), ('bpchar collate la_libc'), ('name'), ('name collate la_libc'), ('word'), ('word collate la_libc'), ('percent'), ('numeric'), ('mood'), ('odd_mood'),
    ('int4[]'), ('text[]'), ('int4range'), ('int4multirange'), ('pair'), ('jsonb'), ('tsvector'), ('tsquery'), ('regclass'), ('interval'), ('inet'), ('cidr'), ('oidvector');
insert into columns (type, class) values ('text collate la_libc', 'text_pattern_ops'), ('varchar collate la_libc', 'varchar_pattern_ops'), ('bpchar collate la_libc', 'bpchar_pattern_ops'),
    ('varchar collate "C"', 'varchar_ops'), ('varchar', 'text_ops'), ('int4', 'reverse_ops'), ('int4', 'same_ops'), ('pair', 'record_image_ops');
create function why(type text, class text) returns text language plpgsql as $$
declare result text;
begin
    execute format('create temp table x (number int, b %s)', type);
    execute format('create index idx on x (number, b %s)', class);
    result := coalesce(la_test_normalizedkey_why('idx'), 'taken');
    drop table x;
    return result;
end $$;
select type, class, why(type, class) from columns order by number;
-- the columns that are included do not matter, nor does what an expression is made of
create table parts (a int, t text collate la_libc, j jsonb);
create index parts_include on parts (a) include (t, j);
create index parts_expression on parts (length(t), (j ->> 'k') collate "C", (t collate "C"));
create index parts_collated on parts (a, (j ->> 'k') collate la_libc);
create index parts_hash on parts using hash (a);
select i, la_test_normalizedkey_why(('parts_' || i)::regclass) from unnest(array['include', 'expression', 'collated', 'hash']) i;
-- labels that come later, behind all others and before one
create table moods (m mood);
create index moods_idx on moods (m);
alter type mood add value 'elated';
select la_test_normalizedkey_why('moods_idx');
alter type mood add value 'bored' before 'ok';
select la_test_normalizedkey_why('moods_idx');

-- ranks: what has no code, in any order of arrival
select * from check_values('text collate la_libc', '', 'select s from strings order by scatter(length(s))');
select * from check_values('varchar collate la_libc', '', 'select md5(i::text) from generate_series(1, 900) i');
select * from check_values('bpchar collate la_libc', '', $$select s from strings union all select s || '  ' from strings$$);
select * from check_values('name collate la_libc', '', 'select left(s, 20)::name from strings');
select * from check_values('int[]', '', 'select array[scatter(i) % 7, scatter(i) % 5, null]::int[] from generate_series(1, 300) i');
select * from check_values('int[]', '', 'select array[i] from generate_series(1, 900) i');
select * from check_values('int[]', '', 'select array[-i] from generate_series(1, 900) i');
select * from check_values('int[]', '', 'select array[i * (1 - i % 2 * 2)] from generate_series(1, 900) i');
select * from check_values('int[]', '', 'select array[scatter(i) % 1000000]::int[] from generate_series(1, 900) i');
select * from check_values('int4range', '', $$select int4range((scatter(i) % 20)::int, 20 + (scatter(i) % 11)::int) from generate_series(1, 200) i union all values ('empty'::int4range), ('(,)'), ('(,5]'), ('[5,)')$$);
select * from check_values('pair', '', 'select row(scatter(i) % 5, nullif(scatter(i) % 7, 0))::pair from generate_series(1, 200) i');
select * from check_values('odd_mood', '', 'select unnest(enum_range(null::odd_mood))');
select * from check_values('jsonb', '', $$values ('1'::jsonb), ('"a"'), ('{"a": 1}'), ('[1, 2]'), ('[1, 3]'), ('{}'), ('[]'), ('null'), ('true')$$);
select * from check_values('tsvector', '', $$values ('a b c'::tsvector), ('a:1 b:2'), (''), ('z')$$);
-- not by comparisons that may do anything
select * from check_values('int4', 'reverse_ops', 'select scatter(i)::bit(64)::bit(32)::int4 from generate_series(1, 200) i');

\set ECHO none
