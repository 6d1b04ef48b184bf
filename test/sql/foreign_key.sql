--
-- foreign_key - checks and actions of foreign keys are the same with and without look-ahead.
--
-- As in write.sql: each statement runs with look-ahead off, and then in two ways with it.  "same"
-- must be true; "ahead" says whether rows were looked ahead over.
--
\set ECHO none
set client_min_messages = warning;
create extension if not exists pg_lookahead;
drop schema if exists la_keys cascade;
create schema la_keys;
set search_path = la_keys, public;
set synchronous_commit = off;

create function tables() returns text language plpgsql as $$
declare r record; h text; out text := '';
begin
    for r in select oid::regclass t from pg_class
        where relnamespace = 'la_keys'::regnamespace and relkind = 'r' order by relname loop
        execute format('select count(*) || '' '' || sum(hashtextextended(t::text, 0)) from %s t', r.t) into h;
        out := out || coalesce(h, '-') || ' ';
    end loop;
    return out;
end $$;

-- (What SET CONSTRAINTS has set is forgotten with the block, if it is run in no other one within.)
create function outcome(statement text, ahead text[], out error text, out rows bigint, out result text)
language plpgsql as $$
declare s text;
begin
    foreach s in array ahead loop
        execute 'set local ' || s;
    end loop;
    perform set_config('la.trace', '', true);
    error := '';
    execute statement;
    get diagnostics rows = row_count;
    set constraints all immediate;
    set local pg_lookahead.enable = off;
    result := tables() || '|' || current_setting('la.trace');
    raise exception using errcode = 'LA001';
exception when sqlstate 'LA001' then
    null;
when others then
    get stacked diagnostics error = pg_exception_detail;
    error := sqlstate || ' ' || sqlerrm || ' ' || error;
    result := tables();
end $$;

create function activated() returns bigint language sql as
    $$ select scans_activated from pg_stat_lookahead where kind = 'foreign key' $$;

create function foreseen() returns bigint language sql as
    $$ select blocks_foreseen from pg_stat_lookahead where kind = 'foreign key' $$;

create function write(statement text, out same bool, out ahead bool, out rows bigint, out error text)
language plpgsql as $$
declare stock record; ours record; way text[]; before bigint;
begin
    stock := outcome(statement, array['pg_lookahead.enable = off']);
    same := true;
    before := activated();
    foreach way slice 1 in array array[
        array['pg_lookahead.force = on', 'pg_lookahead.enable = on'],
        array['pg_lookahead.force = on', 'pg_lookahead.max_distance = 1'],
        array['pg_lookahead.miss_threshold = 0', 'pg_lookahead.min_read_time = 0']] loop
        ours := outcome(statement, way);
        if ours is distinct from stock then
            same := false;
            raise warning '% %', way, ours;
            raise warning 'stock %', stock;
        end if;
    end loop;
    ahead := activated() > before;
    rows := stock.rows;
    error := stock.error;
end $$;

create function note() returns trigger language plpgsql as $$
begin
    if old.id % 50 = 0 then
        perform set_config('la.trace', current_setting('la.trace') || tg_op || old.id || ' ', true);
    end if;
    return null;
end $$;

create table a (id int primary key, b bigint, c text, unique (c, b));
create table src (i int, k int, b bigint, c text);
insert into a select i, i * 10, 'c' || i from generate_series(1, 2000) i;
insert into src select i, (i * 7919) % 2000 + 1, 10 * ((i * 7919) % 2000 + 1), 'c' || ((i * 7919) % 2000 + 1) from generate_series(1, 1000) i;
create domain d as smallint;
create table r (id int, a int references a, a2 d references a(id), b int, c varchar, foreign key (b, c) references a (b, c));
vacuum analyze;

\pset format unaligned
\pset tuples_only
-- 1. checks
select * from write('insert into r (id, a) select i, k from src');
select * from write('insert into r (id, a, a2) select i, k, k + 1 from src where k < 2000');
select * from write('insert into r select i, k, k, b, c from src');
select * from write('insert into r select i, case when i % 3 > 0 then k end, null, b, case when i % 2 > 0 then c end from src');
select * from write('insert into r (id, a) select i, k + i / 900 * 2000 from src');
select * from write('insert into r (id, b, c) select i, b, c || case when i = 500 then ''x'' else '''' end from src');
select * from write('insert into r (id, a) select i, k from src order by k');
insert into r select i, k, k, b, c from src;
insert into r (id, a) select -i, k from src;
analyze r;
select * from write('update r set a = a % 2000 + 1');
select * from write('update r set a = case when id % 3 = 0 then a % 2000 + 1 else a end');
select * from write('update r set a = a + 2000 where id = -700');
select * from write('update r set id = id + 1');
select * from write('update r set a = s.k from src s where s.i = r.id');
select * from write('insert into r (id, a) select i, k from src returning id');
select * from write('with x as (insert into a select 5000 + i, null, null from src returning id) insert into r (id, a) select id, id from x');
-- 2. no action and restrict, without an index and with one
select * from write('delete from a where id > 1900 and not exists (select from r where a.id in (r.a, r.a2))');
create index on r (a);
create index on r (a2);
create index on r (c, b);
select * from write('delete from a where id > 1000 and not exists (select from r where a.id in (r.a, r.a2))');
select * from write('delete from a where id > 1000');
select * from write('update a set id = id + 10000 where not exists (select from r where a.id in (r.a, r.a2))');
select * from write('update a set b = b + 1 where not exists (select from r where r.c = a.c)');
select * from write('update a set b = b + 1');
-- 3. actions
create table x1 (id int, a int references a on delete cascade on update cascade, k int);
create table x2 (id int, a int references a on delete set null on update set default, n int);
create table x3 (id int primary key, a int default 1 references a on delete set default on update cascade);
create table x4 (id int, x3 int references x3 on delete cascade);
create index on x1 (a, k);
create index on x2 (a);
create index on x3 (a);
create index on x4 (x3);
alter table r drop constraint r_a_fkey, drop constraint r_a2_fkey, drop constraint r_b_c_fkey;
insert into x1 select i * 10 + j, k, j from src, generate_series(1, 5) j where i < 500;
insert into x2 select i, k, i from src;
insert into x3 select i, k from src where i % 2 = 0;
insert into x4 select i * 10 + j, i from src, generate_series(1, 3) j where i % 2 = 0;
create trigger n after delete or update on x1 for each row execute function note();
create trigger n after delete or update on x4 for each row execute function note();
analyze;
select * from write('delete from a where id between 500 and 1500');
select * from write('delete from a using src where src.k = a.id and a.id <> 1');
select * from write('delete from a where id in (select k from src order by c limit 400)');
select * from write('update a set id = id + 10000 where id > 1');
select * from write('update a set id = id + case when id % 2 = 0 then 10000 else 0 end where id > 1');
select * from write('delete from x3');
select * from write('delete from a');
select * from write('truncate a cascade');
-- 4. one table, and deferred constraints
create table t (id int primary key, parent int references t on delete cascade);
create index on t (parent);
insert into t select i, nullif(i / 3, 0) from generate_series(1, 1500) i;
analyze t;
select * from write('delete from t where id < 20');
select * from write('insert into t select i + 2000, i + 1999 + (i = 1)::int from src order by i');
select * from write('insert into t select i + 2000, i + 2001 from src order by i');
alter table x1 alter constraint x1_a_fkey deferrable initially deferred;
select * from write('insert into x1 select i, k + i / 900 * 2000, 0 from src');
select * from write('delete from a where id between 500 and 1500');
-- 5. partitions
create table pr (id int, a int references a) partition by hash (id);
create table pr0 partition of pr for values with (modulus 2, remainder 0);
create table pr1 (a int, id int);
alter table pr attach partition pr1 for values with (modulus 2, remainder 1);
create table pa (id int primary key) partition by hash (id);
create table pa0 partition of pa for values with (modulus 2, remainder 0);
create table pa1 partition of pa for values with (modulus 2, remainder 1);
create table xp (id int, pa int references pa on delete cascade);
create index on xp (pa);
insert into pa select i from generate_series(1, 2000) i;
select * from write('insert into pr select i, k from src');
select * from write('insert into pr select i, k + i / 900 * 2000 from src');
select * from write('update pr set a = a % 2000 + 1');
insert into pr select i, k from src;
create index on pr (a);
select * from write('update pr set a = a % 2000 + 1');
select * from write('delete from a where id > 1000 and id not in (select a from pr)');
select * from write('insert into xp select i, k from src');
insert into xp select i, k from src;
select * from write('delete from pa where id > 500');
-- 6. triggers that are switched off, or get in between
alter table x2 disable trigger all;
select * from write('insert into x2 select i, -k, 0 from src');
alter table x2 enable trigger all;
set session_replication_role = replica;
select * from write('insert into x2 select i, -k, 0 from src');
reset session_replication_role;
create function other() returns trigger language plpgsql as $$
begin
    insert into la_keys.a select new.id + 100000 where new.id % 100 = 0;
    delete from la_keys.a where id = new.a and new.id % 100 = 1;
    return null;
end $$;
create trigger "A" after insert on x2 for each row execute function other();
select * from write('insert into x2 select i, k, 0 from src');
select * from write('insert into x2 select i + 99999, case when i % 100 = 2 then i + 99998 else k end, 0 from src');
drop trigger "A" on x2;
-- 7. cascades of cascades: one row at the top, so that only the levels below can be looked ahead over
create table y0 (id int primary key);
create table y1 (id int primary key, y0 int references y0 on delete cascade on update cascade);
create table y2 (id int primary key, y1 bigint references y1 on delete cascade, n int references y1 on delete set null);
create table y3 (id int, y2 int default 0 references y2 on delete set default, m numeric);
create table y4 (id int, y2 int references y2);
create table yy (a int, b int, primary key (a, b));
create table yz (x int references y1 on delete cascade, a int, b int, foreign key (b, a) references yy (b, a) on delete cascade on update cascade);
insert into y0 select i from generate_series(0, 9) i;
insert into y1 select i, i % 10 from generate_series(0, 5999) i;
insert into y2 select i, (i * 7919) % 5000 + 1000, case when i % 3 = 0 then i end from generate_series(0, 4999) i;
insert into y2 select i, 0 from generate_series(5000, 5010) i;
insert into y3 select i, (i * 7907) % 4990 + 1 from generate_series(1, 3000) i;
insert into y4 select i, 5000 + i from generate_series(1, 10) i;
insert into yy select i % 50, i from generate_series(0, 2999) i;
insert into yz select i, i % 50, i from generate_series(0, 2999) i;
create index on y1 (y0);
create index on y2 (y1);
create index on y2 (n);
create index on y3 (y2);
create index on y4 (y2);
create index on yz (x);
create index on yz (a, b);
create trigger n after delete or update on y2 for each row execute function note();
analyze;
select foreseen() as before \gset
select * from write('delete from y0 where id = 7');
select foreseen() - :before > 2000 as many \gset
\echo :many
select * from write('delete from y0 where id = 0');
select * from write('delete from y0 where id in (3, 4)');
select * from write('update y0 set id = 100 where id = 8');
select * from write('delete from y1 where id between 900 and 1100');
select * from write('delete from y1 where id between 2000 and 4000 or id = 1');
select * from write('update yy set b = b + 10000 where a = 3');
select * from write('with x as (delete from y1 where id > 3000 returning id) select count(*) from x');
create function between_() returns trigger language plpgsql as $$
begin
    if old.id % 100 = 27 then
        begin
            delete from la_keys.y2 where id = (old.id * 17) % 5000;
            delete from la_keys.y0 where id = 5 and old.id = 2027;
            perform 1 / (old.id % 200 - 27);
        exception when division_by_zero then
            null;
        end;
    end if;
    return case when old.id % 100 = 11 then null else old end;
end $$;
create trigger b before delete on y1 for each row execute function between_();
select * from write('delete from y0 where id = 7');
drop trigger b on y1;
create trigger b before delete on y2 for each row execute function between_();
select * from write('delete from y0 where id = 7');
drop trigger b on y2;
create table z1 (id int primary key, y0 int references y0 on delete set null);
create table z2 (z1 int references z1 on delete cascade);
insert into z1 select i, i % 10 from generate_series(1, 200) i;
insert into z2 select i from generate_series(1, 200) i;
create function alter_() returns trigger language plpgsql as $$
begin
    execute format('alter table la_keys.%s add column z int', tg_argv[0]);
    return null;
end $$;
create trigger z after delete on y0 for each row execute function alter_('z1');
select * from write('delete from y0 where id = 7');
drop trigger z on y0;
create trigger z after delete on y0 for each row execute function alter_('y1');
select * from write('delete from y0 where id = 7');
drop trigger z on y0;
create function explain_() returns void language plpgsql as $$
declare r record;
begin
    for r in execute 'explain (analyze, costs off, timing off, summary off, buffers off) delete from la_keys.y0 where id = 7' loop
        perform set_config('la.trace', current_setting('la.trace') || regexp_replace(r::text, 'time=[^ ]*', ''), true);
    end loop;
end $$;
select * from write('select explain_()');
insert into t select 9999, null;
insert into t select i, case when i < 5010 then 9999 else i - 10 end from generate_series(5000, 8000) i;
analyze t;
select * from write('delete from t where id = 9999');
create table s (id int primary key, parent int references s on delete set null);
create index on s (parent);
insert into s select i, i % 7 from generate_series(0, 3000) i;
select * from write('delete from s where id < 7');
select * from write('delete from s where id = 3');
create table yp (id int primary key, y1 int references y1 on delete cascade) partition by range (id);
create table yp0 partition of yp for values from (0) to (2000);
create table yp1 partition of yp for values from (2000) to (10000);
create table yq (id int, yp int references yp1 on delete cascade, yp0 int references yp0 on delete cascade);
insert into yp select i, i from generate_series(0, 5999) i;
insert into yq select i, i, null from generate_series(2000, 5999) i;
insert into yq select i, null, i from generate_series(0, 1999) i;
create index on yp (y1);
create index on yq (yp);
create index on yq (yp0);
analyze;
select * from write('delete from y0 where id = 7');
-- 8. COPY FROM
select current_setting('data_directory') || '/la_keys.copy' as file \gset
copy (select i, k, k, b, c from src) to :'file';
create table c1 (id int primary key, a int references a, a2 d references a(id), b int, c varchar, foreign key (b, c) references a (b, c));
create table c2 (id int, a int references a, a2 d references a(id), b int, c varchar);
create table c3 (id int, a int references a, a2 int, b bigint, c text) partition by range (id);
create table c30 partition of c3 for values from (0) to (300);
create table c31 (c text, b bigint, a2 int, a int, id int primary key);
alter table c3 attach partition c31 for values from (300) to (10000);
select foreseen() as before \gset
select * from write(format('copy c1 from %L', :'file'));
select foreseen() - :before > 5500 as many \gset
\echo :many
select * from write(format('copy c2 from %L', :'file'));
select * from write(format('copy c3 from %L', :'file'));
insert into c1 select i, 1 from generate_series(10001, 10100) i;
insert into c2 select i, 1 from generate_series(10001, 10100) i;
delete from c1;
select * from write(format('copy c1 from %L; copy c2 from %L', :'file', :'file'));
select * from write(format('insert into c2 select i, i from generate_series(1, 1500) i; copy c2 from %L; insert into c2 select i, i from generate_series(1, 1500) i', :'file'));
select * from write(format('copy c1 from %L where id %% 2 = 1', :'file'));
select * from write(format('copy c1 from %L; copy c1 from %L', :'file', :'file'));
set pg_lookahead.enable_write = off;
select * from write(format('copy c1 from %L', :'file'));
reset pg_lookahead.enable_write;
create function before_copy() returns trigger language plpgsql as $$
begin
    if new.id % 100 = 5 then new.a := null; end if;
    return case when new.id % 50 = 7 then null else new end;
end $$;
create trigger b before insert on c1 for each row execute function before_copy();
select * from write(format('copy c1 from %L', :'file'));
drop trigger b on c1;
create function after_copy() returns trigger language plpgsql as $$
begin
    if new.id % 100 = 5 then
        update la_keys.c1 set a = null where id = new.id + 20;
        delete from la_keys.c1 where id in (new.id, new.id + 10);
        begin
            insert into la_keys.c1 select 20001 + new.id, new.id;
            raise division_by_zero;
        exception when division_by_zero then
            null;
        end;
    end if;
    return null;
end $$;
create trigger "A" after insert on c1 for each row execute function after_copy();
select * from write(format('copy c1 from %L', :'file'));
alter table c1 alter constraint c1_a_fkey deferrable initially deferred;
select * from write(format('copy c1 from %L', :'file'));
drop trigger "A" on c1;
select * from write(format('copy c1 from %L; copy c2 from %L', :'file', :'file'));
copy (select i, k, k, b, case i when 700 then '-' else c end from src) to :'file';
select * from write(format('copy c1 from %L', :'file'));
copy (select i, k + (i / 700) * 1990, 1, null, null from src) to :'file';
select * from write(format('copy c2 from %L', :'file'));
select * from write(format('copy c1 from %L', :'file'));
select * from write(format('do $d$ begin begin copy c2 from %L; exception when foreign_key_violation then null; end; insert into c1 (id, a2) select i, k from src; end $d$', :'file'));
copy (select i, k, k, b, c from src) to :'file';
-- 9. deferred constraints
create table d1 (id int primary key, a smallint references a deferrable initially deferred, b int, c varchar, foreign key (b, c) references a (b, c) deferrable);
create table d2 (id int primary key, d1 int references d1 deferrable initially deferred);
create table dt (id int primary key, parent bigint references dt deferrable initially deferred);
create index on d2 (d1);
create index on dt (parent);
insert into d1 select i, k, b, c from src;
insert into d2 select i, (i * 7) % 1000 + 1 from generate_series(1, 1000) i;
analyze;
select foreseen() as before \gset
select * from write('insert into d1 select i + 1000, k from src');
select foreseen() - :before > 1900 as many \gset
\echo :many
select * from write('insert into d1 select i + 1000, k from src; set constraints d1_a_fkey immediate; insert into d1 select i + 2000, k from src');
select * from write('insert into d1 select i + 1000, k from src; set constraints d1_b_c_fkey immediate; insert into d1 select i + 2000, k, b, c from src');
select * from write('set constraints all deferred; insert into d1 select i + 1000, k, b, c from src');
select * from write('set constraints all deferred; insert into d1 select i + 1000, k, b + 1, c from src; update d1 set b = b - 1 where id > 1000');
select * from write('insert into d1 select i + 1000, k from src; update d1 set a = a % 2000 + 1 where id % 2 = 0; delete from d1 where id % 5 = 0 and id > 1000');
select * from write('do $d$ begin for j in 1 .. 600 loop insert into la_keys.d1 select s.i + 1000, s.k from la_keys.src s where s.i = (j * 7) % 1000; end loop; end $d$');
select * from write('do $d$ begin for j in 1 .. 600 loop begin insert into la_keys.d1 select s.i + 1000, s.k from la_keys.src s where s.i = (j * 7) % 1000; if j % 4 = 1 then raise division_by_zero; end if; exception when division_by_zero then null; end; end loop; end $d$');
select * from write('do $d$ begin for i in 1 .. 600 loop update la_keys.d1 set a = i where id = (i * 7) % 1000; end loop; end $d$');
select * from write('do $d$ begin insert into la_keys.d1 select i + 1000, k from la_keys.src; begin set constraints all immediate; insert into la_keys.d1 select i + 2000, k from la_keys.src; perform 1 / 0; exception when division_by_zero then null; end; end $d$');
select * from write('do $d$ begin insert into la_keys.d1 select i + 1000, k + i / 600 * 2000 from la_keys.src; begin set constraints all immediate; exception when foreign_key_violation then null; end; update la_keys.d1 set a = 5 where a > 2000; end $d$');
select * from write('delete from d1 where id > 500; delete from d2 where d1 > 500');
select * from write('delete from d1 where id > 500; insert into d1 select i, k from src where i > 500');
select * from write('delete from d1 where id > 500');
select foreseen() as before \gset
select * from write('update d1 set id = -id; update d2 set d1 = -d1');
select foreseen() - :before > 2000 as many \gset
\echo :many
select * from write('do $d$ begin for i in 1 .. 300 loop delete from la_keys.d1 where id = (i * 7) % 1000; delete from la_keys.d2 where d1 = (i * 7) % 1000; end loop; end $d$');
select * from write('insert into dt select i, i + 1 from generate_series(1, 2000) i; insert into dt select 2001');
select * from write('insert into dt select i, i + 1 from generate_series(1, 2000) i');
copy (select i + 1000, k, null, null from src) to :'file';
select * from write(format('copy d1 from %L', :'file'));
select * from write(format('insert into d2 select i + 1000, i + 1000 from src; copy d1 from %L', :'file'));
select * from write('insert into d1 select i + 1000, k from src; alter table a add column z int');
-- ... by the end of the transaction
create procedure transactions(out state text, out ahead bool) language plpgsql as $$
declare before bigint := activated();
begin
    insert into d1 select i + 1000, k from src;
    begin
        insert into d1 select i + 2000, -1 from src;
        raise division_by_zero;
    exception when division_by_zero then
        insert into d1 select i + 3000, k from src where i < 500;
    end;
    commit;
    delete from d1 where id > 2000;
    update d1 set a = a % 2000 + 1;
    commit;
    delete from d1 where id > 1000;
    update d1 set a = s.k from src s where s.i = d1.id;
    state := tables();
    commit;
    ahead := activated() > before;
end $$;
set pg_lookahead.enable = off;
call transactions(null, null) \gset stock_
set pg_lookahead.enable = on;
set pg_lookahead.force = on;
call transactions(null, null) \gset
select :'state' = :'stock_state' as same, :'ahead' as ahead, :'stock_ahead' as stock;
begin;
insert into d1 select i + 1000, k from src;
savepoint a;
insert into d1 select i + 2000, k from src;
set constraints all immediate;
rollback to a;
insert into d1 select i + 3000, k + i / 900 * 2000 from src;
savepoint b;
release b;
commit;
select count(*) from d1;
-- 10. partitioned tables at the other end
create table qa (id int, k text, n int, primary key (id, k)) partition by list (k);
create table qa0 partition of qa for values in ('a', 'b');
create table qa1 (n int, k text not null, id int not null);
alter table qa attach partition qa1 for values in ('c');
create table qad partition of qa default;
create table qr (id bigint primary key, n int) partition by range (id);
create table qr0 partition of qr for values from (minvalue) to (500);
create table qr1 partition of qr for values from (500) to (1500) partition by hash (id);
create table qr10 partition of qr1 for values with (modulus 2, remainder 0);
create table qr11 partition of qr1 for values with (modulus 2, remainder 1);
create table qr2 partition of qr for values from (1500) to (maxvalue);
create table qc (id int, a int, k text, r bigint references qr on delete set null, s int references qr on update cascade,
    foreign key (k, a) references qa (k, id) on delete cascade on update cascade);
insert into qa select i, chr(97 + i % 6), i from generate_series(1, 3000) i;
insert into qr select i, i from generate_series(1, 3000) i;
create index on qc (a, k);
create index on qc (r);
create index on qc (s);
analyze;
select * from write('insert into qc (id, a, k) select i, k, chr(97 + k % 6) from src');
select * from write('insert into qc (id, a, k) select i, k, chr(97 + k % 6 + (i = 500)::int) from src');
select foreseen() as before \gset
select * from write('insert into qc (id, r) select i, k from src');
select foreseen() - :before > 1000 as many \gset
\echo :many
select * from write('insert into qc (id, s) select i, k from src');
select * from write('insert into qc (id, r) select i, k + i / 900 * 3000 from src');
select * from write('insert into qc select i, k, chr(97 + k % 6), k, 2001 - k from src');
select * from write('do $d$ begin insert into la_keys.qc (id, r) select i, k from la_keys.src where k < 1500; alter table la_keys.qr detach partition la_keys.qr2; insert into la_keys.qc (id, r) select i, k from la_keys.src where k < 1400; end $d$');
insert into qc select i, k, chr(97 + k % 6), k, null from src;
select * from write('delete from qa where id > 1500');
select * from write('delete from qa where k = ''c''');
select * from write('update qa set id = id + 10000 where k = ''c''');
select * from write('delete from qr where id < 1500');
create table q0 (id int primary key, k int unique);
create table q1 (id int, q0 int references q0 on delete cascade on update set default default 1, k int references q0 (k) deferrable initially deferred) partition by range (id);
create table q10 partition of q1 for values from (0) to (800);
create table q11 (k int, q0 int default 1, id int);
alter table q1 attach partition q11 for values from (800) to (1600);
create table q12 partition of q1 for values from (1600) to (10000) partition by range (id);
create table q120 partition of q12 for values from (1600) to (10000);
create table q2 (k bigint, q0 int references q0 on delete cascade) partition by hash (q0);
create table q20 partition of q2 for values with (modulus 2, remainder 0);
create table q21 partition of q2 for values with (modulus 2, remainder 1);
insert into q0 select i, i from generate_series(1, 2000) i;
insert into q1 select i, (i * 7919) % 2000 + 1, i from generate_series(1, 2000) i;
insert into q2 select i, (i * 7919) % 2000 + 1 from generate_series(1, 4000) i;
analyze;
select * from write('delete from q0 where id between 500 and 550 and k > 0; delete from q1 where k between 500 and 550');
create index on q1 (q0);
create index on q1 (k);
create index on q2 (q0);
select * from write('delete from q0 where id between 500 and 1500 and k > 0; delete from q1 where k between 500 and 1500');
select foreseen() as before \gset
select * from write('delete from q0 where id between 500 and 1500; insert into q0 select i, i from generate_series(500, 1500) i');
select foreseen() - :before > 2000 as many \gset
\echo :many
select * from write('delete from q0 where id between 500 and 1500');
select * from write('update q0 set id = id + 10000 where id > 1000');
alter table q2 drop constraint q2_q0_fkey;
select * from write('update q0 set id = id + 10000 where id > 1000');
select * from write('update q0 set k = -k; update q1 set k = -k');
select * from write('insert into q1 select i + 2000, k, k from src');
select * from write('update q1 set id = id + 801, q0 = 5 where id < 800');
copy (select i, k, k from src) to :'file';
select * from write(format('copy q1 from %L', :'file'));
-- 11. keys that 19 compares in batches: as text, of other types, of two constraints of one index
create table u (id numeric primary key, t text unique, n name unique, k int unique, unique (id, t));
insert into u select i, case when i % 3 = 0 then 't' || i else repeat(md5(i::text), 20) end, 'n' || i, i from generate_series(1, 2000) i;
create table v (id int, u bigint references u, t varchar references u (t), n name references u (n), made_by int references u (k),
    seen_by int references u (k), at int);
create table w (id int primary key, u numeric, t text, k int, k2 bigint, foreign key (u, t) references u (id, t) match full deferrable initially deferred,
    foreign key (k) references u (k) deferrable initially deferred, foreign key (k2) references u (k) deferrable initially deferred);
analyze u;
select * from write('insert into v (id, t) select i, t from src, u where u.id = src.k');
select * from write('insert into v (id, u) select i, k from src');
select * from write('insert into v (id, n) select i, ''n'' || k from src');
select * from write('insert into v (id, made_by, seen_by) select i, k, k from src');
select * from write('insert into v (id, made_by, seen_by) select i, k, case when i < 900 then k else -i end from src');
select * from write('insert into w (id, u, t) select i, u.id, t from src, u where u.id = src.k');
select * from write('insert into w (id, u, t) select i, u.id, case when i <> 700 then t end from src, u where u.id = src.k');
select * from write('insert into w (id, k, k2) select i, k, k from src');
select * from write('insert into w (id, k, k2) select i, k, 2001 - k from src; update w set k = k2 where id % 2 = 0; delete from w where id % 5 = 0');
select * from write('insert into w (id, k) select i, k from src; insert into w (id, k2) select -i, k from src');
copy (select i, u.id, t, u.k, 2001 - u.k from src, u where u.id = src.k) to :'file';
select * from write(format('copy w from %L', :'file'));
select * from write(format('copy w from %L; update u set k = -k where k between 900 and 950', :'file'));
select * from write(format('copy w from %L; reindex table u', :'file'));
select * from write(format('copy w from %L; truncate u cascade', :'file'));
select * from write(format('copy w from %L; alter table w alter k2 type numeric', :'file'));
select * from write(format('copy w from %L; set constraints all immediate; insert into w (id, k) select -i, k from src', :'file'));
reset pg_lookahead.force;
-- 12. locks: those of the server's queries, whose plans are there already
create table lp (id int primary key);
create table lr (id int, p int references lp, o int);
create index lr_p on lr (p);
create index lr_o on lr (o);
insert into lp select i from generate_series(1, 1000) i;
insert into lr select i, i % 100 + 1, i from generate_series(1, 1000) i;
analyze lp, lr;
create function locks(statement text, ahead bool) returns text language plpgsql as $$
declare result text; way text;
begin
    for i in 1 .. 2 loop
        begin
            perform set_config('pg_lookahead.enable', ahead::text, true);
            set local pg_lookahead.force = on;
            set local plan_cache_mode = force_generic_plan;
            set local enable_seqscan = off;
            execute statement;
            select string_agg(relation::regclass || ' ' || mode, ', ' order by relation::regclass::text, mode) into result
                from pg_locks where pid = pg_backend_pid() and locktype = 'relation' and relation::regclass::text like 'l_%';
            raise exception using errcode = 'LA001';
        exception when sqlstate 'LA001' then
            null;
        end;
    end loop;
    return result;
end $$;
create function locks_differ(statement text, out same bool, out ahead bool) language plpgsql as $$
declare before bigint := activated(); stock text := locks(statement, false); ours text := locks(statement, true);
begin
    same := ours = stock;
    if not same then raise warning '%; stock: %', ours, stock; end if;
    ahead := activated() > before;
end $$;
select * from locks_differ('delete from lp where id > 500');
select * from locks_differ('insert into lr select i, case when i > 10 then i end, i from generate_series(1, 400) i');
drop schema la_keys cascade;
