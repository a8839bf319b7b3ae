#!/usr/bin/env bash
# Measures the project and fails if something is larger than the file sizes allows. Without arguments it prints what is
# above; with -all everything. Lines are those of the files that git knows.
set -euo pipefail
cd "$(dirname "$0")/../.."

kit='^(pkg/testkit/|pkg/golden/|deploy/e2e/|([^/]*/)*[^/]*test/)'

lines() { xargs -r cat | wc -l; }
product() { git ls-files '*.go' | grep -v '_test\.go$' | grep -Ev "$kit"; }

measure() {
  case $1 in
  product) product | lines ;;
  kit) git ls-files '*.go' | grep -v '_test\.go$' | grep -E "$kit" | lines ;;
  tests) git ls-files '*_test.go' | lines ;;
  words-of-markdown) git ls-files '*.md' | xargs cat | wc -w ;;
  names-of-store) product | grep '^pkg/store/[^/]*$' | xargs cat | grep -cE '^func (\([^)]*\) )?[A-Z]' ;;
  *) product | grep "^$1/" | lines ;;
  esac
}

above=0
while read -r name limit; do
  case $name in '#'* | '') continue ;; esac
  is=$(measure "$name")
  if [ "$is" -gt "$limit" ]; then
    echo "$name has $is, and may have $limit: make it smaller, or raise the number in deploy/lint/sizes and say why in the commit" >&2
    above=1
  fi
  if [ "${1-}" = -all ]; then printf '%-20s %7d of %7d\n' "$name" "$is" "$limit"; fi
done <deploy/lint/sizes
exit $above
