#!/usr/bin/env bash
# Finds words and forms that this project does not use, and names the plain ones: words.sh [path …]
#
# A line of words.txt is a Perl regular expression, a tab, and what to write instead. "[.go] " before the expression limits
# it to files of one kind. Indented lines "except PATH" after it name path prefixes that it does not hold for.
set -euo pipefail
cd "$(dirname "$0")/../.."
list=deploy/lint/words.txt
export LC_ALL=C.UTF-8

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- "$@" |
  grep -E '\.(go|md|sh|yml|yaml|sql|html|js|css)$' | grep -v /testdata/ | xargs -d '\n' ls -d 2>/dev/null) # without deleted ones

found=
# find_rule finds a rule in the files that it holds for.
find_rule() {
  local in line
  in=$(printf '%s\n' "${files[@]}" | grep -E "${kind:-.}\$" | grep -vE "^(${except:-//})") || return 0
  while IFS= read -r line; do
    echo "$line: $remedy"
    found=yes
  done < <(xargs -d '\n' grep -HnoP -e "$pattern" <<<"$in")
}

pattern=
while IFS= read -r line; do
  case $line in
  '' | '#'*) continue ;;
  $'\texcept '*)
    path=${line#*except }
    except+=${except:+|}${path%% *}
    continue
    ;;
  esac
  [ -z "$pattern" ] || find_rule
  IFS=$'\t' read -r pattern remedy <<<"$line"
  [ -n "$remedy" ] || { echo "$list: want a pattern, a tab and what to write instead: $line" >&2; exit 2; }
  kind='' except=''
  case $pattern in '[.'*'] '*) kind=${pattern%%] *} kind=\\${kind#[} pattern=${pattern#*] } ;; esac
  grep -qP -e "$pattern" /dev/null || [ $? = 1 ] || exit 2 # it has said why
done <"$list"
find_rule
[ -z "$found" ] || { echo "there are words to replace; the list is $list" >&2; exit 1; }
