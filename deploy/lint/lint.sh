#!/usr/bin/env bash
# Holds the project to its sizes, finds words that it does not use, lints both modules and the workflows, and builds each module without the workspace: inside one, a
# missing requirement goes unnoticed.
set -euo pipefail
cd "$(dirname "$0")/../.."
golangci_lint=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.7

deploy/lint/sizes.sh
deploy/lint/words.sh
go run "$actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml

unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
  printf 'not formatted:\n%s\n' "$unformatted" >&2
  exit 1
fi
for module in . deploy/e2e; do
  GOWORK=off go -C $module mod tidy
  GOWORK=off go -C $module build ./...
done
go work sync
if ! git diff --exit-code -- go.work go.work.sum '*go.mod' '*go.sum'; then
  echo 'module files are not tidy: commit what changed above' >&2
  exit 1
fi
go run "$golangci_lint" run --allow-serial-runners ./... ./deploy/e2e/...
