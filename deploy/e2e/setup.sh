#!/usr/bin/env bash
# Installs what the tests need besides Go and a C compiler: missing system packages where it may
# (root on Debian), and the npm packages of agents and tests. It installs nothing that is there.
# With VERIFY or DB=postgres it installs what only those tests need, too.
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH=$PATH:/usr/sbin:/sbin # where Debian keeps dockerd, which other users do not have in theirs

packages=()
need() { # need PROGRAM PACKAGE…: the packages are missing where the program is
  local program=$1
  shift
  command -v "$program" >/dev/null || packages+=("$@")
}
need cc gcc libc6-dev
need git git
need chromium-headless-shell chromium-headless-shell fonts-dejavu-core
need node nodejs
need npm npm
need bwrap bubblewrap
need slirp4netns slirp4netns
need pasta passt
need ip iproute2
need dockerd docker.io
need docker docker.io
need docker-compose docker-compose
need busybox busybox-static
need systemd-analyze systemd
need jq jq
need python3 python3
need curl curl
need pip3 python3-pip
need ssh openssh-client
need setpriv util-linux
need sqlite3 sqlite3
npm_folders=(deploy/agents/claude)
if [ -n "${VERIFY-}${DB-}" ]; then
  need gh gh
  need promtool prometheus
  need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  need psql postgresql
  need pgbouncer pgbouncer
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || packages+=(postgresql)
  need patroni patroni python3-etcd
  need etcd etcd-server
  [ -e /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf ] || packages+=(fonts-noto-color-emoji) # for pictures
  npm_folders+=(deploy/e2e/mcp deploy/e2e/clients)
fi

if [ ${#packages[@]} -gt 0 ]; then
  install="apt-get install -y ${packages[*]}"
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    printf 'tests need programs that are not installed; on Debian run: sudo %s\n' "$install" >&2
    exit 1
  fi
  # Installed to be run by tests: nothing is to start at its installation, Prometheus for one would.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    trap 'rm -f $policy' EXIT
  fi
  apt-get update -qq -o Acquire::Retries=5
  DEBIAN_FRONTEND=noninteractive $install -qq -o Acquire::Retries=5
fi

pids=()
for folder in "${npm_folders[@]}"; do
  if ! [ $folder/node_modules/.package-lock.json -nt $folder/package-lock.json ]; then
    npm ci --prefix $folder --no-fund --no-audit --fetch-retries=5 &
    pids+=($!)
  fi
done
for pid in "${pids[@]}"; do
  wait "$pid"
done
