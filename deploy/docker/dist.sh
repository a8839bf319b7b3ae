#!/usr/bin/env bash
# Builds static programs into dist/bin, and makes dist/ a context of the images, which are built from
# it alone, without a network: ARIZUKO_CONTEXT=./dist in .env. The Dockerfile does the same in a container.
# Usage: dist.sh VERSION
#
# What gated's image has besides, it takes from this machine, with the libraries of each program:
#   BUSYBOX        a shell and a few tools; default: busybox (Debian: busybox-static)
#   DOCKER_CLIENT  docker's client; default: docker; none leaves it out, and agents cannot run in
#                  containers then
#   CA_FILE        certificates of authorities; default: those of the machine
set -euo pipefail
cd "$(dirname "$0")/../.."
version=${1-}
dist=$PWD/dist

fail() {
  printf 'dist: %s\n' "$*" >&2
  exit 1
}

# find PROGRAM HINT prints its path, links followed.
find_program() {
  local path
  path=$(command -v "$1") || fail "there is no $1 on this machine: $2"
  readlink -f "$path"
}

# add PROGRAM FOLDER NAME copies a program, and what it is linked with, to the same places below FOLDER.
add_program() {
  install -D -m 755 "$1" "$2/bin/$3"
  local library
  for library in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do
    install -D -m 755 "$library" "$2$library"
  done
}

# Before the long part, so that a missing program is said at once.
busybox=$(find_program "${BUSYBOX:-busybox}" 'install busybox-static, or name another one in BUSYBOX')
client=${DOCKER_CLIENT:-docker}
[ "$client" = none ] || client=$(find_program "$client" 'install docker-cli (before Debian 13: docker.io), name its path in DOCKER_CLIENT, or set that to none')
ca=${CA_FILE-}
for file in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  [ -n "$ca" ] || ! [ -s "$file" ] || ca=$file
done
[ -n "$ca" ] || fail 'there are no certificates of authorities on this machine: install ca-certificates, or name their file in CA_FILE'

rm -rf "$dist"
umask 022
deploy/docker/programs.sh "$version" "$dist/bin"

# What every image has. The engine mounts files below etc and sbin, and makes folders that are
# missing readable by root alone.
mkdir -p "$dist"/base/{etc,sbin,run,tmp}
install -D -m 644 "$ca" "$dist/base/etc/ssl/certs/ca-certificates.crt"

add_program "$busybox" "$dist/gated" busybox
for tool in cat chmod chown cp env grep head id kill ls mkdir mv ps rm sed sh sleep stat tail test; do
  ln -s busybox "$dist/gated/bin/$tool"
done
[ "$client" = none ] || add_program "$client" "$dist/gated" docker
install -m 755 deploy/docker/prepare.sh "$dist/gated/bin/prepare"

# The same images, with this folder in place of the stages that build it.
mkdir -p "$dist/deploy/docker"
{
  printf '# Written by deploy/docker/dist.sh.\nFROM scratch AS build\nCOPY . /src/dist/\n\n'
  sed -n '/^FROM scratch/,$p' deploy/docker/Dockerfile
} >"$dist/deploy/docker/Dockerfile"
