# shellcheck shell=bash
#
# dev/fresh_lib/existing.sh - a machine with a server that must stay as it is.
#
# It has the version of PostgreSQL, and of libraries that it uses, that the release was published
# with, while apt offers newer ones: as on a machine that is not upgraded every day.
#
# Sourced by dev/fresh, which gives MACHINE, CHECKOUT, WITNESS and there().

# prefer_older: what is installed next is of the release itself, without its updates; and no
# cluster is made
prefer_older()
{
	printf '%s\n' "Package: postgresql-15 postgresql-client-15 libpq5 libssl3 openssl" \
		"Pin: release n=bookworm" "Pin-Priority: 1001" >"$MACHINE/etc/apt/preferences.d/older"
	mkdir -p "$MACHINE/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$MACHINE/etc/postgresql-common/createcluster.conf"
}

offer_newer()
{
	rm "$MACHINE/etc/apt/preferences.d/older"
	in_root "$MACHINE" apt-cache policy postgresql-15 libpq5 libssl3
}

# packages_script COMMAND: bash's arguments, to run it with what installs packages
packages_script()
{
	printf '%s\n' -euo pipefail -c "cd $CHECKOUT && . dev/lib/common.sh && . dev/lib/packages.sh && $1"
}

# existing_tests NAME: all that dev/test needs can be installed, and what would upgrade the server
# is refused, which is said
existing_tests()
{
	local -a script

	mapfile -t script < <(packages_script need_packages)
	test_that "$1: what dev/test needs is installed, and nothing upgraded for it" \
		there "$1-packages" "${WITNESS[@]}" bash "${script[@]}"
	# shellcheck disable=SC2016 # expanded there
	mapfile -t script < <(packages_script 'read_lists && ! install_packages postgresql-15 && [[ $REASON = *"apt would change"*"postgresql-15 (15."* ]]')
	test_that "$1: what would upgrade the server is not installed, and named" \
		there "$1-refusal" "${WITNESS[@]}" bash "${script[@]}"
}
