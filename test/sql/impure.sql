--
-- impure - statements that fail, or that have effects, do so as without look-ahead.
--
-- Rows are taken ahead only where nobody can tell: stock would have evaluated the same
-- expressions, in an order that nothing depends on.  Each statement here runs a function whose
-- calls can be counted, whose value changes during the statement, or which fails for a row that
-- stock does not come to.  "same" must be true; the other columns tell what stock does.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/impure.inc'
\set schema la_impure
\i :helper
create table a (x int primary key, f int);
insert into a select i, i from generate_series(1, 5000) i;
create table b (y int, z int);
insert into b select i, i from generate_series(1, 5) i;
create table c (id int, pad text);
insert into c select i, repeat('x', 50) from generate_series(1, 20000) i;
create index on c (id);
-- one whose rows the planner does not know, so that it is hashed
create table big (x int, y int);
insert into big values (1, 1);
vacuum analyze a, b, c, big;
insert into big select i, i from generate_series(2, 300000) i;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_material = off;
set enable_memoize = off;
set enable_bitmapscan = off;
set max_parallel_workers_per_gather = 0;
set work_mem = '64MB';
set join_collapse_limit = 1;
set from_collapse_limit = 1;

-- 1. Errors of rows that stock does not come to.  A node below is read to its end at each
-- execution, but there is one for each row of a.
select plan_of('select a.x, g from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x');
select * from pg_temp.effects('select a.x, g, c.pad from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x', 'm2180 n');
select * from pg_temp.effects('select a.x, g, c.pad from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x', 'm2189 n n');
select * from pg_temp.effects('select a.x, g, c.pad from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x', 'loop');
select * from pg_temp.effects('select a.x, g, c.pad from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x');
select * from pg_temp.effects('select a.x, g, c.pad from (a cross join lateral generate_series(1, 2 / (2191 - a.x) + 1) g) left join c on c.id = a.x limit 2185');
-- Sort, and Limit above it
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join c on c.id = a.x limit 6');
select * from pg_temp.effects('select a.x, l.q, note(c.id) from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join c on c.id = a.x');
-- expressions of Limit itself
select * from pg_temp.effects('select a.x, l.y, c.id from (a cross join lateral (select y from b limit 7 / (7 - a.x)) l) left join c on c.id = a.x', 'n n n n');
select * from pg_temp.effects('select a.x, l.y, c.id from (a cross join lateral (select y from b order by z offset 7 / (7 - a.x) - 1) l) left join c on c.id = a.x', 'm3 n');
select * from pg_temp.effects('select a.x, l.y, c.id from (a cross join lateral (select y from b limit 7 / (7 - a.x)) l) left join c on c.id = a.x');
select * from pg_temp.effects('select c.id from (select x from a limit (select 30 / (z - 5) from b limit 1 offset 4)) a left join c on c.id = a.x');
-- Agg, plain, hashed and sorted; SetOp; WindowAgg; ProjectSet; VALUES; Append; recursion
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select sum(10 / (7 - a.x + b.y * 0)) q from b) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select count(*) q from b group by 10 / (7 - a.x + b.y * 0)) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select distinct on (z) 10 / (7 - a.x + b.y * 0) q from b order by z) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b except select 3) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select sum(10 / (7 - a.x + b.y)) over (order by z) q from b where y < 1 + a.x * 0) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select generate_series(1, 10 / (7 - a.x)) q offset 0) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (values (1), (10 / (7 - a.x))) l (q)) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (select 1 q union all select 10 / (7 - a.x) from b where y = 5) l) left join c on c.id = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, c.id from (a cross join lateral (with recursive r (q) as (select 1 union all select q + 10 / (7 - a.x) from r where q < 3) select q from r) l) left join c on c.id = a.x', 'n n n');
-- the inner side's search key
set enable_seqscan = off;
select * from pg_temp.effects('select a.x, a2.f, c.id from (a join a a2 on a2.x = 60 / (70 - a.x)) left join c on c.id = a.x', 'm30 n');
set enable_seqscan = on;
-- a parent that stops: LIMIT, EXISTS, a CTE, a scalar subquery
select * from pg_temp.effects('select exists (select from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join c on c.id = a.x)');
select * from pg_temp.effects('select b.y, (select count(*) from (select c.id from (a cross join lateral (select 10 / (7 - a.x + b2.y * 0) q from b b2 order by 1 limit 1) l) left join c on c.id = a.x limit b.y) z) from b');
select * from pg_temp.effects('select b.y from b where y in (select c.id from (a cross join lateral (select 10 / (7 - a.x + b2.y * 0) q from b b2 order by 1 limit 1) l) left join c on c.id = a.x where a.x < 6)');
select * from pg_temp.effects('with w as materialized (select c.id from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join c on c.id = a.x) select id from w limit 4');
-- the same below hash joins
set enable_hashjoin = on;
set enable_indexscan = off;
set enable_indexonlyscan = off;
select plan_of('select a.x, l.q, big.y from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join big on big.x = a.x');
select * from pg_temp.effects('select a.x, l.q, big.y from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join big on big.x = a.x', 'n n n');
select * from pg_temp.effects('select a.x, l.q, big.y from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join big on big.x = a.x', 'm6 n');
select * from pg_temp.effects('select a.x, l.q, note(big.y) from (a cross join lateral (select 10 / (7 - a.x + b.y * 0) q from b order by 1 limit 1) l) left join big on big.x = a.x');
select * from pg_temp.effects('select a.x, g, big.y from (a cross join lateral generate_series(1, 2 / (91 - a.x) + 1) g) left join big on big.x = a.x', 'm80 n');
select * from pg_temp.effects('select a.x, l.y, big.y from (a cross join lateral (select y from b limit 7 / (7 - a.x)) l) left join big on big.x = a.x', 'n n n n');
set enable_hashjoin = off;
set enable_indexscan = on;
set enable_indexonlyscan = on;

-- 2. Functions that are stable by their label, and whose value changes during the statement
create function off() returns int language sql stable as $$ select current_setting('my.off')::int $$;
create function drawn() returns bigint language plpgsql stable as $$ begin return (select last_value from sq); end $$;
-- keys of nested loops, with and without reuse of row addresses
select * from pg_temp.effects($$select count(*) filter (where x - id = 100), count(*) from (select a.x, c.id, c.pad, case when a.x = 2000 then set_config('my.off', '-100', true) end z from a left join c on c.id = a.x + current_setting('my.off')::int offset 0) s$$);
select * from pg_temp.effects($$select a.x, c.id, c.pad, case when a.x % 500 = 0 then set_config('my.off', (-a.x / 100)::text, true) end z from a left join c on c.id = a.x + current_setting('my.off')::int$$);
select * from pg_temp.effects($$select a.x, c.id, c.pad, case when a.x % 500 = 0 then set_config('my.off', (-a.x / 100)::text, true) end z from a left join c on c.id = a.x + off()$$);
select * from pg_temp.effects($$select a.x, c.id, c.pad, case when c.id % 500 = 0 then nextval('sq') end z from a left join c on c.id = a.x + drawn()$$);
-- filters of the outer side; its target list
select * from pg_temp.effects($$select a.x, c.id, c.pad, case when c.id = 2000 then set_config('my.off', '2500', true) end z from (select * from a where x >= current_setting('my.off')::int) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.x, a.o, c.id, c.pad, case when c.id = 2000 then set_config('my.off', '2500', true) end z from (select x, off() o from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.x, c.id, c.pad, case when c.id = 2000 then set_config('my.off', '2500', true) end z from (select * from a where x >= (select off() + a.f * 0)) a left join c on c.id = a.x$$);
-- a cursor between whose fetches it changes
select * from pg_temp.effects($$select a.x, c.id, c.pad from (select * from a where x >= current_setting('my.off')::int) a left join c on c.id = a.x$$, 'm1000 =2000 n n n');
select * from pg_temp.effects($$select a.x, c.id, c.pad from a left join c on c.id = a.x + off()$$, 'm1000 =2000 n n n');
-- hash joins
set enable_hashjoin = on;
set enable_nestloop = off;
select plan_of($$select * from c left join big on big.x = c.id + current_setting('my.off')::int$$);
select * from pg_temp.effects($$select count(*) filter (where x - id = 100), count(*) from (select big.x, c.id, case when c.id = 50 then set_config('my.off', '100', true) end z from c left join big on big.x = c.id + current_setting('my.off')::int offset 0) s$$);
select * from pg_temp.effects($$select big.x, c.id, case when c.id = 50 then set_config('my.off', '100', true) end z from c left join big on big.x = c.id + off() where c.id < 1000$$);
select * from pg_temp.effects($$select big.x, c.id, case when c.id = 50 then set_config('my.off', '100', true) end z from (select * from c where id >= off()) c left join big on big.x = c.id where c.id < 1000$$);
select * from pg_temp.effects($$select big.x, c.id from c left join big on big.x = c.id + off()$$, 'm1000 =2000 n n n');
set enable_hashjoin = off;
set enable_nestloop = on;

-- 3. Volatile at one remove
create function even(i int) returns bool language plpgsql volatile as $$ begin return note(i) is not null and i < 900; end $$;
create function switched() returns bool language sql volatile as $$ select current_setting('my.off') <> '100' $$;
create domain noted as int check (even(value));
create domain guarded as int check (switched());
-- domains' constraints: of a value, in an array, of a record's column
create type pair as (p noted, q int);
select * from pg_temp.effects($$select a.v, c.id, case when c.id = 5 then set_config('my.off', '100', true) end z from (select x, x::guarded v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, x::noted v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id from (select x, x::noted v from a offset 0) a left join c on c.id = a.x$$, 'n n');
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, array[x]::noted[] v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, row(x, 1)::pair v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, x::text::noted v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, ('{' || x || '}')::noted[] v from a offset 0) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.v, c.id, note(c.id) from (select x, json_populate_record(null::pair, json_build_object('p', x)) v from a offset 0) a left join c on c.id = a.x$$);
-- aggregates' functions, below GroupAggregate and as a window function
create function add_noted(s int, i int) returns int language plpgsql volatile as $$ begin return s + note(i); end $$;
create function add_pure(s int, i int) returns int language sql immutable as $$ select s + i $$;
create function end_noted(s int) returns int language plpgsql volatile as $$ begin return note(s); end $$;
create aggregate sum_noted (int) (sfunc = add_noted, stype = int, initcond = '0');
create aggregate sum_ended (int) (sfunc = add_pure, finalfunc = end_noted, stype = int, initcond = '0');
set enable_hashagg = off;
select * from pg_temp.effects($$select a.x, a.s, note(c.id) from (select x, sum_noted(f) s from a group by x) a left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select a.x, a.s, note(c.id) from (select x, sum_ended(f) s from a group by x) a left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select a.x, a.s, c.id from (select x, sum_noted(f) s from a group by x) a left join c on c.id = a.x$$, 'n n n');
select * from pg_temp.effects($$select a.x, a.s, note(c.id) from (select x, sum_noted(f) over (partition by x) s from a) a left join c on c.id = a.x where a.x < 1000$$);
reset enable_hashagg;
-- InitPlans and SubPlans
select * from pg_temp.effects($$select c.id, nextval('sq') n from (select * from a where case when f = 4 then (select nextval('sq')) > 0 else true end) a left join c on c.id = a.x where a.x < 1008$$);
select * from pg_temp.effects($$select c.id, nextval('sq') n from (select x, case when f = 4 then (select nextval('sq')) end v from a offset 0) a left join c on c.id = a.x limit 900$$);
select * from pg_temp.effects($$select c.id, note(c.id) from (select * from a where exists (select from b where y = note(a.f % 5))) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$with w as (select nextval('sq') n from b) select c.id, nextval('sq') n from (select * from a where case when f = 4 then (select sum(n) from w) > 0 else true end) a left join c on c.id = a.x where a.x < 1008$$);
-- operators, comparison functions, SQL functions that are inlined and others, sets
create function less_noted(p int, q int) returns bool language plpgsql immutable as $$ begin return note(p) < q; end $$;
create operator <<<< (leftarg = int, rightarg = int, function = less_noted);
create function equal_noted(p int, q int) returns bool language plpgsql immutable as $$ begin return note(p) = q; end $$;
create operator ==== (leftarg = int, rightarg = int, function = equal_noted);
create function cmp_noted(p int, q int) returns int language plpgsql immutable as $$ begin return note(sign(p - q)::int); end $$;
create operator class noted_ops for type int using btree as operator 1 <<<<, operator 3 ====, function 1 cmp_noted(int, int);
create function inlined(i int) returns int language sql volatile as $$ select note(i) $$;
create function not_inlined(i int) returns int language sql volatile as $$ select note(i) from b limit 1 $$;
create function some_of(i int) returns setof int language plpgsql volatile rows 1 as $$ begin return next note(i); return next 2; end $$;
select * from pg_temp.effects($$select a.x, note(c.id) from (select * from a where x <<<< 200) a left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select a.x, note(c.id) from (select * from a where f < 30 order by f using <<<<) a left join c on c.id = a.x$$);
select * from pg_temp.effects($$select a.x, note(c.id) from (select inlined(x) x from a offset 0) a left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select a.x, note(c.id) from (select not_inlined(x) x from a offset 0) a left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select s, note(c.id) from (a cross join lateral some_of(a.x) s) left join c on c.id = a.x where a.x < 1000$$);
select * from pg_temp.effects($$select s, note(c.id) from (select x, some_of(x) s from a where x < 1000) a left join c on c.id = a.x$$);
-- hash joins
set enable_hashjoin = on;
set enable_nestloop = off;
select * from pg_temp.effects($$select a.v, big.y, note(big.x) from (select x, x::noted v from a offset 0) a left join big on big.x = a.x$$);
select * from pg_temp.effects($$select a.v, big.y from (select x, x::noted v from a offset 0) a left join big on big.x = a.x$$, 'n n');
set enable_hashagg = off;
select * from pg_temp.effects($$select a.x, a.s, note(big.y) from (select x, sum_noted(f) s from a where x < 1000 group by x) a left join big on big.x = a.x$$);
reset enable_hashagg;
select * from pg_temp.effects($$select big.y, nextval('sq') n from (select * from a where x < 1009 and case when f = 4 then (select nextval('sq')) > 0 else true end) a left join big on big.x = a.x$$);
set enable_hashjoin = off;
set enable_nestloop = on;

-- Statements that write see the same
create table w (i int, t text);
create function before_w() returns trigger language plpgsql as $$ begin perform set_config('my.off', (new.i / 50)::text, true), note(new.i); return new; end $$;
create trigger t before insert or update on w for each row execute function before_w();
select * from pg_temp.effects($$with n as (insert into w select c.id, a.v from (select x, off() v from a offset 0) a left join c on c.id = a.x where a.x < 1000 returning *) select * from n$$, 'loop');
insert into w select i, i from generate_series(1, 1000) i;
create function changing(q text) returns setof w language plpgsql as $$ begin execute q; return query select * from w order by i, t; end $$;
select * from pg_temp.effects($$select * from changing('insert into w select c.id, a.v from (select x, off() v from a offset 0) a left join c on c.id = a.x where a.x < 1000')$$);
select * from pg_temp.effects($$select * from changing('update w set t = a.v from (select x, off() v from a offset 0) a left join c on c.id = a.x where w.i = a.x')$$);
select * from pg_temp.effects($$select * from changing('delete from w using (select x from a where x >= off() offset 0) a left join c on c.id = a.x where w.i = a.x and set_config(''my.off'', (w.i + 2)::text, true) is not null')$$);

-- Rows that a security barrier keeps from a function: it does not see them early, either
create function tells(i int) returns bool language plpgsql immutable cost 0.0001 as $$ begin return note(i) > 0; end $$;
create view guarded_a with (security_barrier) as select * from a where f % 3 = 0 and f > off();
select * from pg_temp.effects($$select s.x, note(c.id) from (select * from guarded_a where tells(x)) s left join c on c.id = s.x where s.x < 1000$$);
select * from pg_temp.effects($$select s.x, c.id from (select * from guarded_a where tells(x)) s left join c on c.id = s.x$$, 'n n n');

-- What a hash key and another expression have in common by their text only: each Var is another column
create table texts (x text, y text);
insert into texts select case i when 2 then 'bad x2' else i::text end, case i when 1 then 'bad y1' else '1' end
    from generate_series(1, 3000) i;
vacuum analyze texts;
set enable_hashjoin = on;
set enable_nestloop = off;
select plan_of('select sum(texts.y::int) from texts left join big on big.x = texts.x::int');
select * from pg_temp.effects('select sum(texts.y::int) from texts left join big on big.x = texts.x::int');
set enable_hashjoin = off;
set enable_nestloop = on;
-- Several keys of an inner scan: those evaluated with one that may fail, may fail as well, or have effects
create table pairs (i int, j int);
insert into pairs select i, i from generate_series(1, 10000) i;
create index on pairs (i, j);
vacuum analyze pairs;
create function noted_key(i int) returns int language plpgsql stable as $$ begin return note(i); end $$;
select * from pg_temp.effects('select count(*) from texts left join pairs on pairs.i = texts.x::int and pairs.j > texts.y::int');
select * from pg_temp.effects('select count(*) from a left join pairs on pairs.i = 100 / (a.x - 50) and pairs.j > noted_key(a.f)');
-- A sequence's row is not under the snapshot
select * from pg_temp.effects($$select s.v, nextval('sq'), c.id from (select last_value v from sq union all select last_value from sq union all select last_value from sq) s left join c on c.id = s.v$$);
-- Functions of the server that call others: a cast to json, the input function of a type
create type mood as enum ('ok', 'bad');
create function mood_json(m mood) returns json language plpgsql as $$ begin perform set_config('my.off', nextval('sq')::text, true); return '1'; end $$;
create cast (mood as json) with function mood_json(mood);
create table moods as select i id, 'ok'::mood m from generate_series(1, 2000) i;
select * from pg_temp.effects($$select c.id, current_setting('my.off') from (select id from moods where to_json(m)::text <> '' offset 0) o left join c on c.id = o.id$$);
select current_setting('server_version_num')::int >= 160000 as has_input_tests \gset
create function setting_check(i int) returns bool language plpgsql as $$ begin return set_config('my.off', i::text, true) <> ''; end $$;
create domain setting_int as int check (setting_check(value));
\set input_test 'select true as same;'
\if :has_input_tests
\set input_test 'select same from pg_temp.effects($$select c.id, current_setting(''my.off'') from (select id from moods where pg_input_is_valid(id::text, ''setting_int'') offset 0) o left join c on c.id = o.id$$);'
\endif
:input_test
-- statement_timestamp() is another for each FETCH
create table later as select i id, case when i <= 100 then '-infinity' else clock_timestamp() + '300 ms' end ts from generate_series(1, 200) i;
set pg_lookahead.force = on;
begin;
declare c cursor for select o.id, c.id from (select id from later where ts <= statement_timestamp() offset 0) o left join c on c.id = o.id;
move 100 from c;
select pg_sleep(0.5) is null as slept;
fetch 1 from c;
rollback;
reset pg_lookahead.force;

-- rows to come of correlated subqueries, and of LATERAL subqueries with a LIMIT
select * from pg_temp.effects('select a.x, note(a.x), (select count(pad) from c where c.id = a.x) from a where a.x < 300');
select * from pg_temp.effects('select a.x, (select count(pad) from c where c.id = a.x and note(a.x) > 0) from a where a.x < 300');
select * from pg_temp.effects('select a.x, case when a.x < 200 then (select count(pad) from c where c.id = 100 / (200 - a.x)) end from a where x < 400');
select * from pg_temp.effects('select s.x, (select count(pad) from c where c.id = s.x) from (select x, note(x) n from a where x < 300 offset 0) s where n > 0');
select * from pg_temp.effects('select s.x, (select count(pad) from c where c.id = s.x) from (select x, note(x) n from a where x < 300 offset 0) s where n > 0', 'm20 n n');
select * from pg_temp.effects('select s.x, (select count(pad) from c where c.id = s.x) from (select x, 10 / (50 - x) q from a offset 0) s where q < 100', 'm30 n n');
select * from pg_temp.effects('select s.x, l.id from (select x, nextval(''sq'') n from a where x < 300 offset 0) s, lateral (select id from c where c.id = s.x order by pad limit 2) l');
select * from pg_temp.effects('select s.x, l.id from (select x, 10 / (50 - x) q from a offset 0) s, lateral (select id from c where c.id = s.x order by pad limit 2) l limit 40');
select * from pg_temp.effects('select s.x, l.id from (select x, 10 / (50 - x) q from a offset 0) s, lateral (select id from c where c.id = s.x order by pad limit 2) l', 'loop');
-- the same with rows of CTEs, whose plan may be run ahead, of functions, and of VALUES
select * from pg_temp.effects('with s as materialized (select x, note(x) n from a where x < 300) select s.x, (select count(pad) from c where c.id = s.x) from s where n > 0');
select * from pg_temp.effects('with s as materialized (select x, note(x) n from a where x < 300) select s.x, (select count(pad) from c where c.id = s.x) from s where n > 0', 'm20 n n');
select * from pg_temp.effects('with s as materialized (select x, 10 / (50 - x) q from a) select s.x, (select count(pad) from c where c.id = s.x) from s where q < 100', 'm30 n n');
select * from pg_temp.effects('with s as materialized (select x, 10 / (50 - x) q from a) select s.x, (select count(pad) from c where c.id = s.x) from s limit 40');
select * from pg_temp.effects('with s as materialized (select x, 10 / (250 - x) q from a) select s.x, note(s.x), (select count(pad) from c where c.id = s.x) from s');
select * from pg_temp.effects('with s as materialized (select x, off() v from a where x < 300) select s.x, s.v, set_config(''my.off'', x::text, true), (select count(pad) from c where c.id = s.x) from s');
select * from pg_temp.effects('with s as materialized (select x, off() v from a where x < 300) select s.x, s.v, (select count(pad) from c where c.id = s.v + s.x) from s', 'loop');
select * from pg_temp.effects('with s as materialized (select x, 10 / (25 - x) q from a where x < 30) select s.x, t.q, note(t.x), (select count(pad) from c where c.id = s.x) from s join s t on t.x < 20');
select * from pg_temp.effects('with s as materialized (select x, 10 / (25 - x) q from a) select x, (select count(pad) from c where c.id = s.x) from s where x < (select min(x) + 20 from (select x from s limit 3) z) limit 15');
select * from pg_temp.effects('select g, note(g), (select count(pad) from c where c.id = g) from generate_series(1, 300) g');
select * from pg_temp.effects('select g, (select count(pad) from c where c.id = g) from generate_series(1, 300) g where note(g) > 0 and 10 / (250 - g) < 100');
select * from pg_temp.effects('select g, (select count(pad) from c where c.id = g) from unnest(array(select note(x) from a where x < 300)) g', 'm20 n n');
select * from pg_temp.effects('select a.x, l.* from a, lateral (select g, (select count(pad) from c where c.id = g + a.x) from generate_series(note(a.x), a.x + 5) g offset 0) l where a.x < 30');
select * from pg_temp.effects('select v, (select count(pad) from c where c.id = v) from (values (1), (2), (note(3)), (4), (10 / (5 - 5 * (select min(y) from b))), (6)) s (v)');

-- Keys of inner scans that may fail: the error is that of the row's turn, or is none
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x + 1000 / (700 - a.x)');
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x + 1000 / (700 - a.x)', 'm690 n n');
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x + 1000 / (700 - a.x)', 'loop');
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x + 1000 / (700 - a.x) limit 699');
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x * 2000000 / 2000000');
select * from pg_temp.effects('select count(*) from (a join c on c.id = a.x + 1) left join pairs on pairs.i = c.id and pairs.j = 100 / (c.id - 900)');
select * from pg_temp.effects('select a.x, note(a.x), l.pad from a, lateral (select pad from c where c.id = a.x + 10 / (300 - a.x) limit 1) l');
create domain small as int check (value < 400);
select * from pg_temp.effects('select a.x, note(a.x), c.id from a left join c on c.id = a.x::small');
-- ... for every second row, which the server does not evaluate; behind an InitPlan, and in a function of a variable
select * from pg_temp.effects('select a.x, note(a.x), case when a.x % 2 = 0 then (select count(pad) from c where c.id = a.x / (1 - a.x % 2)) end from a where a.x < 600');
select * from pg_temp.effects('select a.x, (select count(pad) from c where c.id = a.x / (a.x - (select min(y) * 500 from b))) from a where a.x < 600');
create function summed(n int) returns bigint language plpgsql as $$
declare d int := n; r record; total bigint := 0;
begin
    for r in select a.x, c.id from a left join c on c.id = a.x + 100 / (d - a.x) where a.x < 600 loop
        total := total + note(r.id);
        d := 0;
    end loop;
    return total;
end $$;
select * from pg_temp.effects('select summed(700)');
select * from pg_temp.effects('select summed(555)');
-- ... that read a setting, though declared immutable
create table names (t text);
insert into names select t from (select 'k' || i as k from generate_series(1, 2000) i) s, lateral (values (k), ('"' || k || '"')) v (t);
create index on names (t);
vacuum analyze names;
select * from pg_temp.effects($$select a.x, set_config('quote_all_identifiers', case when a.x % 100 < 50 then 'off' else 'on' end, true), n.t from (select x, 'k' || x as k from a where x < 2000 offset 0) a left join names n on n.t = quote_ident(a.k)$$);
-- ... of rows, which hold something when they fail; of a record that is not assigned; where each error ends the session
create type made as (j json);
create table made_of as select i as x, row('1')::made as r, row('1')::made as s from generate_series(1, 2000) i;
vacuum analyze made_of;
set plan_cache_mode = force_generic_plan;
create function unassigned(assign bool, arithmetic bool) returns text language plpgsql as $$
declare r record; n bigint; m bigint;
begin
    if assign then
        select 1 as f into r;
    end if;
    if arithmetic then
        select count(*) into n from (select a.x, c.pad from (select * from a offset 0) a left join c on c.id = case when a.x > 150 then a.x + r.f else a.x end limit 150) s;
    else
        select count(*) into n from (select a.x, c.pad from (select * from a offset 0) a left join c on c.id = case when a.x > 150 then r.f else a.x end limit 150) s;
        select count(s) into m from (select case when a.x < 0 then (select count(pad) from c where c.id = r.f and c.id < a.x) end as s from a) s;
    end if;
    return concat(n, ' ', m);
end $$;
set pg_lookahead.force = on;
select count(*), count(pad) from (select m.x, c.pad from made_of m left join c on c.id = case when m.x > 150 then (m.r = m.s)::int else m.x end limit 150) s;
select unassigned(assign, arithmetic) from (values (true), (false)) a (assign), (values (true), (false)) b (arithmetic);
set exit_on_error = on;
select count(*) from (select a.x, c.id from (select * from a offset 0) a left join c on c.id = case when a.x > 150 then 1 / (a.x - a.x) else a.x end limit 150) s;
reset exit_on_error;
reset pg_lookahead.force;
reset plan_cache_mode;
-- ... and in a cursor of somebody who may call the function, fetched by somebody who may not
create role regress_la_reader;
revoke execute on function gcd(int, int) from public;
create function opened(c refcursor) returns refcursor language plpgsql security definer as $$
begin
    open c no scroll for select a.x, c.id from a left join c on c.id = gcd(a.x, 700) + a.x order by a.x;
    return c;
end $$;
grant usage on schema la_impure to regress_la_reader;
set pg_lookahead.force = on;
begin;
set local role regress_la_reader;
select opened('c');
move 200 from c;
fetch 2 from c;
select gcd(4, 6);
rollback;
reset pg_lookahead.force;
grant execute on function gcd(int, int) to public;
drop owned by regress_la_reader;
drop role regress_la_reader;

-- Errors besides those of an expression's functions: each comes at row 70, and the outer side
-- fails at row 75.  Rows of subplans and InitPlans, LIMIT and OFFSET, a table's row, a variable,
-- conflicting collations, frames of windows.
create table twice (k int, v int);
insert into twice select i, i from generate_series(1, 200) i;
insert into twice values (70, 70);
create table o (x int, z int, e int[], q bigint, k int);
insert into o select i, 75 - i, case i when 70 then array[1, 2] when 90 then '{}' else array[1] end, 69 - i, (i * 7919) % 20000 + 1 from generate_series(1, 300) i;
vacuum analyze twice, o;
select * from pg_temp.alone('select count(c.pad), sum((select v from twice where k = o.x)) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k');
select * from pg_temp.alone('select count(c.pad), sum((select 1 from twice where k = o.x and (v, v) = (select v, v from twice where k = o.x))) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k');
select * from pg_temp.alone('select count(c.pad), count(array(select e from (values (o.e), (array[1])) v (e))) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k');
select * from pg_temp.alone('select count(c.pad), sum(l.y) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k cross join lateral (select y from b limit o.q) l');
select * from pg_temp.alone('select count(c.pad), sum(l.y) from (select x, z, q, k from o where 100 / z < 1000) o left join c on c.id = o.k cross join lateral (select y from b limit o.q) l');
select * from pg_temp.alone('select count(c.pad), sum(l.y) from (select x, z, q, k from o where 100 / z < 1000) o left join c on c.id = o.k cross join lateral (select y from b offset o.q) l');
select * from pg_temp.alone('select count(c.pad) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k where case when o.x = 70 then (select v from twice where k = 70) > 1 else true end');
select * from pg_temp.alone('select count(c.pad), sum(case when o.x = 70 then (select v from twice where k = 70) end) from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k');
create function ctas(q text) returns int language plpgsql as $$ begin execute 'create temp table made as ' || q; return 1; end $$;
select * from pg_temp.alone($$select ctas('select o.x, c.pad, case when o.x = 70 then repeat(''x'', 10)::name else ''y'' end' || (select string_agg(format(', case when o.x = 70 then ''%s''::name else null end c%s', i, i), '') from generate_series(1, 200) i) || ' from (select x, z, e, q, k from o where 100 / z < 1000) o left join c on c.id = o.k')$$);
create function not_assigned(assign bool) returns int language plpgsql as $$
declare r record;
begin
    if assign then
        select 1 as f into r;
    end if;
    perform count(c.pad), count(case when o.x = 70 then r.f when o.x < 0 then 1 end) from (select x, z, e, q, k from o where 100 / (z + assign::int * 400) < 1000 offset 0) o left join c on c.id = o.k;
    return 1;
end $$;
set plan_cache_mode = force_generic_plan;
select not_assigned(true);
select * from pg_temp.alone('select not_assigned(false)');
reset plan_cache_mode;
create table coll (k int, x int, p text collate "C", q text collate "POSIX", z int);
insert into coll select (i * 7919) % 20000 + 1, i, i, i, 75 - i from generate_series(1, 300) i;
vacuum analyze coll;
select * from pg_temp.alone('select count(c.pad), count(case when o.x = 70 then p < q when o.x < 0 then true end) from (select * from coll where 100 / z < 1000 offset 0) o left join c on c.id = o.k');
select * from pg_temp.alone('select count(c.pad), sum(l.s) from (select x, z, q, k from o where 100 / z < 1000 offset 0) o left join c on c.id = o.k cross join lateral (select count(*) over (rows between o.q preceding and current row) s from b) l');
-- Comparison functions of the server that fail for a part of a type, when the parts before it are
-- equal, as from row 60 on; and that call a user's function for it
create type keyed as (i int, j json);
create table keyeds (r keyed, v int);
insert into keyeds select row(i * 2, null)::keyed, i from generate_series(1, 20000) i;
create index on keyeds (r) with (fillfactor = 10);
create table unequal as select i x, row((i * 7919) % 20000 * 2 + 1, null)::keyed r from generate_series(1, 59) i;
insert into unequal select 60 + i, row(2 * i, null)::keyed from generate_series(1, 3000) i;
vacuum analyze keyeds, unequal;
select * from pg_temp.effects('select x, k.v from unequal o left join keyeds k on k.r = o.r', 'm10 n');
select * from pg_temp.effects('select x, k.v from unequal o left join keyeds k on k.r = o.r');
select * from pg_temp.effects('select x, k.v from unequal o left join keyeds k on k.r = o.r limit 58');
select * from pg_temp.effects('select x, note(x), k.v from unequal o left join keyeds k on k.r = o.r');
select * from pg_temp.effects('select x, (select k.v from keyeds k where k.r = o.r) from unequal o', 'm10 n');
create function json_cmp_noted(p json, q json) returns int language plpgsql immutable as $$ begin return note(0); end $$;
create function json_is_less(p json, q json) returns bool language plpgsql immutable as $$ begin return note(1) is null; end $$;
create function json_is_equal(p json, q json) returns bool language plpgsql immutable as $$ begin return note(2) is not null; end $$;
create operator <<<< (leftarg = json, rightarg = json, function = json_is_less);
create operator ==== (leftarg = json, rightarg = json, function = json_is_equal);
create operator class json_noted_ops default for type json using btree as operator 1 <<<<, operator 3 ====, function 1 json_cmp_noted(json, json);
update unequal set r = row((r).i, '1')::keyed;
update keyeds set r = row((r).i, '1')::keyed;
select * from pg_temp.effects('select x, note(x), k.v from unequal o left join keyeds k on k.r = o.r where x < 500');
select * from pg_temp.effects('select x, k.v from unequal o left join keyeds k on k.r = o.r where x < 500', 'm50 n n n');
drop operator class json_noted_ops using btree;
-- Functions that warn about a type's name: a key by them is evaluated once
create table typed (x int, n text);
insert into typed select i, case when i % 40 = 7 then 'timestamp(9)' else 'int4' end from generate_series(1, 100) i;
create table usable (f bool, v int);
insert into usable select i = 2000, i from generate_series(1, 4000) i;
create index on usable (f);
vacuum analyze typed, usable;
set pg_lookahead.force = on;
select count(*) from typed join usable on usable.f = has_type_privilege(typed.n, 'usage');
select count(*) from typed join usable on usable.f = (to_regtype(typed.n) is not null);
reset pg_lookahead.force;
-- Functions that are declared immutable and ask for the session's time zone, in rows for a table whose
-- trigger changes it.  (Since 18 an abbreviation is looked up there first.)
create table moments as select i as x, timestamp '1990-01-01' + i * interval '1 day' as ts, timestamptz '1990-01-01' + i * interval '1 day' as tz from generate_series(1, 300) i;
vacuum analyze moments;
create table zoned (i int, z timestamptz, a interval);
create function before_zoned() returns trigger language plpgsql as $$ begin perform set_config('timezone', case when new.i % 2 = 0 then 'America/New_York' else 'Asia/Tokyo' end, true); return new; end $$;
create trigger t before insert on zoned for each row execute function before_zoned();
create index on zoned (i);
create function zones(q text) returns setof zoned language plpgsql as $$
begin
    perform set_config('timezone', 'America/New_York', true);
    execute 'insert into zoned ' || q;
    perform set_config('timezone', 'UTC', true);
    return query select * from zoned order by i, z, a;
end $$;
select same from pg_temp.effects($$select * from zones('select x * 61, ts at time zone ''LMT'' from moments')$$);
select same from pg_temp.effects($$select * from zones('select x * 61, null, age(tz, timestamptz ''1980-03-31 15:00+00'') from moments')$$);
select same from pg_temp.effects($$select * from zones('select x * 61, date_trunc(''day'', tz, ''LMT'') from moments')$$);
-- ... or for an object that a trigger alters
create text search dictionary dd (template = simple, accept = true);
create table lexized (i int, l text[]);
create index on lexized (i);
create function before_lexized() returns trigger language plpgsql as $$
begin
    if new.i % 70 = 0 then
        alter text search dictionary dd (accept = false);
    elsif new.i % 70 = 35 then
        alter text search dictionary dd (accept = true);
    end if;
    return new;
end $$;
create trigger t before insert on lexized for each row execute function before_lexized();
create function lexemes() returns setof lexized language plpgsql as $$
begin
    insert into lexized select x, ts_lexize('dd', 'w' || x) from moments;
    return query select * from lexized order by i;
end $$;
select same from pg_temp.effects('select * from lexemes()');
-- A collation that cannot be opened any more is an error where the first strings are compared
create collation lost (provider = libc, locale = 'C.UTF-8');
create table strings (t text collate lost, v int);
insert into strings select 'k' || i, i from generate_series(1, 5000) i;
create index on strings (t);
create table few_strings as select i as x, case when i = 60 then ('k' || i) end as t from generate_series(1, 100) i;
vacuum analyze strings, few_strings;
update pg_collation set collversion = 'lost' where collname = 'lost';
\c -
set search_path = la_impure;
set enable_hashjoin = off;
set enable_mergejoin = off;
set enable_bitmapscan = off;
set pg_lookahead.force = on;
begin;
declare c no scroll cursor for select o.x, s.v from (select * from few_strings offset 0) o left join strings s on s.t = o.t;
move 10 from c;
fetch 1 from c;
move 60 from c;
rollback;

set client_min_messages = warning;
drop schema la_impure cascade;
