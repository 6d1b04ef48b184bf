# shellcheck shell=bash
#
# dev/fresh_lib/next.sh - the tests on a server of the newest major, PostgreSQL 19.
#
# Debian has it in "experimental" only, built for the C library of its unstable release, so
# it runs on a machine of that.  The headers are unpacked and not installed, since their
# package depends on compilers that nothing here needs.
#
# Sourced by dev/fresh, which gives MACHINE and in_root(), after dev/lib/next.sh.

# next_server: install it into the machine; fails where no suite has it
next_server()
{
	local package=postgresql-server-dev-$NEXT_MAJOR

	root_sources experimental >"$MACHINE/etc/apt/sources.list.d/experimental.list"
	# nothing else of that suite
	printf '%s\n' "Package: postgresql* libpq*" "Pin: release a=experimental" "Pin-Priority: 990" \
		>"$MACHINE/etc/apt/preferences.d/next"
	in_root "$MACHINE" apt-get update -q &&
		in_root "$MACHINE" apt-get install -q -y --no-install-recommends \
			"postgresql-$NEXT_MAJOR" gcc make libc6-dev libpq-dev &&
		in_root "$MACHINE" bash -c "cd /tmp && apt-get download -q $package && dpkg -x $package*.deb /"
}

# next_tests NAME: a strict build, and what dev/test does with pg_regress and the isolation tester
next_tests()
{
	local config=/usr/lib/postgresql/$NEXT_MAJOR/bin/pg_config
	local headers

	# what is in the server's headers is not ours (dev/lib/extension.sh)
	headers=$(in_root "$MACHINE" "$config" --includedir-server)
	say "$1: $(in_root "$MACHINE" "$config" --version)"
	test_that "$1: it compiles without a warning, and can be installed" \
		there "$1-build" make -s -C "$CHECKOUT" PG_CONFIG="$config" with_llvm=no \
		COPT="-isystem $headers ${WARNINGS[*]}" install
	test_that "$1: all of test/sql and test/specs" \
		there "$1-installcheck" env PG_CONFIG="$config" "$CHECKOUT/test/installcheck" --all
}
