#!/bin/sh
# Prints the notes of a version: its section of CHANGELOG.md, without the heading. It fails if there is none, or
# nothing in it, or if the tag is no version. Usage: notes.sh v1.2.3 [CHANGELOG.md]
set -eu
if ! printf '%s\n' "$1" | grep -Eqx 'v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-[0-9A-Za-z]+([.-][0-9A-Za-z]+)*)?'; then
  echo "notes: the tag of a release is v1.2.3, or v1.2.3-rc.1 for one that is not the latest; $1 is neither" >&2
  exit 1
fi
version=${1#v} file=${2:-$(dirname "$0")/../../CHANGELOG.md}
notes=$(awk -v heading="## [$version]" '
  index($0, "## ") == 1 { inside = index($0, heading) == 1; next }
  inside' "$file" | sed '/./,$!d')
if [ -z "$notes" ]; then
  echo "notes: $file has no section ## [$version], or nothing in it: write it before the tag" >&2
  exit 1
fi
printf '%s\n' "$notes"
