# all.pl - everything that is there and can be preloaded, at once.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

use PostgreSQL::Test::Utils;

my ($directory) = split /\n/, `pg_config --pkglibdir`;
my @libraries = grep { -e "$directory/$_.so" }
  qw(timescaledb pg_stat_statements pg_stat_kcache pg_wait_sampling pg_qualstats pg_hint_plan hypopg pgaudit auto_explain
	pg_cron pg_partman_bgw orafce powa);
my $position;

note("libraries: @libraries");
beside(
	name => 'all',
	has_no_sql => 1,
	libraries => \@libraries,
	conf => "pg_stat_statements.track = all\npgaudit.log = all\nauto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\n"
	  . "auto_explain.log_timing = off\nauto_explain.log_nested_statements = on\npg_qualstats.sample_rate = 1\n"
	  . "pg_wait_sampling.profile_period = 1\ncron.database_name = 'postgres'\ntimescaledb.telemetry_level = off\n",
	prepare => sub { $position = log_position($_[0]) },
	observe => sub {
		return join '', map { s/duration: [0-9.]+ ms/duration/r }
		  grep { !/^beside: (ERROR|STATEMENT|CONTEXT|DETAIL)/ } logged_since($_[0], $position);
	});

done_testing();
