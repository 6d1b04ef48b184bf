# pg_wait_sampling.pl - it sees a session wait, in the statement that waits.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

my $waits = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;
	SELECT id, pg_sleep(0.1) FROM t WHERE k = 100 ORDER BY k, j; RESET ALL;';

beside(
	name => 'pg_wait_sampling',
	libraries => ['pg_wait_sampling'],
	conf => "pg_wait_sampling.profile_period = 1\npg_wait_sampling.history_period = 1\npg_wait_sampling.history_size = 100000\n",
	statements => $waits . statements() . $waits,
	prepare => sub { $_[0]->safe_psql('beside', 'SELECT pg_wait_sampling_reset_profile()') },
	observe => sub {
		return $_[0]->safe_psql(
			'beside', q(
			SELECT event_type, event, queryid, sum(count) > 0 FROM pg_wait_sampling_profile
				WHERE event = 'PgSleep' GROUP BY 1, 2, 3 ORDER BY 3;
			SELECT event, count(*) > 0 FROM pg_wait_sampling_history WHERE event = 'PgSleep' GROUP BY 1));
	});

done_testing();
