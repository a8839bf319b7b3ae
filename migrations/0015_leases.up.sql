-- The processes that work on a database that several machines share. An id is never used again: it is the epoch of all
-- that its process has taken. until, unix ms by the database's clock: when another process may take over what it has.
CREATE TABLE processes (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  daemon TEXT NOT NULL,
  place  TEXT NOT NULL,  -- the host and the data folder
  addr   TEXT NOT NULL,  -- where the process is called, host:port
  since  INTEGER NOT NULL,
  until  INTEGER NOT NULL
) STRICT;

-- What one process does at a time: deciding messages, an account of a platform.
CREATE TABLE leases (
  name   TEXT PRIMARY KEY,
  process INTEGER NOT NULL,
  since  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- owner: the process whose agents run in the folder. 0: the only gated there is.
ALTER TABLE runs ADD COLUMN owner INTEGER NOT NULL DEFAULT 0;
