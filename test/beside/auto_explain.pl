# auto_explain.pl - it logs the same plans, with the same counts, of the same statements.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

my $position;

# Not how long it took, nor what failed, which is printed by psql.
sub plans
{
	my ($node) = @_;

	return join '', map { s/duration: [0-9.]+ ms/duration/r }
	  grep { !/^beside: (ERROR|STATEMENT|CONTEXT|DETAIL)/ } logged_since($node, $position);
}

beside(
	name => 'auto_explain',
	has_no_sql => 1,
	libraries => ['auto_explain'],
	conf => "auto_explain.log_min_duration = 0\nauto_explain.log_analyze = on\nauto_explain.log_timing = off\n"
	  . "auto_explain.log_nested_statements = on\nauto_explain.log_triggers = on\n",
	prepare => sub { $position = log_position($_[0]) },
	observe => \&plans);

done_testing();
