#!/bin/sh
# Makes the role and the database that the URL in ARIZUKO_DB_FILE names, in a new cluster. The image of Postgres executes it
# once, as superuser by the socket.
set -eu
login=$(cat "$ARIZUKO_DB_FILE")
login=${login#*://}
login=${login%%@*}
case $login in
  *:*) DATABASE_ROLE=${login%%:*} DATABASE_PASSWORD=${login#*:} ;;
  *) DATABASE_ROLE=$login DATABASE_PASSWORD= ;;
esac
DATABASE_NAME=$(sed 's,.*/,,; s,?.*,,' "$ARIZUKO_DB_FILE")
for part in "$DATABASE_ROLE" "$DATABASE_PASSWORD" "$DATABASE_NAME"; do
  case $part in
    '' | *[!A-Za-z0-9_-]*)
      echo "postgres.sh: $ARIZUKO_DB_FILE has to be postgres://ROLE:PASSWORD@postgres/DATABASE, each of letters, digits, _ and - alone" >&2
      exit 78
      ;;
  esac
done
export DATABASE_ROLE DATABASE_PASSWORD DATABASE_NAME
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\getenv role DATABASE_ROLE
\getenv password DATABASE_PASSWORD
\getenv database DATABASE_NAME
CREATE ROLE :"role" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE :"database" OWNER :"role" ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
REVOKE CONNECT ON DATABASE postgres, template1 FROM PUBLIC;
-- Without a password no login by the network.
ALTER ROLE CURRENT_USER PASSWORD NULL;
SQL
