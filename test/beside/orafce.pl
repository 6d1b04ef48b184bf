# orafce.pl - its functions and types, in and around joins.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'orafce',
	libraries => ['orafce'],
	builds => 1,
	setup => tables() . q(
		CREATE TABLE ora (a oracle.varchar2(20), d oracle.date, k int);
		INSERT INTO ora SELECT 's' || i % 70, '2020-01-01'::timestamp + i % 400 * interval '1 day', i % 900
			FROM generate_series(1, 3000) i;
		CREATE INDEX ora_k ON ora (k);
		ANALYZE ora;
		CREATE FUNCTION talk(x int) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM dbms_output.put_line('row ' || x);
			RETURN x;
		END $$;),
	statements => q(
		SET search_path = public, oracle; SET max_parallel_workers_per_gather = 0;
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off; SET enable_material = off; SET enable_memoize = off;
		SELECT o.id, nvl(t.k, -1), oracle.substr(t.s, 1, 2) FROM o LEFT JOIN t ON t.id = o.k ORDER BY 1, 2, 3;
		SELECT o.id, ora.a, oracle.to_char(ora.d) FROM o JOIN ora ON ora.k = nvl(o.k, 7);
		SELECT count(*) FROM o JOIN ora ON ora.k = o.k WHERE ora.d > oracle.to_date('2020-05-01', 'YYYY-MM-DD');
		SELECT decode(o.j, 1, 'one'::text, 2, 'two'::text, 'many'::text), count(*) FROM o JOIN ora ON ora.k = o.k GROUP BY 1 ORDER BY 1;
		SELECT dbms_output.enable(1000000);
		SELECT count(talk(t.id)) FROM o JOIN t ON t.k = o.k WHERE o.id < 50;
		SELECT lines FROM dbms_output.get_lines(10000);
		SELECT talk(o.id), t.id FROM o JOIN t ON t.k = talk(o.k) WHERE o.id < 20;
		SELECT lines FROM dbms_output.get_lines(10000);
		SELECT count(*) FROM oracle.dual;
		RESET enable_hashjoin; SET enable_nestloop = off;
		SELECT count(*) FROM ora JOIN t ON ora.a = t.s::oracle.varchar2 AND ora.k = t.k;
		SELECT median(t.k) FROM t JOIN o ON o.s = t.s;) . statements());

done_testing();
