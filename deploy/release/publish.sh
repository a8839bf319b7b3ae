#!/bin/sh
# Makes the release of a version on GitHub, with its notes and the files of a folder. A version with a suffix, such as
# v1.2.3-rc.1, is a pre-release and never the latest one. No image has the tag latest: see images.sh.
# Usage: publish.sh v1.2.3 FOLDER
set -eu
version=$1 folder=$2
notes=$("$(dirname "$0")/notes.sh" "$version")
set --
case $version in *-*) set -- --prerelease --latest=false ;; esac
printf '%s\n' "$notes" | gh release create "$version" --verify-tag --title "$version" --notes-file - "$@" "$folder"/*
