#!/bin/sh
# Makes secrets/, with an empty file for each token that the files of Compose name, and the URL of
# deploy/compose/postgres.yml with a password of its own. It changes no file that is there.
set -eu
cd "$(dirname "$0")/../.."
umask 077
mkdir -p secrets
uid=${ARIZUKO_UID:-$(sed -n 's/^ARIZUKO_UID=\([0-9][0-9]*\).*/\1/p' .env 2>/dev/null | tail -n 1)} # as Compose reads it
for name in telegram_bot_token discord_bot_token slack_bot_token slack_app_token slack_signing_secret dash_password heartbeat_url database_url; do
  [ -e "secrets/$name" ] && continue
  if [ "$name" = database_url ]; then
    printf 'postgres://arizuko:%s@postgres/arizuko\n' "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >secrets/database_url
  else
    : >"secrets/$name"
  fi
  [ "$(id -u)" != 0 ] || chown "${uid:-1000}" "secrets/$name" # the daemons read them
done
