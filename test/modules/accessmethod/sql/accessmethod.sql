--
-- accessmethod - an access method that is not known runs stock, so that its functions see the current row.
--
\getenv library LA_TEST_ACCESSMETHOD
load 'pg_lookahead';
set client_min_messages = warning;
create extension pg_lookahead;
reset client_min_messages;
create function la_test_handler(internal) returns index_am_handler language c as :'library';
create function la_test_row() returns tid language c volatile as :'library';
create access method la_test type index handler la_test_handler;
create operator class box_ops default for type box using la_test as
    operator 3 &&, operator 8 <@, operator 15 <-> (box, point) for order by float_ops,
    function 1 gist_box_consistent(internal, box, smallint, oid, internal), function 2 gist_box_union(internal, internal),
    function 5 gist_box_penalty(internal, internal, internal), function 6 gist_box_picksplit(internal, internal),
    function 7 gist_box_same(box, box, internal), function 8 gist_box_distance(internal, box, smallint, oid, internal);

create table t (i int, b box, w text);
insert into t select i, box(point(i * 7919 % 1009, i * 4447 % 1013), point(i * 7919 % 1009 + 1, i * 4447 % 1013 + 1)), repeat('w', 100)
    from generate_series(1, 5000) i;
create table g as select * from t;
create index t_b on t using la_test (b);
create index g_b on g using gist (b);
vacuum analyze t;
vacuum analyze g;
set enable_seqscan = off;
set enable_bitmapscan = off;
set enable_indexonlyscan = off;

-- rows, and how many of them were not the row that the access method returned last
prepare found as select count(*), count(*) filter (where ctid <> la_test_row()) as wrong from t where b && box '((100,100),(700,700))';
prepare nearest as select count(*), count(*) filter (where ctid <> row) as wrong
    from (select ctid, la_test_row() as row from t order by b <-> point '(500,500)' limit 300) s;
prepare boxes as select count(*), sum(area(b)) from t where b <@ box '((100,100),(700,700))';
prepare gist as select count(*), sum(i) from g where b && box '((100,100),(700,700))';
create view last as select kind, relation, index, scans_attached, scans_activated, reason from pg_lookahead_last_statement();

set pg_lookahead.enable = off;
explain (costs off) execute found;
explain (costs off) execute nearest;
execute found;
execute nearest;
execute boxes;
execute gist;

set pg_lookahead.enable = on;
set pg_lookahead.force = on;
execute found;
select * from last;
execute nearest;
select * from last;
execute boxes;
set client_min_messages = debug1;
execute boxes;
set enable_indexonlyscan = on;
select count(*), sum(area(b)) from t where b <@ box '((100,100),(700,700))';
set enable_indexonlyscan = off;
reset client_min_messages;
select * from last;

-- one that is known, with whatever operator class: no reason
execute gist;
select * from last;

-- who lists the access method vouches for it.  Statements without such functions are right
set pg_lookahead.additional_access_methods = 'rum, LA_TEST';
execute boxes;
select * from last;
execute found \gset
select :count as count, :wrong > 0 as vouched_wrongly;
set pg_lookahead.excluded_access_methods = 'la_test';
execute found;
reset pg_lookahead.excluded_access_methods;
reset pg_lookahead.additional_access_methods;
execute found;

-- only superusers can, and whom they let
create role regress_la_voucher;
set role regress_la_voucher;
set pg_lookahead.additional_access_methods = 'la_test';
show pg_lookahead.additional_access_methods;
reset role;
grant set on parameter pg_lookahead.additional_access_methods to regress_la_voucher;
set role regress_la_voucher;
set pg_lookahead.additional_access_methods = 'la_test';
show pg_lookahead.additional_access_methods;
reset role;
reset pg_lookahead.additional_access_methods;
revoke set on parameter pg_lookahead.additional_access_methods from regress_la_voucher;
drop role regress_la_voucher;

-- a name does not make a method known, nor does its handler's
create function hnswhandler(internal) returns index_am_handler language c as :'library', 'la_test_handler';
create access method hnsw type index handler hnswhandler;
create operator class box_ops default for type box using hnsw as
    operator 3 &&, function 1 gist_box_consistent(internal, box, smallint, oid, internal), function 2 gist_box_union(internal, internal),
    function 5 gist_box_penalty(internal, internal, internal), function 6 gist_box_picksplit(internal, internal),
    function 7 gist_box_same(box, box, internal);
drop index t_b;
create index t_h on t using hnsw (b);
execute found;
select * from last;

-- core's own handler under another name is another method
create access method second type index handler gisthandler;
create operator class box_ops default for type box using second as
    operator 3 &&, function 1 gist_box_consistent(internal, box, smallint, oid, internal), function 2 gist_box_union(internal, internal),
    function 5 gist_box_penalty(internal, internal, internal), function 6 gist_box_picksplit(internal, internal),
    function 7 gist_box_same(box, box, internal);
drop index t_h;
create index t_s on t using second (b);
execute boxes;
select count(*), sum(i) from t where b && box '((100,100),(700,700))';
select * from last;

-- bitmap scans where another extension has put something between node and access method
create function la_test_copies(bool) returns void language c as :'library';
create function la_test_copied() returns int language c as :'library';
create table a (i int, tags int[]);
insert into a select i, array[i % 10, i % 77] from generate_series(1, 5000) i;
create index a_tags on a using gin (tags) with (fastupdate = off);
create index a_i on a (i);
vacuum analyze a;
set enable_bitmapscan = on;
set enable_indexscan = off;
select count(*), sum(i) from a where tags @> array[3, 33];
select kind, relation, index, scans_attached from last where kind = 'bitmap index scan';
select la_test_copies(true);
select count(*), sum(i) from a where tags @> array[3, 33];
select count(*), sum(i) from a where i between 100 and 2000 or tags @> array[5, 50];
select s, (select count(*) from a where tags @> array[s, s * 11]) from generate_series(1, 3) s;
select la_test_copies(false), la_test_copied();
