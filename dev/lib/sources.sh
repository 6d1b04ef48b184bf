# shellcheck shell=bash
#
# dev/lib/sources.sh - PostgreSQL's sources, from Debian's source packages.
#
# fetch_source MAJOR leaves an unpacked tree, fetch_package one of any other package:
#
#   .cache/apt/            a private apt configuration: own source list, own
#                          package lists, own cache; the system's is only read
#   .cache/apt-release/    the same for binary packages of this release (debs.sh)
#   .cache/src/18/         the upstream tarball, unpacked (Debian's patches are
#                          not wanted), with the file .version beside it
#
# The private source list is derived from the machine's own, in either format
# (one-line *.list, deb822 *.sources): every entry for this Debian release with
# the component "main" becomes deb-src, once for the release itself (with its
# updates and security suites) and once for each suite of SOURCE_SUITES below,
# security suites included.  So a mirror or proxy that the machine is set up for
# is used here too.
#
# In the days after a release a mirror lists the new minor and does not have its
# files yet.  Then an older one is taken whose tarball it still has: known_tarballs
# has the checksums, as Debian's signed lists had them.

# major -> suites that carry its source package, best first
declare -A SOURCE_SUITES=([15]="bookworm" [16]="" [17]="trixie sid" [18]="sid forky"
	[19]="experimental sid")

APT=$CACHE/apt

codename()
{
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release | tr -d '"'
}

# system_entries: the machine's entries, one "OPTIONS|URI|SUITE" a line
system_entries()
{
	local file

	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[ -r "$file" ] || continue
		perl -ne '
			next unless /^\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)$/;
			my ($opt, $uri, $suite, $comp) = ($1 // "", $2, $3, $4);
			next unless $comp =~ /\bmain\b/;
			print "$opt|$uri|$suite\n";' "$file"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ -r "$file" ] || continue
		perl -00 -ne '
			s/^#.*\n//mg;
			s/\n[ \t]+/ /g;			# folded fields
			my %f = map { /^([\w-]+):\s*(.*?)\s*$/ ? (lc $1, $2) : () } split /\n/;
			next if lc($f{enabled} // "yes") eq "no";
			next unless ($f{types} // "") =~ /\bdeb\b/;
			next unless ($f{components} // "") =~ /\bmain\b/;
			my @opt;
			# a key that is spelled out inside the file cannot be carried over
			push @opt, "signed-by=$f{q(signed-by)}"
				if ($f{"signed-by"} // "") =~ m{^/\S+$};
			push @opt, "trusted=$f{trusted}" if $f{trusted};
			for my $uri (split " ", $f{uris} // "") {
				for my $suite (split " ", $f{suites} // "") {
					print join("|", "@opt", $uri, $suite), "\n";
				}
			}' "$file"
	done
}

# private_list: the derived deb-src lines
private_list()
{
	local here opt uri suite other

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		opt=$(sed 's/arch=[^ ]*//' <<<"$opt")
		case $suite in
			"$here" | stable | oldstable)
				printf 'deb-src [%s] %s %s main\n' "$opt" "$uri" "$suite"
				for other in $(printf '%s ' "${SOURCE_SUITES[@]}"); do
					[ "$other" = "$suite" ] ||
						printf 'deb-src [%s] %s %s main\n' "$opt" "$uri" "$other"
				done
				;;
			"$here"-security)
				printf 'deb-src [%s] %s %s main\n' "$opt" "$uri" "$suite"
				for other in $(printf '%s ' "${SOURCE_SUITES[@]}"); do
					[[ " sid experimental $here " = *" $other "* ]] ||
						printf 'deb-src [%s] %s %s-security main\n' "$opt" "$uri" "$other"
				done
				;;
			"$here"-updates)
				printf 'deb-src [%s] %s %s main\n' "$opt" "$uri" "$suite"
				;;
		esac
	done | sed 's/ \[ *\]//' | sort -u
}

# release_list: this release's lines, for binary packages
release_list()
{
	local here opt uri suite

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		case $suite in
			"$here" | "$here"-security | "$here"-updates)
				printf 'deb [%s] %s %s main\n' "$opt" "$uri" "$suite"
				;;
		esac
	done | sed 's/ \[ *\]//' | sort -u
}

# private_apt [DIR LIST]: (re)read the private lists, at most once a day
# shellcheck disable=SC2120 # debs.sh gives them
private_apt()
{
	local dir=${1:-$APT} list=${2:-private_list}

	export APT_CONFIG=$dir/apt.conf
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/parts"
	cat >"$dir/apt.conf" <<-EOF
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "$dir/parts";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir/cache";
		APT::Sandbox::User "$(id -un)";
		Acquire::Retries "3";
		Acquire::Languages "none";
	EOF
	"$list" >"$dir/sources.list.new"
	[ -s "$dir/sources.list.new" ] ||
		die "no entry for Debian $(codename) with component main in /etc/apt: cannot derive a source list"
	if cmp -s "$dir/sources.list.new" "$dir/sources.list" &&
		[ -n "$(find "$dir/stamp" -mtime -1 2>/dev/null)" ]; then
		return 0
	fi
	mv "$dir/sources.list.new" "$dir/sources.list"
	say "reading Debian's $([ "$list" = private_list ] && echo source || echo package) lists"
	# a suite that has gone (forky before it exists) is no reason to stop
	quietly "$LOGS/sources.log" apt-get update ||
		warn "some suites could not be read; going on with the others"
	! compgen -G "$dir/lists/*_dists_*" >/dev/null || touch "$dir/stamp"
}

# source_versions PACKAGE: what the suites offer, newest first
source_versions()
{
	apt-cache madison "$1" 2>/dev/null |
		awk -F'|' '/Sources/ {gsub(/ /, "", $2); print $2}' |
		sort -Vru
}

# known_tarballs: PACKAGE VERSION SHA256 of tarballs that a mirror may no longer
# list and still have, newest first
known_tarballs()
{
	cat <<-EOF
		postgresql-15 15.20 30e65cbbb771a39b553ed2df7e65622e65647aed55dbc19bd0fe853ff0a08442
		postgresql-15 15.19 e1a64a87a46b825b88c082e4518161a47aab53c45694964f8ba1df28f7859f89
		postgresql-15 15.18 11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4
		postgresql-17 17.12 9cf136a703d8ee2f83465c43be4e9e8e7930c82b0bfba13be7e2537be769ac55
		postgresql-17 17.11 dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979
		postgresql-17 17.10 078a03516dcdbdb705fecaf415ea3d13a956c589e46f09fed68a06fb00598c90
		postgresql-18 18.6 555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f
		postgresql-18 18.4 81a81ec695fb0c7901407defaa1d2f7973617154cf27ba74e3a7ab8e64436094
		postgresql-18 18.3 d95663fbbf3a80f81a9d98d895266bdcb74ba274bcc04ef6d76630a72dee016f
	EOF
}

# unlisted_tarball PACKAGE: an older tarball from where the listed ones should be,
# into the current directory; prints its version
unlisted_tarball()
{
	local package=$1 version sum listed uri file log=$LOGS/sources.log

	for listed in $(source_versions "$package"); do
		for uri in $(apt-get source --print-uris --tar-only -qq "$package=$listed" 2>>"$log" |
			sed -n "s/^'\([^']*\)'.*/\1/p"); do
			while read -r version sum; do
				file=${package}_$version.orig.tar.${uri##*.}
				if /usr/lib/apt/apt-helper download-file "${uri%/*}/$file" "$file.new" \
					"SHA256:$sum" >>"$log" 2>&1 </dev/null; then
					mv "$file.new" "$file"
					printf '%s\n' "$version"
					return 0
				fi
				rm -f "$file.new"
			done < <(known_tarballs | sed -n "s/^$package //p")
		done
	done
	return 1
}

# fetch_package PACKAGE DIR [WANTED]: unpack a source package's upstream tarball
# into .cache/src/DIR; WANTED is the upstream version to prefer, such as 15.20.  A
# mirror may list a version and not have its files: then the next one is taken,
# and at last one that it lists no more.  Only the tarball is asked for: Debian's own files are not wanted.
fetch_package()
{
	local package=$1 name=$2 wanted=${3:-} dir=$CACHE/src/$2 log=$LOGS/sources.log
	local version tarball got

	# a tree at hand is good; another version than wanted was the best to be had
	[ -e "$dir/.version" ] && return 0
	(
		# two scripts may want the same tree
		flock 9
		[ -e "$dir/.version" ] && exit 0
		private_apt
		rm -rf "$dir" "$dir.new"
		mkdir -p "$dir.new" "$CACHE/src/tarballs"
		cd "$CACHE/src/tarballs" || exit 1
		for version in $({
			[ -n "$wanted" ] && source_versions "$package" | grep "^${wanted//./\\.}-"
			source_versions "$package"
		} | awk '!seen[$0]++'); do
			say "fetching the source of $package: $version"
			if apt-get source --download-only --tar-only -q "$package=$version" \
				>>"$log" 2>&1 </dev/null; then
				got=${version%-*}
				break
			fi
			say "  $version cannot be had from the mirror"
		done
		if [ -z "${got:-}" ] && got=$(unlisted_tarball "$package"); then
			say "  $got, which is not listed any more, still can"
		fi
		[ -n "${got:-}" ] ||
			die "no source package $package to be had (no network?); log: $log"
		tarball=$(find . -name "${package}_$got.orig.tar.*" ! -name '*.asc')
		tar -xf "$tarball" -C "$dir.new" --strip-components=1 --no-same-owner ||
			die "cannot unpack $tarball"
		printf '%s\n' "$got" >"$dir.new/.version"
		mv "$dir.new" "$dir"
	) 9>"$CACHE/src.$name.lock"
}

# fetch_source MAJOR [WANTED]: PostgreSQL itself
fetch_source()
{
	fetch_package "postgresql-$1" "$1" "${2:-}"
}

# source_version DIR: what .cache/src/DIR holds
source_version()
{
	cat "$CACHE/src/$1/.version"
}
