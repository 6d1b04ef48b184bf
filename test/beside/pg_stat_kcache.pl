# pg_stat_kcache.pl - it has figures of the same statements.  The figures are the system's, and differ.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

beside(
	name => 'pg_stat_kcache',
	libraries => [ 'pg_stat_statements', 'pg_stat_kcache' ],
	conf => "pg_stat_statements.track = all\npg_stat_kcache.track = all\n",
	prepare => sub { $_[0]->safe_psql('beside', 'SELECT pg_stat_statements_reset(); SELECT pg_stat_kcache_reset()') },
	observe => sub {
		return $_[0]->safe_psql(
			'beside', q(
			SELECT top, left(query, 200), exec_user_time + exec_system_time >= 0, exec_reads >= 0
			FROM pg_stat_kcache() k JOIN pg_stat_statements s USING (queryid, userid, dbid)
			WHERE dbid = (SELECT oid FROM pg_database WHERE datname = 'beside')
				AND query NOT LIKE '%_reset%' AND k.top = s.toplevel
			ORDER BY query, top));
	});

done_testing();
