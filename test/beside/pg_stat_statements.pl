# pg_stat_statements.pl - it counts the same statements, executions and rows.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'pg_stat_statements',
	libraries => ['pg_stat_statements'],
	statements => statements() . left_early(),
	builds => 1,
	conf => "pg_stat_statements.track = all\npg_stat_statements.track_planning = on\n",
	prepare => sub { $_[0]->safe_psql('beside', 'SELECT pg_stat_statements_reset()') },
	observe => sub {
		return $_[0]->safe_psql(
			'beside', q(
			SELECT toplevel, plans, calls, rows, jit_functions, left(query, 200)
			FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'beside')
				AND query NOT LIKE '%pg_stat_statements_reset%'
			ORDER BY query, toplevel, calls));
	});

done_testing();
