#!/usr/bin/env bash
# Runs every fuzz target until all of them together have had TOTAL executions. It finds the targets
# by itself. A crash ends it with an error; go test leaves the input in testdata/fuzz of the package.
#
#   TOTAL     executions of all targets together; each gets the same share
#   EXECS     executions of each target, instead of a share of TOTAL
#   ONLY      a regular expression: only targets whose package and name it matches, as render.FuzzHTML
#   PARALLEL  workers, all processors if it is not set
set -euo pipefail
cd "$(dirname "$0")/../.."

targets=() # "folder name"
while IFS=: read -r file line; do
  name=${line#func }
  targets+=("$(dirname "$file") ${name%%(*}")
done < <(git grep -E '^func Fuzz[A-Za-z0-9_]*\(' -- '*_test.go' | sort)
if [ ${#targets[@]} -eq 0 ]; then
  echo 'no fuzz targets found' >&2
  exit 1
fi

execs=${EXECS:-$(((${TOTAL:-10000000} + ${#targets[@]} - 1) / ${#targets[@]}))}
total=0 ran=0 failed=()
output=$(mktemp)
trap 'rm -f "$output"' EXIT
for target in "${targets[@]}"; do
  read -r folder name <<<"$target"
  if ! [[ ${folder##*/}.$name =~ ${ONLY:-} ]]; then
    continue
  fi
  ran=$((ran + 1))
  status=0
  # A short minimization: else each new input would be made smaller for a minute.
  go test -vet=off -run '^$' -fuzz "^$name\$" -fuzztime "${execs}x" -fuzzminimizetime 10x \
    -parallel "${PARALLEL:-$(nproc)}" "./$folder" >"$output" 2>&1 || status=$?
  done=$(sed -n 's/.*execs: \([0-9]*\).*/\1/p' "$output" | tail -1)
  total=$((total + ${done:-0}))
  printf '%-45s %10d executions\n' "$folder $name" "${done:-0}"
  if [ "$status" -ne 0 ]; then
    cat "$output"
    failed+=("$folder $name")
  fi
done
printf '%d of %d targets, %d executions, %d crashes\n' "$ran" "${#targets[@]}" "$total" "${#failed[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
