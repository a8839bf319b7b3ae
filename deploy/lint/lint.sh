#!/usr/bin/env bash
# Finds words that the project does not use, lints each module, and builds it without the
# workspace: inside one, a missing requirement goes unnoticed.
set -euo pipefail
cd "$(dirname "$0")/../.."
golangci_lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
config=$PWD/.golangci.yml

go run ./deploy/lint/words

unformatted=$(gofmt -l "$@")
if [ -n "$unformatted" ]; then
  printf 'not formatted:\n%s\n' "$unformatted" >&2
  exit 1
fi
go work sync
for module in "$@"; do
  printf 'lint %s\n' "$module"
  (
    cd "$module"
    GOWORK=off go mod tidy
    GOWORK=off go build ./...
    GOWORK=off go vet ./...
    go run "$golangci_lint" run --config "$config" ./...
  )
done
if ! git diff --exit-code -- go.work go.work.sum '*go.mod' '*go.sum'; then
  echo 'module files are not tidy: commit what changed above' >&2
  exit 1
fi
