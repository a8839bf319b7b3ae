#!/bin/sh
# Gives a data folder that the engine has just made, and which is root's, to the user of the daemons.
# usage: prepare UID GID FOLDER
set -eu
uid=$1 gid=$2 data=$3
owner=$(stat -c %u "$data")
if [ "$owner" = "$uid" ]; then
  exit 0
fi
if [ "$owner" != 0 ] || [ -n "$(ls -A "$data")" ]; then
  echo "prepare: $data belongs to user $owner and the daemons run as $uid: set ARIZUKO_UID and ARIZUKO_GID to its owner, or give it to them with: chown -R $uid:$gid $data" >&2
  exit 78
fi
chmod 700 "$data"
chown "$uid:$gid" "$data"
