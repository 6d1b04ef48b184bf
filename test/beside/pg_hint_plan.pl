# pg_hint_plan.pl - plans are those that hints ask for, and give the same rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

my @hints = (
	'NestLoop(o t) Leading((o t)) IndexScan(t t_k)', 'NestLoop(t o) Leading((t o))',
	'HashJoin(o t) Leading((t o)) SeqScan(t)', 'MergeJoin(o t) IndexScan(t t_k)',
	'HashJoin(o t) Set(enable_seqscan off)', 'Rows(o t #10) NestLoop(o t)',
	'Parallel(t 1 hard) HashJoin(o t)');
my $hinted = '';

for my $hint (@hints)
{
	$hinted .= "/*+ $hint */ $_ SELECT o.id, count(*), sum(t.id), max(length(p)) FROM o JOIN t ON t.k = o.k GROUP BY o.id ORDER BY 1;\n"
	  for 'EXPLAIN (COSTS OFF)', '';
}

beside(
	name => 'pg_hint_plan',
	libraries => ['pg_hint_plan'],
	builds => 1,
	statements => "$hinted /*+ IndexScan(t t_k) */ SELECT id, p FROM t WHERE k > 700 ORDER BY k, j;\n" . statements());

done_testing();
