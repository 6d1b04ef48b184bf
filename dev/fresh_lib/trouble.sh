# shellcheck shell=bash
#
# dev/fresh_lib/trouble.sh - what cannot be had is said in one line.
#
# Sourced by dev/fresh, which gives MACHINE, there() and one_line().  trouble_tests is for a
# machine where nothing is installed, and trouble_after NAME [--user] for one where
# dev/demo has just worked; the longer one of its tests is made with --user only.

# a command line that runs a script with its work area on a file system of 16 MB
# shellcheck disable=SC2016 # expanded there
SMALL_DISK=(bash -c 'mount -t tmpfs -o size=16m tmpfs /mnt && TMPDIR=/mnt exec "$@"' -)

trouble_tests()
{
	local script

	for script in demo test; do
		test_that "no network: dev/$script says so" \
			one_line "trouble-network-$script" 'no network' --offline "$CHECKOUT/dev/$script"
		test_that "no space: dev/$script says so" \
			one_line "trouble-space-$script" '/mnt has [0-9]+ MB free' "${SMALL_DISK[@]}" "$CHECKOUT/dev/$script"
		test_that "no rights: dev/$script names what root has to install" \
			one_line "trouble-root-$script" 'as root: apt-get install' --user \
			env LA_CACHE=/tmp/cache "/srv/$CHECKOUT/dev/$script"
		test_that "another's checkout: dev/$script says so" \
			one_line "trouble-owner-$script" 'cannot write to' --user "/srv/$CHECKOUT/dev/$script"
	done
	test_that "no rights: dev/fresh says so" \
		grep -q '^skipped: .*root only' <(there trouble-fresh --user \
			env LA_CACHE=/tmp/cache "/srv/$CHECKOUT/dev/fresh")
}

# path_without COMMAND...: a directory with all of the machine's commands but those
path_without()
{
	local dir=/usr/local/without

	rm -rf "$MACHINE$dir"
	mkdir -p "$MACHINE$dir"
	find "$MACHINE/usr/bin" "$MACHINE/usr/sbin" -mindepth 1 -printf '%f\n' |
		grep -vxE "$(IFS='|' && echo "$*")" | while IFS= read -r command; do
		ln -s "/usr/bin/$command" "$MACHINE$dir/$command"
		[ -e "$MACHINE$dir/$command" ] || [ ! -e "$MACHINE/usr/sbin/$command" ] ||
			ln -sf "/usr/sbin/$command" "$MACHINE$dir/$command"
	done
	echo "$dir"
}

trouble_after()
{
	local name=$1 home path
	local -a user=("${@:2}")

	home=$(root_home "$MACHINE" "${user[@]}")/$CHECKOUT
	path=$(path_without cc gcc gcc-12 gcc-14 'x86_64-linux-gnu-gcc.*' 'c[89]9-gcc' make)
	test_that "$name: without a compiler dev/demo says so" \
		one_line "$name-compiler" 'there is no (make|gcc)' "${user[@]}" --path "$path" "$CHECKOUT/dev/demo"
	[ ${#user[@]} -eq 0 ] ||
		test_that "$name: without a network, when all is there, it works" \
			there "$name-offline" "${user[@]}" --offline "$CHECKOUT/test/demo"
	rm -rf "$home/.cache/venv"
	test_that "$name: without a network and Python's packages it says so" \
		one_line "$name-python" 'no network' "${user[@]}" --offline "$CHECKOUT/dev/demo"
}
