#!/usr/bin/env bash
# Makes the archive of a release for one architecture: static programs, and what an operator has of the
# repository besides. `./arizuko run` in it is `make run`, without Go.
# Usage: archive.sh VERSION ARCH FOLDER makes FOLDER/arizuko-VERSION-linux-ARCH.tar.gz and, beside it,
# …cdx.json, the modules of its programs.
#
# Times in the archive are SOURCE_DATE_EPOCH, by default that of the commit: the same commit, Go and C compiler make
# the same bytes.
set -euo pipefail
version=$1 arch=$2 folder=$(realpath -m "$3")
cd "$(dirname "$0")/../.."
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
name=arizuko-$version-linux-$arch

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
umask 022
mkdir -p "$folder" "$stage/$name/deploy"
GOARCH=$arch deploy/docker/programs.sh "$version" "$stage/$name/bin"
ln -s bin/launcher "$stage/$name/arizuko"
cp README.md CHANGELOG.md LICENSE SECURITY.md docker-compose.yml "$stage/$name/"
cp -R docs "$stage/$name/"
for part in README.md env.example compose monitoring slack systemd; do
  cp -R "deploy/$part" "$stage/$name/deploy/"
done
chmod -R u=rwX,go=rX "$stage/$name"

go version -m -json "$stage/$name/bin"/* | jq -n --arg version "$version" -f deploy/release/sbom.jq >"$folder/$name.cdx.json"
tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$epoch" -C "$stage" -c "$name" |
  gzip -9n >"$folder/$name.tar.gz"
