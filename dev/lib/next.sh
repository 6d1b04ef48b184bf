# shellcheck shell=bash
#
# dev/lib/next.sh - a server of the newest major, PostgreSQL 19, from a later Debian's packages.
#
# Only Debian's suites for what comes have it, built for a C library that is newer than this
# release's.  That library and all others are unpacked beside the server, and patchelf enters
# their dynamic loader and their directory in the server's programs.  So it is a server like the
# others: it needs no rights and no machine of its own, and what its programs start (a shell, Perl)
# finds this machine's libraries, as it would not with LD_LIBRARY_PATH.  What is compiled here, for
# the older C library, loads into it.
#
#   .cache/apt-next/         an apt configuration of its own, as in sources.sh
#   .cache/apt-next/version  the newest version that could be had
#   .cache/pg/19/unpacked/   the packages of the server, its client and headers, and of libpq
#   .cache/pg/19/inst        a symbolic link to usr/lib/postgresql/19 in there; runtime/ below it
#                            has the libraries, the loader and patchelf
#
# A newer version is looked for once a day.  As long as that cannot be had, the one at hand stays.
# Sourced by servers.sh, after debs.sh.

NEXT_MAJOR=19
NEXT_SUITES=(experimental sid)
NEXT_APT=$CACHE/apt-next

# next_list: the machine's entries for this Debian, as entries of those suites
next_list()
{
	local here opt uri suite other

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		case $suite in
			"$here" | stable | oldstable) ;;
			*) continue ;;
		esac
		for other in "${NEXT_SUITES[@]}"; do
			printf 'deb [%s] %s %s main\n' "$opt" "$uri" "$other"
		done
	done | sed 's/ \[ *\]//' | sort -u
}

# next_recipe [VERSION]: what the stamp has to say
next_recipe()
{
	echo "a later Debian's packages, unpacked with their C library:" \
		"${1:-$(cat "$NEXT_APT/version" 2>/dev/null)}"
}

# next_is_due: has nobody looked for a newer version for a day?
next_is_due()
{
	[ -z "$(find "$NEXT_APT/asked" -mtime -1 2>/dev/null)" ]
}

# look_for_next: the newest version that is offered becomes the one that is wanted
look_for_next()
{
	local version

	mkdir -p "$NEXT_APT"
	(
		private_apt "$NEXT_APT" next_list
		version=$(deb_versions "$NEXT_MAJOR" | head -n 1)
		[ -z "$version" ] || echo "$version" >"$NEXT_APT/version"
	) || true
	touch "$NEXT_APT/asked"
}

# fetch_next VERSION: into ./fetched, with all shared libraries that they depend on
fetch_next()
{
	local deb name
	local -a names=(libc6 zlib1g patchelf)

	fetch_debs "$NEXT_MAJOR" "$1" || return 1
	mkdir fetched
	while [ ${#names[@]} -gt 0 ]; do
		# all at once, since apt takes a while to begin
		apt-get download -q "${names[@]}" || return 1
		mapfile -t names < <(for deb in ./*.deb; do
			[[ $deb = *-dev* ]] || libraries_of "$deb"
			mv "$deb" fetched/
		done | sort -u | while IFS= read -r name; do
			compgen -G "fetched/${name}_*" >/dev/null || printf '%s\n' "$name"
		done)
	done
}

# place_next DIR: unpack ./fetched there
place_next()
{
	local deb runtime=$1/unpacked/usr/lib/postgresql/$NEXT_MAJOR/runtime

	for deb in fetched/*.deb; do
		case $deb in
			*/postgresql-* | */libpq* | *-dev_*) dpkg -x "$deb" "$1/unpacked" || return 1 ;;
			*) dpkg -x "$deb" libraries || return 1 ;;
		esac
	done
	mkdir -p "$runtime"
	find libraries/usr/lib/*-linux-gnu* "$1"/unpacked/usr/lib/*-linux-gnu* -path '*/gconv' -prune -o \
		-name '*.so*' ! -type d -exec cp -a -t "$runtime" {} + || return 1
	cp -a libraries/usr/bin/patchelf "$runtime" || return 1
	rm -rf "$runtime/../lib"/{llvmjit*,bitcode}
}

# enter_loader PREFIX: in all programs of the server that lies there now
enter_loader()
{
	local runtime=$1/runtime loader file
	local -a patchelf

	loader=$(compgen -G "$runtime/ld-linux*") || return 1
	patchelf=("$loader" --library-path "$runtime" "$runtime/patchelf")
	find "$1/" -path "$runtime" -prune -o -type f -perm -u+x -print | while IFS= read -r file; do
		# what has none is a script
		"${patchelf[@]}" --print-interpreter "$file" >/dev/null 2>&1 || continue
		"${patchelf[@]}" --set-interpreter "$loader" --force-rpath --set-rpath "$runtime" "$file" ||
			return 1
	done
}

# suit_compiler PREFIX: configuration without what only the later Debian's compiler knows
suit_compiler()
{
	local makefile=$1/lib/pgxs/src/Makefile.global flag

	for flag in $(sed -n 's/^CFLAGS = //p' "$makefile" | grep -oE -- '-W[^ ]+' | sort -u); do
		"${CC:-cc}" -Werror "$flag" -fsyntax-only -x c /dev/null ||
			sed -i "s/ $flag\( \|\$\)/\1/g" "$makefile" || return 1
	done
	echo 'int a; typeof_unqual(a) b;' | "${CC:-cc}" -fsyntax-only -x c - ||
		find "$("$1/bin/pg_config" --includedir-server)" -name 'pg_config*.h' \
			-exec sed -i '/^#define HAVE_TYPEOF_UNQUAL 1/d' {} +
}

# finish_next DIR: make a server of what was unpacked there
finish_next()
{
	local inst=$1/inst

	ln -s "unpacked/usr/lib/postgresql/$NEXT_MAJOR" "$inst"
	enter_loader "$(realpath "$inst")" && suit_compiler "$(realpath "$inst")" &&
		"$inst/bin/postgres" --version
}

# unpack_next NAME: the newest version that can be had
unpack_next()
{
	local name=$1 dir=$CACHE/pg/$1 log=$LOGS/build-$1.log version began

	began=$(date +%s)
	: >"$log"
	(
		private_apt "$NEXT_APT" next_list
		for version in $(deb_versions "$name"); do
			[ "$(cat "$dir/stamp" 2>/dev/null)" != "$(next_recipe "$version")" ] || break
			say "PostgreSQL $name: unpacking a later Debian's packages of $version, and its C library"
			rm -rf "$dir.new"
			mkdir -p "$dir.new/fetch"
			cd "$dir.new/fetch" || exit 1
			if quietly "$log" fetch_next "$version" && quietly "$log" place_next "$dir.new"; then
				cd "$CACHE" || exit 1
				# its suites are of the version before
				rm -rf "$dir.new/fetch" "$dir" "$CACHE/src/$name" "$CACHE/src/$name.refused"
				mv "$dir.new" "$dir"
				quietly "$log" finish_next "$dir" || break
				echo "$version" >"$dir/version"
				next_recipe "$version" >"$dir/stamp"
				break
			fi
			say "  $version cannot be had from the mirror; log: $log"
		done
		cd "$CACHE" || exit 1
		rm -rf "$dir.new"
		[ -e "$dir/stamp" ] && cp "$dir/version" "$NEXT_APT/version"
	) && server_present "$name" || {
		warn "PostgreSQL $name comes from the packages of Debian's ${NEXT_SUITES[*]}, and these cannot" \
			"be had or do not work here; name the other servers to do without it; log: $log"
		return 1
	}
	say "PostgreSQL $name: $(cat "$dir/version") is ready after $(elapsed "$began")"
}

# need_next_source: whose suites and checks dev/test has use for; asked for once a day
need_next_source()
{
	local refused=$CACHE/src/$NEXT_MAJOR.refused

	[ ! -e "$CACHE/src/$NEXT_MAJOR/.version" ] || return 0
	[ -z "$(find "$refused" -mtime -1 2>/dev/null)" ] || return 1
	if ! (fetch_source "$NEXT_MAJOR" "$(sed 's/-[^-]*$//' "$NEXT_APT/version")") 2>/dev/null; then
		touch "$refused"
		return 1
	fi
}
