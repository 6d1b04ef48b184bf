# shellcheck shell=bash
#
# dev/lib/emulation.sh - programs of another processor, by QEMU's user mode emulation.
#
#   emulation_refusal ARCH        why none can run here, or nothing; ARCH as Debian names it
#   emulated ARCH COMMAND...      run it where programs of that processor can be started
#
# The kernel is told of the emulator in a user namespace of its own, with all of the machine's user
# ids: what the machine itself can start stays as it is.  That takes Linux 6.7.  On an older one,
# a handler that the machine has (Debian's packages register it when they are installed) serves.
# On a processor of that kind nothing is emulated.
#
# User mode emulation is right about instructions, byte order, alignment, the sizes of types and the C
# library.  It says nothing about time, nor about the order in which another processor sees
# what one has written: the emulated program has x86-64's, which is stricter.
#
# Sourced after common.sh and packages.sh.

BINFMT=/proc/sys/fs/binfmt_misc
BINFMT_RULES=/usr/lib/binfmt.d

# emulator ARCH: QEMU's name of the processor
emulator()
{
	case $1 in
		arm64) echo qemu-aarch64 ;;
		*) echo "qemu-$1" ;;
	esac
}

is_native()
{
	[ "$1" = "$(dpkg --print-architecture)" ]
}

# has_handler ARCH: the machine's own, which works in another root only if it is opened at once
has_handler()
{
	grep -qs '^flags:.*F' "$BINFMT/$(emulator "$1")"
}

# with_ids COMMAND...: in a user namespace with the ids of this one.  The command waits until they
# are there, since only a process outside may write them.
with_ids()
{
	local fifo rc=0

	fifo=$(mktemp -u "${TMPDIR:-/var/tmp}/pg_lookahead.ids.XXXXXX")
	mkfifo -m 600 "$fifo" || return 1
	write_ids "$fifo" &
	# shellcheck disable=SC2016 # expanded inside
	unshare --user bash -c 'echo $$ >"$0" && read -r written <"$0" && [ "$written" = yes ] && exec "$@"' \
		"$fifo" "$@" || rc=$?
	rm -f "$fifo"
	return $rc
}

# write_ids FIFO: of the process that says its id there
write_ids()
{
	local pid written=yes

	read -r pid <"$1"
	{ echo '0 0 65536' >"/proc/$pid/uid_map" && echo '0 0 65536' >"/proc/$pid/gid_map"; } 2>/dev/null ||
		written=no
	echo $written >"$1"
}

# own_handler ARCH COMMAND...
own_handler()
{
	local rule

	rule=$BINFMT_RULES/$(emulator "$1").conf
	shift
	# shellcheck disable=SC2016 # expanded inside
	with_ids unshare --mount bash -c 'mount -t binfmt_misc none "$0" && cat "$1" >"$0/register" &&
		shift && exec "$@"' "$BINFMT" "$rule" "$@"
}

emulated()
{
	if is_native "$1" || has_handler "$1"; then
		shift
		"$@"
	else
		own_handler "$@"
	fi
}

emulation_refusal()
{
	if is_native "$1" || has_handler "$1"; then
		return
	elif ! (need_tools qemu-user-static) >&2; then
		echo "qemu-user-static cannot be had, which emulates $1"
	elif [ ! -e "$BINFMT_RULES/$(emulator "$1").conf" ]; then
		echo "QEMU's packages here have no $1"
	elif ! own_handler "$1" true 2>/dev/null; then
		echo "this kernel starts no programs of $1: binfmt_misc has no $(emulator "$1"), and no user namespace may have its own (Linux 6.7)"
	fi
}
