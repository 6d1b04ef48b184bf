# pg_qualstats.pl - it counts the same predicates, executions and filtered rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'pg_qualstats',
	libraries => ['pg_qualstats'],
	conf => "pg_qualstats.sample_rate = 1\n",
	prepare => sub { $_[0]->safe_psql('beside', 'SELECT pg_qualstats_reset()') },
	observe => sub {
		return $_[0]->safe_psql(
			'beside', q(
			SELECT lrelid::regclass, lattnum, opno::regoperator, rrelid::regclass, rattnum, eval_type, constvalue,
				sum(occurences), sum(execution_count), sum(nbfiltered)
			FROM pg_qualstats WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'beside')
			GROUP BY 1, 2, 3, 4, 5, 6, 7 ORDER BY 1, 2, 3, 4, 5, 6, 7));
	});

done_testing();
