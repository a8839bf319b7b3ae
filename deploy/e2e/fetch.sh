#!/usr/bin/env bash
# Fetches the Go modules that the suite and its linter are built from. The go command tries a download once, so a
# hiccup of the module proxy is met here: up to five times, after 2, 4, 8 and 16 seconds.
set -euo pipefail
cd "$(dirname "$0")/../.."
golangci_lint=$(sed -n 's/^golangci_lint=//p' deploy/lint/lint.sh)
actionlint=$(sed -n 's/^actionlint=//p' deploy/lint/lint.sh)

retry() {
  local delay
  for delay in 2 4 8 16; do
    "$@" && return
    printf '%s failed; again in %d s\n' "$*" "$delay" >&2
    sleep "$delay"
  done
  "$@"
}

retry go list -deps -test -f "" work
retry go run "$golangci_lint" version
retry go run "$actionlint" -version
