-- Problems that operators are notified of. One that was seen once has since = seen_at; missed_at is when a look first found
-- it gone. A notice is what one operator was notified of one, ended or not: several may be in one message.
CREATE TABLE alerts (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  key       TEXT NOT NULL,
  text      TEXT NOT NULL,
  fix       TEXT NOT NULL,
  since     INTEGER NOT NULL,
  seen_at   INTEGER NOT NULL,
  missed_at INTEGER,
  ended_at  INTEGER
) STRICT;
CREATE UNIQUE INDEX alerts_open ON alerts (key) WHERE ended_at IS NULL;
CREATE INDEX alerts_ended ON alerts (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE alert_notices (
  operator   TEXT NOT NULL,
  alert_id   INTEGER NOT NULL,
  ended      INTEGER NOT NULL CHECK (ended IN (0, 1)),
  message_id INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  PRIMARY KEY (operator, alert_id, ended)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_notices_at ON alert_notices (operator, at);
