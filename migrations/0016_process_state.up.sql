-- What each process reports of itself, as the row of its daemon in daemons: that is of the one process that has the daemon's
-- lease. connection is '' until it has reported anything, as of one that stands by.
ALTER TABLE processes ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE processes ADD COLUMN connection TEXT NOT NULL DEFAULT ''
  CHECK (connection IN ('', 'connecting', 'connected', 'degraded', 'bad_credentials', 'stopped'));
ALTER TABLE processes ADD COLUMN detail TEXT NOT NULL DEFAULT '';
