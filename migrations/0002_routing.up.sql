CREATE TABLE routes (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  seq            INTEGER NOT NULL DEFAULT 0,
  match          TEXT NOT NULL DEFAULT '',
  target         TEXT NOT NULL,
  impulse_config TEXT
) STRICT;
CREATE INDEX idx_routes_seq ON routes(seq);

CREATE TABLE registered_groups (
  folder     TEXT PRIMARY KEY,
  name       TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  config     TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(config))
) STRICT, WITHOUT ROWID;

-- Engagement: the group that answers in a place of a chat without being called. topic is the place, engaged_at when
-- the message that opened the window arrived.
CREATE TABLE chat_reply_state (
  jid            TEXT NOT NULL,
  topic          TEXT NOT NULL,
  last_reply_id  INTEGER,
  engaged_until  INTEGER,
  engaged_folder TEXT,
  engaged_at     INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  ended_at       INTEGER,
  PRIMARY KEY (jid, topic),
  CHECK ((engaged_until IS NULL) = (engaged_folder IS NULL))
) STRICT, WITHOUT ROWID;
