# pgaudit.pl - it logs the same statements, relations and numbers of rows, in the same order.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

my $position;

beside(
	name => 'pgaudit',
	libraries => ['pgaudit'],
	statements => statements() . left_early(),
	builds => 1,
	conf => "pgaudit.log = all\npgaudit.log_relation = on\npgaudit.log_parameter = on\npgaudit.log_rows = on\n",
	prepare => sub { $position = log_position($_[0]) },
	observe => sub { return join '', grep { /AUDIT: / } logged_since($_[0], $position) });

done_testing();
