#!/bin/sh
# Prints the notes of a version: its section of CHANGELOG.md, without the heading. It fails if there is none, or
# nothing in it. Usage: notes.sh v1.2.3 [CHANGELOG.md]
set -eu
version=${1#v} file=${2:-$(dirname "$0")/../../CHANGELOG.md}
notes=$(awk -v heading="## [$version]" '
  index($0, "## ") == 1 { inside = index($0, heading) == 1; next }
  inside' "$file" | sed '/./,$!d')
if [ -z "$notes" ]; then
  echo "notes: $file has no section ## [$version], or nothing in it: move what is under Unreleased there before the tag" >&2
  exit 1
fi
printf '%s\n' "$notes"
