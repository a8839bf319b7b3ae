-- A turn can be taken back: its rows stay, marked by undone_at. session_before is what its agent's session was called
-- before it, '' for none, NULL if it has named none; session_after what it was called when the turn was taken back.
ALTER TABLE turns ADD COLUMN session_before TEXT;
ALTER TABLE turns ADD COLUMN session_after TEXT NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN undone_at INTEGER;
CREATE INDEX turns_undone ON turns (folder, topic, id) WHERE undone_at IS NOT NULL;

CREATE TABLE undos (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id       INTEGER NOT NULL,
  redo          INTEGER NOT NULL CHECK (redo IN (0, 1)),
  rest          INTEGER NOT NULL CHECK (rest IN (0, 1)),
  folder        TEXT    NOT NULL,
  topic         TEXT    NOT NULL,
  message_id    INTEGER,
  by            TEXT    NOT NULL,
  state         TEXT    NOT NULL CHECK (state IN ('open', 'done', 'refused')),
  answer        TEXT    NOT NULL DEFAULT '',
  created_at    INTEGER NOT NULL,
  ended_at      INTEGER
) STRICT;
CREATE UNIQUE INDEX undos_open ON undos (folder, topic) WHERE state = 'open';
CREATE INDEX undos_turn ON undos (turn_id, id);
