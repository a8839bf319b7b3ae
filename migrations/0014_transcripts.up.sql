-- The transcripts of audio files, one for each that a turn's group has transcribed. n: which of the message's attachments, from 1.
-- turn_id: the turn that waits for it. until: when that one starts without it, unix ms, 0 before the file is there.
-- error: why there is none.
CREATE TABLE transcripts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id INTEGER NOT NULL REFERENCES messages (id),
  n          INTEGER NOT NULL CHECK (n > 0),
  turn_id    INTEGER NOT NULL,
  folder     TEXT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('wanted', 'done', 'failed')),
  text       TEXT NOT NULL DEFAULT '',
  error      TEXT NOT NULL DEFAULT '',
  until      INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  UNIQUE (message_id, n)
) STRICT;
CREATE INDEX transcripts_wanted ON transcripts (turn_id) WHERE state = 'wanted';
