# shellcheck shell=bash
#
# dev/lib/roots.sh - bare Debian machines to try things on: a directory each.
#
#   roots_refusal                why roots cannot be made here, or nothing
#   base_root SUITE              .cache/roots/SUITE.tar.zst: the release and no more
#   checkout_files [--head]      the checkout, or the commit, as a tar archive to be carried in
#   make_root DIR SUITE          a root made of it, with what this machine needs to fetch
#   in_root DIR [--user] [--offline] [--path PATH] COMMAND...
#                                run it there, in the home of root or of "tester"
#
# SUITE is a release, or one with the name of another processor, such as bookworm-arm64: then
# emulation.sh starts its programs.
#
# mmdebstrap makes the base with the machine's own package sources (the release's name
# replaced), which stay in it.  Carried in as well are apt's settings of how to fetch
# (proxies, passwords, keys), name resolution, the certificates that the machine trusts, and
# pip's settings; nothing of that is in the checkout.
#
# A command runs in namespaces of its own for mounts, processes and shared memory: whatever
# it mounts and starts is gone when it ends or is killed, and cannot be met with
# outside.  --offline takes the network away.  Packages, once fetched, are kept for other
# roots of the release in .cache/roots/debs-SUITE.
#
# Sourced after common.sh, packages.sh and sources.sh.

. "$ROOT/dev/lib/emulation.sh"

ROOTS=$CACHE/roots
ROOT_USER=tester
ROOT_SHELL=(bash -euo pipefail -c)

# the variables of the environment that programs for fetching read
FETCHING='^((https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|PIP_[A-Z_]+)='

# What the machine has mounted stays in use, for a mount namespace made meanwhile, when the
# machine has unmounted it: volumes of test/slowdisk could not be stopped.  So it lets go of all
# but the system's own and what the work is done on.
# shellcheck disable=SC2016 # expanded inside
LET_GO='
	findmnt --list --noheadings --output TARGET | sort -r | while IFS= read -r at; do
		case $at in
			/ | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | /run | /run/*) continue ;;
		esac
		for needed in "$1" "$2" "$3"; do
			case $needed/ in "$at"/*) continue 2 ;; esac
		done
		umount --lazy -- "$at" 2>/dev/null || true
	done
	shift 3'

# of a SUITE: the release, and the processor if it is named
release_of()
{
	echo "${1%%-*}"
}

processor_of()
{
	[[ $1 != *-* ]] || echo "${1#*-}"
}

# other_processor DIR: of the root, if it is not the machine's
other_processor()
{
	[ ! -e "$1/processor" ] || cat "$1/processor"
}

# started DIR COMMAND...: where programs of the root's processor can be, or of PROCESSOR's while
# there is no root yet
started()
{
	local processor=${PROCESSOR:-}

	[ -n "$processor" ] || processor=$(other_processor "$1")
	shift
	if [ -n "$processor" ]; then
		emulated "$processor" "$@"
	else
		"$@"
	fi
}

# isolated DIR [OPTION...] COMMAND...: in namespaces of their own; it works in DIR
isolated()
{
	local dir=$1
	local -a extra=()

	shift
	while [[ $1 == --* ]]; do
		extra+=("$1")
		shift
	done
	started "$dir" unshare --mount --pid --ipc --fork --kill-child=KILL "${extra[@]}" \
		"${ROOT_SHELL[@]}" "$LET_GO"'; exec "$@"' - "$dir" "$ROOTS" "${TMPDIR:-/var/tmp}" "$@"
}

roots_refusal()
{
	local suite processor

	if ! am_root; then
		echo "bare machines to try it on can be made by root only"
	elif ! is_debian; then
		echo "bare machines to try it on can be made on Debian only"
	elif ! isolated / --mount-proc true 2>/dev/null; then
		echo "this machine allows no mounting (unshare)"
	elif ! (need_tools mmdebstrap zstd) >&2; then
		echo "mmdebstrap cannot be had"
	else
		for suite in "$@"; do
			processor=$(processor_of "$suite")
			[ -z "$processor" ] || REASON=$(emulation_refusal "$processor")
			[ -z "$processor" ] || [ -z "$REASON" ] || {
				echo "$REASON"
				return
			}
			base_root "$suite" >&2 || {
				echo "the packages of Debian $suite cannot be fetched; log: $LOGS/roots.log"
				return
			}
		done
	fi
}

# root_sources RELEASE: the machine's, for that release; what is unstable has no updates apart
root_sources()
{
	local here opt uri suite

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		case $1:$suite in
			sid:"$here"-* | experimental:"$here"-*) ;;
			*:"$here" | *:"$here"-updates | *:"$here"-security)
				printf 'deb [%s] %s %s main\n' "$opt" "$uri" "$1${suite#"$here"}"
				;;
		esac
	done | sed 's/ \[ *\]//'
}

# fetching: apt's settings of how to fetch
fetching()
{
	apt-config dump | grep '^Acquire::' | grep -v '^Acquire::IndexTargets'
}

# bare_release SUITE TAR
bare_release()
{
	local PROCESSOR

	PROCESSOR=$(processor_of "$1")
	isolated "$ROOTS" mmdebstrap --quiet --variant=minbase --format=tar \
		${PROCESSOR:+--architectures="$PROCESSOR" --skip=check/qemu} \
		--aptopt="$ROOTS/$1.conf" "$(release_of "$1")" "$2" "$ROOTS/$1.list"
}

# base_root SUITE: made when it is missing, and anew when it is a week old, if possible
base_root()
{
	local tar=$ROOTS/$1.tar.zst log=$LOGS/roots.log

	mkdir -p "$ROOTS"
	(
		flock 9
		[ -z "$(find "$tar" -mtime -7 2>/dev/null)" ] || exit 0
		say "making a bare Debian $1"
		root_sources "$(release_of "$1")" >"$ROOTS/$1.list"
		fetching >"$ROOTS/$1.conf"
		if quietly "$log" bare_release "$1" "$tar.new"; then
			mv "$tar.new" "$tar"
		else
			rm -f "$tar.new"
			[ -e "$tar" ]
		fi
	) 9>"$ROOTS/$1.lock"
}

# debs_of DIR: where the packages of its release are kept
debs_of()
{
	local processor

	processor=$(other_processor "$1")
	echo "$ROOTS/debs-$(sed -n 's/^VERSION_CODENAME=//p' "$1/etc/os-release")${processor:+-$processor}"
}

# keep_debs DIR: what was fetched there
keep_debs()
{
	local debs

	debs=$(debs_of "$1")
	mkdir -p "$debs"
	find "$1/var/cache/apt/archives" -maxdepth 1 -name '*.deb' \
		-exec cp -n -t "$debs" {} +
}

# offer_debs DIR: what was fetched for others
offer_debs()
{
	find "$(debs_of "$1")" -maxdepth 1 -name '*.deb' -exec cp -t "$1/var/cache/apt/archives" {} + \
		2>/dev/null || true
}

make_root()
{
	local dir=$1 file processor

	mkdir -p "$dir"
	tar -C "$dir" --numeric-owner -xf "$ROOTS/$2.tar.zst" || return 1
	processor=$(processor_of "$2")
	[ -z "$processor" ] || echo "$processor" >"$dir/processor"
	for file in auth.conf auth.conf.d keyrings trusted.gpg trusted.gpg.d; do
		[ ! -e "/etc/apt/$file" ] || cp -aT "/etc/apt/$file" "$dir/etc/apt/$file"
	done
	fetching >"$dir/etc/apt/apt.conf.d/00carried"
	for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
		[ ! -e "$file" ] || install -D -m 644 "$file" "$dir$file"
	done
	mkdir -p "$dir/usr/local/share/ca-certificates"
	find /usr/local/share/ca-certificates -type f -name '*.crt' \
		-exec cp -t "$dir/usr/local/share/ca-certificates" {} +
	offer_debs "$dir"
	# as in Debian's images for containers: what is thrown away need not be synced
	echo force-unsafe-io >"$dir/etc/dpkg/dpkg.cfg.d/unsafe-io"
	started "$dir" chroot "$dir" useradd --create-home --shell /bin/bash "$ROOT_USER"
	chmod 700 "$(root_home "$dir")" "$(root_home "$dir" --user)"
}

# checkout_files [--head]: tracked ones and new ones, not the ignored; as a tar archive
checkout_files()
{
	if [ -n "${1:-}" ]; then
		git -c safe.directory='*' archive HEAD
	elif git -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
			tar --null --files-from=- --ignore-failed-read -c 2>/dev/null
	else
		tar --exclude=./.cache -c .
	fi
}

# root_home DIR [--user]: where it is for the machine outside
root_home()
{
	local name=root

	[ "${2:-}" != --user ] || name=$ROOT_USER
	awk -F: -v name="$name" -v dir="$1" '$1 == name {print dir $6}' "$1/etc/passwd"
}

in_root()
{
	local dir=$1 home path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
	local -a as=() carried=() offline=()
	local rc=0

	home=$(root_home "$dir")
	shift
	while :; do
		case $1 in
			--user)
				home=$(root_home "$dir" --user)
				as=(--userspec="$ROOT_USER:$ROOT_USER")
				;;
			--offline) offline=(--net) ;;
			--path)
				path=$2
				shift
				;;
			*) break ;;
		esac
		shift
	done
	mapfile -t carried < <(env | grep -E "$FETCHING")
	# shellcheck disable=SC2016 # expanded inside
	isolated "$dir" "${offline[@]}" "${ROOT_SHELL[@]}" '
		dir=$1; shift
		mount -t proc proc "$dir/proc"
		mount -t tmpfs tmpfs "$dir/dev/shm"
		chroot "$@" || exit $?' - "$dir" "${as[@]}" "$dir" \
		env -i PATH="$path" HOME="${home#"$dir"}" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		"${carried[@]}" "${ROOT_SHELL[@]}" 'cd "$HOME"; exec "$@"' - "$@" </dev/null || rc=$?
	keep_debs "$dir"
	return $rc
}
