# pg_repack.pl - it rewrites a table and builds its indexes anew.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use Beside;
use Test::More;

# Contents, structure and sizes of what it has made.
my $checks = q(
	SELECT count(*), sum(hashtext(w::text)) FROM w;
	SELECT bt_index_parent_check(indexrelid, true, true) FROM pg_index WHERE indrelid = 'w'::regclass;
	SELECT pg_get_indexdef(indexrelid), pg_relation_size(indexrelid) FROM pg_index WHERE indrelid = 'w'::regclass ORDER BY 1;);

sub repack
{
	my ($node, $mode) = @_;

	$node->safe_psql('beside', 'TRUNCATE w; INSERT INTO w TABLE as_it_was');
	for my $how ([ '-o', 'a' ], ['-x'], ['-n'])
	{
		local $ENV{PGOPTIONS} = settings_of($mode);
		$node->command_ok(
			[ 'pg_repack', '-h', $node->host, '-p', $node->port, '-d', 'beside', '-k', '-t', 'w', @$how ],
			"$mode: pg_repack @$how");
		$node->safe_psql('beside', 'UPDATE w SET b = b + 1 WHERE a % 10 = 3');
	}
	return;
}

beside(
	name => 'pg_repack',
	libraries => ['pg_repack'],
	builds => 1,
	setup => q(
		CREATE EXTENSION amcheck;
		CREATE TABLE w (id int PRIMARY KEY, a int, b int, p text);
		INSERT INTO w SELECT i, i * 7919 % 5003, i % 17, repeat('p', i % 200) FROM generate_series(1, 5000) i;
		CREATE INDEX w_a ON w (a);
		CREATE INDEX w_bp ON w (b, p);
		CREATE TABLE as_it_was AS TABLE w;),
	prepare => \&repack,
	statements => 'SET enable_seqscan = off; SET enable_bitmapscan = off;
		SELECT id, a, b FROM w WHERE a > 100 ORDER BY a LIMIT 1000;' . $checks);

done_testing();
