-- Browsers that are notified by Web Push. kinds: of the notices that are on. p256dh and auth are the
-- browser's keys, in base64url. A notice is what a browser was sent.
CREATE TABLE push_subscriptions (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  login      TEXT NOT NULL,
  endpoint   TEXT NOT NULL UNIQUE CHECK (endpoint <> ''),
  p256dh     TEXT NOT NULL,
  auth       TEXT NOT NULL,
  device     TEXT NOT NULL,
  kinds      TEXT NOT NULL DEFAULT 'answer question problem',
  created_at INTEGER NOT NULL,
  sent_at    INTEGER NOT NULL DEFAULT 0,
  failed_at  INTEGER NOT NULL DEFAULT 0,
  error      TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE push_notices (
  subscription_id INTEGER NOT NULL,
  event           TEXT NOT NULL,
  at              INTEGER NOT NULL,
  PRIMARY KEY (subscription_id, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_notices_at ON push_notices (at);
