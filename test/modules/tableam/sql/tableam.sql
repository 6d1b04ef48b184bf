--
-- tableam - tables of an access method that is not known are read as in stock, whatever is read beside them.
--
-- "same" must be true; "n" is the number of stock's rows.
--
\getenv library LA_TEST_TABLEAM
load 'pg_lookahead';
set client_min_messages = warning;
create extension pg_lookahead;
create function la_test_table_handler(internal) returns table_am_handler language c as :'library';
create access method la_test type table handler la_test_table_handler;

create table t (id int, k int, s text, w text) using la_test;
insert into t select i, i * 7919 % 1009, 'x' || i % 50, repeat('w', 200) from generate_series(1, 5000) i;
create index on t (id);
create index on t (k) include (id);
create index on t using hash (s);
create table h (k int, v int, w text);
insert into h select i % 1009, i, repeat('w', 200) from generate_series(1, 6000) i;
create index on h (k);
-- heap and the other one beside each other, below one parent
create table p (id int, k int, s text, w text) partition by range (id);
create table p1 partition of p for values from (0) to (2000);
create table p2 partition of p for values from (2000) to (4000) using la_test;
create table p3 partition of p for values from (4000) to (9000);
insert into p select * from t;
create index on p (id);
create index on p (k);
-- values out of line
create table big (id int, b text) using la_test;
alter table big alter b set storage external;
insert into big select i, repeat(chr(65 + i % 26), 5000) from generate_series(1, 200) i;
create table key (id int primary key) using la_test;
insert into key select i from generate_series(0, 2000) i;
create table child (id int references key, v int);
create table target (id int primary key, v int) using la_test;
create index on target using hash (v);
insert into target select i * 3, i from generate_series(1, 2000) i;
vacuum analyze t, h, p, big, key, target;

create function result(q text) returns text[] language plpgsql as $$
declare r record; out text[] := '{}';
begin
    for r in execute q loop out := out || r::text; end loop;
    return out;
end $$;
create function result_of_one(q text) returns text[] language plpgsql as $$
declare out text[];
begin
    execute format('select array_agg(q::text) from (%s) q', q) into out;
    return out;
end $$;
create function compare(q text, out same bool, out n int) language plpgsql as $$
declare stock text[]; ours text[]; way text[]; s text;
begin
    perform set_config('pg_lookahead.enable', 'off', false);
    stock := result(q);
    same := true;
    foreach way slice 1 in array array[array['on', '1', '100', '8'], array['off', '0', '0', '0']] loop
        perform set_config('pg_lookahead.enable', 'on', false), set_config('pg_lookahead.force', way[1], false),
            set_config('pg_lookahead.miss_threshold', way[2], false), set_config('pg_lookahead.min_read_time', way[3], false),
            set_config('pg_lookahead.attach_threshold', way[4], false), set_config('pg_lookahead.cache_prefetch_threshold', way[3], false);
        ours := result(q);
        same := same and ours is not distinct from stock;
        ours := result_of_one(q);
        same := same and coalesce(ours, '{}') is not distinct from stock;
    end loop;
    reset pg_lookahead.enable;
    n := cardinality(stock);
end $$;

set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_memoize = off;
\pset format unaligned
\pset tuples_only
-- subqueries over its rows: sequential, TID range, index, index-only, sampled, locked
select * from compare('select id, (select max(v) from h where h.k = t.k) from t');
select * from compare('select id, (select max(v) from h where h.k = t.k) from t where ctid between ''(2,1)'' and ''(40,1)''');
set enable_seqscan = off;
select * from compare('select id, (select max(v) from h where h.k = t.k) from t where id < 2000 order by id');
select * from compare('select k, (select max(v) from h where h.k = t.k) from t where k < 700 order by k');
select * from compare('select id, (select max(v) from h where h.k = t.k) from t where s = ''x7''');
reset enable_seqscan;
select * from compare('select id, (select max(v) from h where h.k = t.k) from t tablesample system (50) repeatable (1)');
select * from compare('select id, (select max(v) from h where h.k = t.k) from t where ctid = any (array(select ctid from t where id % 3 = 0))');
-- subqueries that look into it
select * from compare('select v, (select max(id) from t where t.k = h.k) from h where v < 3000');
select * from compare('select v, exists (select from t where t.id = h.v and w > ''a'') from h');
-- joins on both sides, and of partitions of either kind
select * from compare('select t.id, h.v from t join h on h.k = t.k where t.id < 500');
select * from compare('select t.id, h.v from h join t on h.k = t.k where h.v < 500');
select * from compare('select p.id, h.v from p join h on h.k = p.k where p.id between 1900 and 2100');
select * from compare('select h.v, p.w from h join p on p.id = h.v');
select * from compare('select p.id, (select max(v) from h where h.k = p.k) from p');
set enable_seqscan = off;
select * from compare('select p.id, (select max(v) from h where h.k = p.k) from p where id < 4500');
select * from compare('select k, count(*), max(w) from t where k between 5 and 600 group by k');
select * from compare('select s, id from t where s in (''x1'', ''x2'') and w > ''a''');
select * from compare('select id, k from t where id = any (array(select generate_series(1, 4000, 7)))');
reset enable_seqscan;
set enable_nestloop = off;
set enable_hashjoin = on;
select * from compare('select t.id, h.v from t join h on h.v = t.id');
select * from compare('select t.id, h.v from h join t on h.v = t.id');
reset enable_nestloop;
-- values
select * from compare('select id, md5(b) from big');
select * from compare('select id, md5(b) from big order by id desc');
copy (select id, md5(b) from big where id < 3) to stdout;
set pg_lookahead.force = on;
copy big to '/dev/null';
-- writes
insert into child select i % 1500, i from generate_series(1, 3000) i;
insert into target select v, k from h on conflict do nothing;
insert into target select v, k from h on conflict (id) do update set v = target.v + 1;
update target set v = v + 1 where id % 2 = 0;
delete from key where id > 1600;
update p set k = k + 1;
merge into target using h on target.id = h.v when matched then update set v = 1 when not matched then insert values (h.v, h.k);
select count(*), sum(hashtext(target::text)) from target;
select count(*), sum(hashtext(p::text)) from p;
-- why
select id, (select max(v) from h where h.k = t.k) from t where id < 0;
create view reasons as select distinct kind, reason from pg_lookahead_last_statement() where reason is not null order by 1;
select count(m) from (select id, (select max(v) from h where h.k = t.k) m from t offset 0) s;
select * from reasons;
vacuum full big;
select count(*), sum(hashtext(b)) from big;
