# shellcheck shell=bash
#
# dev/demo_lib/contents.sh - the demo's data: Debian's `Contents` indices.
#
# A Contents index says for every path of every package of a release which packages
# own it; `apt-file` searches them.  Debian 12's main component has 7.3 million lines.
#
# They are fetched by apt itself, with a private configuration in .cache/contents:
# own source list (the machine's entries for this release, so that its mirror or
# proxy is used), own package lists, and as index target only Contents.  Neither
# apt-file nor root is needed and nothing of the system's own lists changes.
#
# contents_rows prints "path TAB package" lines sorted by path, with backslashes
# doubled as COPY wants it.  A path that several packages own gives several rows.

CONTENTS=$CACHE/contents

# contents_list: one deb line for each entry of the machine's for this release
contents_list()
{
	local here opt uri suite

	here=$(codename)
	system_entries | sort -u | while IFS='|' read -r opt uri suite; do
		case $suite in
			"$here" | "$here"-updates | "$here"-security | stable)
				printf 'deb [%s] %s %s main\n' "$opt" "$uri" "$suite"
				;;
		esac
	done | sed 's/ \[ *\]//' | sort -u
}

contents_config()
{
	mkdir -p "$CONTENTS/lists/partial" "$CONTENTS/cache/archives/partial" "$CONTENTS/parts"
	contents_list >"$CONTENTS/sources.list"
	[ -s "$CONTENTS/sources.list" ] || return 1
	# the machine's own apt.conf.d is left out: its targets and hooks are not wanted
	# here, but what it says about proxies is (and a proxy may have a password)
	rm -f "$CONTENTS/apt.conf"
	(umask 077; apt-config dump 2>/dev/null |
		grep -E '^Acquire::(http|https)::' >"$CONTENTS/apt.conf") || true
	cat >>"$CONTENTS/apt.conf" <<-EOF
		Dir::Etc::parts "$CONTENTS/parts";
		Dir::Etc::sourcelist "$CONTENTS/sources.list";
		Dir::Etc::sourceparts "$CONTENTS/parts";
		Dir::State::lists "$CONTENTS/lists";
		Dir::Cache "$CONTENTS/cache";
		APT::Sandbox::User "$(id -un)";
		Acquire::Retries "3";
		Acquire::Languages "none";
		Acquire::IndexTargets::deb {
			Packages { DefaultEnabled "false"; };
			Translations { DefaultEnabled "false"; };
			Contents {
				MetaKey "\$(COMPONENT)/Contents-\$(ARCHITECTURE)";
				ShortDescription "Contents-\$(ARCHITECTURE)";
				Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Contents";
				KeepCompressed "true";
				PDiffs "false";
			};
		};
	EOF
}

contents_files()
{
	find "$CONTENTS/lists" -maxdepth 1 -type f -name '*Contents-*' 2>/dev/null | sort
}

# contents_size: about how many bytes contents_rows will print, for a progress bar
# (apt keeps the indices lz4-compressed, to 13 % of that)
contents_size()
{
	contents_files | xargs -r -d '\n' stat -c %s | awk '{sum += $1} END {print int(sum / 0.1288)}'
}

# contents_usable: not only the indices of some small suite
contents_usable()
{
	[ "$(contents_size)" -gt 100000000 ]
}

# fetch_contents: there afterwards (kept for later runs), or a failure
fetch_contents()
{
	! contents_usable || return 0
	is_debian || return 1
	contents_config || return 1
	say "fetching Debian's Contents indices (some 50 MB)"
	APT_CONFIG=$CONTENTS/apt.conf quietly "$LOGS/contents.log" apt-get update || true
	# a small suite that cannot be read, in mid-update, is no loss
	contents_usable
}

# contents_rows: each index is sorted already, so merging keeps the path order
contents_rows()
{
	local file
	local -a streams=()

	while IFS= read -r file; do
		exec {stream}< <(/usr/lib/apt/apt-helper cat-file "$file" | contents_split)
		streams+=("/dev/fd/$stream")
	done < <(contents_files)
	LC_ALL=C sort -m -t $'\t' -k 1,1 "${streams[@]}"
}

# a line is: path, blanks, section/package[,section/package...]; a path may hold blanks
contents_split()
{
	mawk -v OFS='\t' '{
		path = substr($0, 1, length($0) - length($NF))
		sub(/[ \t]+$/, "", path)
		gsub(/\\/, "\\\\", path)
		n = split($NF, owner, ",")
		for (i = 1; i <= n; i++) {
			sub(/^.*\//, "", owner[i])
			print path, owner[i]
		}
	}'
}
