--
-- cursor - scroll cursors go where they should.
--
-- A change of direction makes look-ahead step back from where the access method is
-- to where the reader is.  The FETCHes at the beginning run with look-ahead forced; what they
-- are expected to print came from a stock server.  The rest is compared as in scan.sql.
--
\set ECHO none
\getenv src PG_ABS_SRCDIR
\set helper :src '/sql/scans.inc'
\set schema la_cursor
\i :helper
set enable_sort = off;
create table t (id int, a int, b int, w text);
insert into t select i, (i::bigint * 7919 % 5003)::int, i * 31 % 7, repeat('w', 50)
    from generate_series(1, 5002) i;
create index on t (a) with (fillfactor = 10);
create index on t (b, id) with (fillfactor = 10);
create index on t (id) include (b) with (fillfactor = 10);
vacuum analyze t;

set pg_lookahead.force = on;
set pg_lookahead.max_leaf_pages = 2;

begin;
explain (costs off) select id, a from t where a > 10 order by a;
declare c scroll cursor for select id, a from t where a > 10 order by a;
fetch 3 from c;
fetch backward 2 from c;
fetch backward 2 from c;
fetch 2 from c;
-- the end, and back from it
fetch last from c;
fetch next from c;
fetch prior from c;
fetch backward 3 from c;
fetch absolute -5 from c;
fetch absolute -5000 from c;
fetch absolute 2500 from c;
fetch relative 0 from c;
fetch relative -1000 from c;
fetch relative 3000 from c;
fetch first from c;
fetch absolute 0 from c;
fetch next from c;
-- moving across many leaf pages
move forward 1000 from c;
fetch 2 from c;
move backward 900 from c;
fetch 2 from c;
move forward all from c;
fetch next from c;
fetch backward 2 from c;
move backward all from c;
fetch prior from c;
fetch 2 from c;
move forward 4991 from c;
fetch 3 from c;
fetch backward 2 from c;
commit;

-- index-only
begin;
explain (costs off) select id, b from t where id > 10 order by id;
declare c scroll cursor for select id, b from t where id > 10 order by id;
fetch 3 from c;
fetch last from c;
fetch backward 2 from c;
fetch absolute -5 from c;
fetch relative -4000 from c;
fetch backward all from c \g /dev/null
fetch 2 from c;
commit;

-- a backward scan whose reader goes forward and back
begin;
declare c scroll cursor for select id, a from t where a < 4000 order by a desc;
fetch 3 from c;
fetch absolute -3 from c;
fetch prior from c;
fetch relative 2 from c;
fetch 5 from c;
fetch backward 2 from c;
commit;

-- held beyond the transaction: the rest is read at commit
begin;
declare c scroll cursor with hold for select id, a from t where b = 3 order by b, id;
fetch 2 from c;
commit;
fetch last from c;
fetch absolute 3 from c;
close c;

-- two cursors on one index, in turn
begin;
declare c1 scroll cursor for select a from t order by a;
declare c2 scroll cursor for select a from t order by a desc;
fetch 2 from c1;
fetch 2 from c2;
fetch absolute 500 from c1;
fetch absolute 500 from c2;
fetch backward 2 from c1;
fetch backward 2 from c2;
close c1;
fetch 2 from c2;
commit;

-- the row under the cursor
begin;
declare c cursor for select id, a from t where a > 100 order by a;
fetch 2 from c;
update t set b = -1 where current of c returning id, a, b;
fetch 2 from c;
delete from t where current of c returning id, a;
fetch 2 from c;
rollback;
begin;
declare c cursor for select id from t where id > 100 order by id for update;
fetch 2 from c;
delete from t where current of c returning id;
move 500 from c;
fetch 1 from c;
update t set id = -id where current of c returning id;
fetch 1 from c;
rollback;

-- a savepoint in between: the cursor goes on where it was
begin;
declare c scroll cursor for select id, a from t where a > 10 order by a;
fetch 2 from c;
savepoint s;
fetch 2 from c;
select 1/0;
rollback to savepoint s;
fetch 2 from c;
fetch backward 2 from c;
-- one that the rollback closes
savepoint s;
declare d cursor for select id, a from t order by a desc;
fetch 2 from d;
rollback to savepoint s;
fetch 2 from d;
rollback;

-- a cursor does not see what its own transaction changes later
begin;
declare c scroll cursor for select id, a from t where a between 100 and 900 order by a;
fetch 2 from c;
update t set a = a + 1000 where a between 100 and 500;
delete from t where a between 600 and 700;
move forward all from c;
fetch last from c;
fetch absolute 300 from c;
rollback;
begin;
declare c scroll cursor for select id, a from t order by a;
fetch 1 from c;
-- changed under the cursor's own pages: they split
insert into t select 10000 + i, i, 0, 'new' from generate_series(1, 3000) i;
move 2000 from c;
fetch 1 from c;
fetch backward 1 from c;
rollback;
vacuum t;

reset pg_lookahead.force;
reset pg_lookahead.max_leaf_pages;

-- the same moves with look-ahead off and on, over several plans
\set motions 'n n n p p n m40 p n w20 n n l p p n n n f n a-5 p n a-4000 n p e p n p s n n a2500 r-1 r2 r-300 r700 p a0 n a-1 n p l l n p'
select * from pg_temp.play('select id, a from t where a > 10 order by a', :'motions');
select * from pg_temp.play('select id, a from t order by a desc', :'motions');
select * from pg_temp.play('select id, a, w from t where a > 10 and id % 3 = 0 order by a', :'motions');
select * from pg_temp.play('select id, b from t where id between 5 and 4900 order by id', :'motions');
select * from pg_temp.play('select id, b from t order by id desc', :'motions');
select * from pg_temp.play('select id, b from t order by b desc, id desc', :'motions');
select * from pg_temp.play('select * from t where b in (1, 2, 5) and id > 1000 order by b, id', :'motions');
select * from pg_temp.play('select id, b from t where b = any (array[5, 1, 6]) order by b desc, id desc', :'motions');
select * from pg_temp.play('select b, id from t where b in (0, 3) and id in (7, 10, 3000, 4711, 5002)', :'motions');
select * from pg_temp.play('select * from t where a = 4711', :'motions');
select * from pg_temp.play('select * from t where a = -1', 'n p l p f n a-5 p n');
-- direction changes on every page boundary and in every page
select * from pg_temp.play('select id, a from t order by a',
    (select string_agg(format('m%s p p n n', i % 40 + 1), ' ') from generate_series(1, 200) i));
select * from pg_temp.play('select id, b from t order by id desc',
    (select string_agg(format('m%s w%s n', i % 50 + 1, i * 7 % 60 + 1), ' ') from generate_series(1, 200) i));
-- many at the same time
create function in_turns(n int) returns setof text language plpgsql as $$
declare c refcursor[]; r record; one refcursor;
begin
    for i in 1..n loop
        one := 'c' || i;
        open one for execute format('select id, a from t where a > %s order by a', i * 50);
        c[i] := one;
    end loop;
    for turn in 1..30 loop
        for i in 1..n loop
            one := c[i];
            fetch one into r;
            return next i || ' ' || r.id || ' ' || r.a;
        end loop;
    end loop;
    for i in 1..n loop
        one := c[i];
        close one;
    end loop;
end $$;
select * from pg_temp.compare('select * from in_turns(40)');
-- dead entries under a scroll cursor
delete from t where id % 4 = 1;
update t set a = a + 1 where id % 4 = 2;
select * from pg_temp.play('select id, a from t where a > 10 order by a', :'motions');
select * from pg_temp.play('select id, b from t where id > 10 order by id desc', :'motions');
select * from pg_temp.play('select id, a from t where a > 10 order by a', :'motions');

set client_min_messages = warning;
drop schema la_cursor cascade;
