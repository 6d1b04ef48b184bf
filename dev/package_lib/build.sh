#!/bin/bash
#
# dev/package_lib/build.sh - builds packages on a machine that has what that needs.
#
#   build.sh deb MAJOR     from ./*.zip, and ./old.tar if there is one: ./new.deb, ./old.deb
#   build.sh rpm MAJOR     from ./*.zip
#   build.sh pgxn MAJOR    installs ./*.zip as users of PGXN do, and removes it again
#
# Runs in the directory where they are.  dev/package copies it there.

set -uo pipefail
. ./checks.sh

action=$1 major=$2
archive=$(echo pg_lookahead-*.zip)
version=${archive#pg_lookahead-}
version=${version%.zip}
config=/usr/lib/postgresql/$major/bin/pg_config

# What lintian says of every package of this project, and why it may: no upload to Debian
# (no bug to close), no place on the net (to watch, or to call home), the layout of Debian's
# servers, and a library without a call that fortification could change.
ALLOWED=initial-upload-closes-no-bugs,debian-watch-file-is-missing,no-homepage-field,repeated-path-segment,hardening-no-fortify-functions

# ---- Debian ---------------------------------------------------------------

unpack()
{
	unzip -q "$archive" &&
		tar --exclude=debian --mtime=@0 -czf "pg-lookahead_$version.orig.tar.gz" "pg_lookahead-$version"
}

build_deb()
{
	(cd "pg_lookahead-$version" && dpkg-buildpackage -us -uc) && cp "postgresql-$major-lookahead_"*.deb new.deb
}

# lintian_is_silent: in the release that the files are written for it is asked for its opinions
# as well; later ones have other opinions of what an older one needs
lintian_is_silent()
{
	local said
	local -a opinions=()

	! grep -q '^VERSION_CODENAME=bookworm' /etc/os-release || opinions=(--pedantic --display-info)
	said=$(lintian --allow-root "${opinions[@]}" --suppress-tags "$ALLOWED" ./*.changes 2>&1) || true
	echo "$said"
	[ -z "$said" ]
}

# depends_on_server: of this major, and not of what a build without bitcode does not need
depends_on_server()
{
	local depends

	depends=$(dpkg-deb -f new.deb Depends)
	echo "$depends"
	[[ " $depends," =~ " postgresql-$major"[\ ,] && $depends != *llvm* ]]
}

# build_old: the same package with the files of the older version, which had no scripts
build_old()
{
	local was

	mkdir -p old stage && tar -C old -xf old.tar || return 1
	was=$(sed -n "s/^default_version = '\(.*\)'/\1/p" old/pg_lookahead.control)
	make -s -C old PG_CONFIG="$config" with_llvm=no install "DESTDIR=$PWD/stage" &&
		dpkg-deb -e new.deb stage/DEBIAN && rm -f stage/DEBIAN/{md5sums,triggers,postinst,prerm,postrm} &&
		sed -i "s/^Version: .*/Version: $was-1/" stage/DEBIAN/control &&
		dpkg-deb --root-owner-group -b stage old.deb
}

# ---- RPM ------------------------------------------------------------------

build_rpm()
{
	unzip -q -o "$archive" && mkdir -p rpm/SOURCES && cp "$archive" rpm/SOURCES &&
		rpmbuild --nodeps -ba -D "_topdir $PWD/rpm" -D "pgmajorversion $major" \
			-D "pg_config $config" "pg_lookahead-$version/packaging/pg_lookahead.spec"
}

rpm_holds()
{
	local file files

	files=$(rpm -qpl rpm/RPMS/*/*.rpm)
	echo "$files"
	for file in "$@"; do
		grep -qx "$file" <<<"$files" || {
			echo "without $file"
			return 1
		}
	done
}

rpmlint_is_silent()
{
	local said

	said=$(rpmlint -c "pg_lookahead-$version/packaging/rpmlint.toml" \
		"pg_lookahead-$version/packaging/pg_lookahead.spec" rpm/SRPMS/*.rpm rpm/RPMS/*/*.rpm 2>&1)
	echo "$said"
	grep -q '0 errors, 0 warnings' <<<"$said"
}

# ---- PGXN -----------------------------------------------------------------

pgxn_install()
{
	pgxn --yes install --nosudo --pg_config "$config" "./$archive"
}

# script: one that leads to this version
script()
{
	unzip -Z1 "$archive" | sed -n "s,.*/sql/\(pg_lookahead--.*$version\.sql\)$,\1,p" | head -n 1
}

installed()
{
	[ -e "$("$config" --pkglibdir)/pg_lookahead.so" ] &&
		[ -e "$("$config" --sharedir)/extension/$(script)" ]
}

case $action in
	deb)
		test_that "the archive is unpacked" unpack
		test_that "the package for PostgreSQL $major is built" build_deb
		test_that "lintian has nothing to say" lintian_is_silent
		test_that "it depends on the server, and on nothing else of PostgreSQL" depends_on_server
		[ ! -e old.tar ] || test_that "the package of the older version" build_old
		;;
	rpm)
		test_that "the RPM is built, with its tests" build_rpm
		test_that "it holds library, control file and scripts" rpm_holds \
			"$("$config" --pkglibdir)/pg_lookahead.so" \
			"$("$config" --sharedir)/extension/pg_lookahead.control" \
			"$("$config" --sharedir)/extension/$(script)"
		test_that "rpmlint finds neither error nor warning" rpmlint_is_silent
		;;
	pgxn)
		test_that "pgxn installs the archive" pgxn_install
		test_that "library and scripts are there" installed
		test_that "pgxn removes it" pgxn --yes uninstall --nosudo --pg_config "$config" "./$archive"
		test_that "the library is gone" [ ! -e "$("$config" --pkglibdir)/pg_lookahead.so" ]
		;;
esac
sum_up
