#!/usr/bin/env bash
# Builds all programs, static, into a folder. The same source, Go and C compiler make the same bytes.
# Usage: programs.sh VERSION FOLDER. GOARCH=arm64 builds for that architecture, with Debian's gcc-aarch64-linux-gnu
# and libc6-dev-arm64-cross, or another compiler in CC.
set -euo pipefail
version=$1 folder=$(realpath -m "$2")
cd "$(dirname "$0")/../.."

case ${GOARCH:-$(go env GOHOSTARCH)} in
"$(go env GOHOSTARCH)") ;;
arm64) export CC=${CC:-aarch64-linux-gnu-gcc} ;;
amd64) export CC=${CC:-x86_64-linux-gnu-gcc} ;;
esac

umask 022
mkdir -p "$folder"
# netgo, osusergo and the missing extensions of SQLite keep libc from loading libraries at run time;
# timetzdata embeds the time zones.
GOWORK=off CGO_ENABLED=1 go build -trimpath -buildvcs=false -tags sqlite_omit_load_extension,netgo,osusergo,timetzdata \
  -ldflags "-s -w -buildid= -linkmode external -extldflags -static -X arizuko/pkg/buildinfo.version=$version" \
  -o "$folder/" ./gated ./routd ./onbod ./dashd ./teled ./discd ./slakd ./migrations/cmd/migrate \
  ./deploy/launcher ./deploy/agents/demo ./deploy/agents/claude ./deploy/agents/acp ./deploy/agents/oneshot ./deploy/agents/agentcheck
