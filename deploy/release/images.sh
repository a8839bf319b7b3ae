#!/usr/bin/env bash
# Pushes the images of a release: the daemons' as NAME:VERSION, gated's as NAME:VERSION-gated.
#
#   images.sh push VERSION ARCH NAME   on a machine of that architecture: builds from source, pushes as …-ARCH
#   images.sh merge VERSION NAME       once all architectures are pushed: one name for them, printed with its digest
set -euo pipefail
cd "$(dirname "$0")/../.."
arches=(amd64 arm64)
suffixes=('' -gated)

case ${1-} in
push)
  version=$2 arch=$3 name=$4
  for suffix in "${suffixes[@]}"; do
    target=${suffix#-}
    docker build -f deploy/docker/Dockerfile --platform "linux/$arch" --build-arg "VERSION=$version" --target "${target:-arizuko}" \
      -t "$name:$version$suffix-$arch" .
    docker push "$name:$version$suffix-$arch"
  done
  ;;
merge)
  version=$2 name=$3
  for suffix in "${suffixes[@]}"; do
    tag=$name:$version$suffix
    docker buildx imagetools create -t "$tag" "${arches[@]/#/$tag-}" >&2
    # Without json, buildx prints a table whatever of the manifest the template names.
    digest=$(docker buildx imagetools inspect --format '{{json .Manifest.Digest}}' "$tag" | tr -d '"')
    printf '%s@%s\n' "$tag" "$digest"
  done
  ;;
*)
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
