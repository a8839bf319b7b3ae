#!/usr/bin/env bash
# Runs a command with temporary files in memory: inmemory.sh COMMAND… SQLite syncs each commit, and on a disk the tests would
# mostly wait for that. Root gets a file system of its own, which ends with the command; others get /dev/shm if it is large
# enough and programs may be run there, else files stay where they would be.
set -euo pipefail
min_kib=$((4 << 20))

if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
  # The same name each time, so that go knows results of tests again. It stays: another run may have mounted it, too.
  dir=/tmp/arizuko-tests
  mkdir -p "$dir"
  exec unshare --mount bash -c 'mount -t tmpfs -o mode=1777 arizuko "$0" && TMPDIR=$0 exec "$@"' "$dir" "$@"
fi
if [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -ge "$min_kib" ] && ! findmnt -no OPTIONS /dev/shm | grep -q noexec; then
  export TMPDIR
  TMPDIR=$(mktemp -d /dev/shm/go.XXXX) # short: the path of a socket is limited to about a hundred bytes
  trap 'rm -rf "$TMPDIR"' EXIT
fi
"$@"
