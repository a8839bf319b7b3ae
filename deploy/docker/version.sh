#!/bin/sh
# Prints the version of a checkout of which only .git/HEAD and the refs are there, as in the context of the
# Dockerfile: the tag of the commit, else 12 digits of its hash; nothing where neither is known.
# A tag with a message counts once git has packed it, as after a clone: only then its commit is in the refs.
# Usage: version.sh [.git]
set -eu
git=${1:-.git}
[ -f "$git/HEAD" ] || exit 0
packed=/dev/null
[ ! -f "$git/packed-refs" ] || packed=$git/packed-refs

read -r commit <"$git/HEAD"
case $commit in "ref: "*)
  ref=${commit#ref: }
  if [ -f "$git/$ref" ]; then
    read -r commit <"$git/$ref"
  else
    commit=$(sed -n "s|^\([0-9a-f]*\) $ref\$|\1|p" "$packed")
  fi
  ;;
esac
[ -n "$commit" ] || exit 0

for file in "$git"/refs/tags/*; do
  if [ -f "$file" ] && [ "$(cat "$file")" = "$commit" ]; then
    basename "$file"
    exit
  fi
done
name=
while read -r hash other; do
  name=${other:-$name} # a line with ^ and the commit belongs to the tag before it
  case "${hash#^} $name" in "$commit refs/tags/"*)
    printf '%s\n' "${name#refs/tags/}"
    exit
    ;;
  esac
done <"$packed"
printf '%.12s\n' "$commit"
