-- gated's own cursors and counters.
CREATE TABLE router_state (
  key   TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE cursors (
  daemon TEXT NOT NULL,
  key    TEXT NOT NULL,
  value  TEXT NOT NULL,
  PRIMARY KEY (daemon, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  group_folder TEXT NOT NULL,
  topic        TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  updated_at   INTEGER NOT NULL,
  PRIMARY KEY (group_folder, topic)
) STRICT, WITHOUT ROWID;

-- One agent process. closed_at: it gets no more turns and stores no session. ended_at: the process has ended.
CREATE TABLE runs (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  folder     TEXT NOT NULL,
  topic      TEXT NOT NULL,
  chat_jid   TEXT NOT NULL,
  thread_id  TEXT NOT NULL DEFAULT '',
  runtime    TEXT NOT NULL,
  pid        INTEGER,
  pid_start  INTEGER,
  label      TEXT,
  started_at INTEGER NOT NULL,
  closed_at  INTEGER,
  ended_at   INTEGER,
  CHECK (ended_at IS NULL OR closed_at IS NOT NULL)
) STRICT;
CREATE UNIQUE INDEX runs_live ON runs (folder, topic) WHERE closed_at IS NULL;
CREATE INDEX runs_unended ON runs (id) WHERE ended_at IS NULL;

CREATE TABLE session_log (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id        INTEGER UNIQUE REFERENCES runs (id),
  started_at    INTEGER NOT NULL,
  ended_at      INTEGER,
  folder        TEXT NOT NULL,
  topic         TEXT NOT NULL,
  session_id    TEXT NOT NULL DEFAULT '',
  result        TEXT NOT NULL DEFAULT '',
  error         TEXT NOT NULL DEFAULT '',
  message_count INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_log_topic ON session_log (folder, topic, id);

CREATE TABLE turns (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id             INTEGER REFERENCES runs (id),
  kind               TEXT NOT NULL CHECK (kind IN ('conversation', 'broadcast', 'delegated')),
  folder             TEXT NOT NULL,
  chat_jid           TEXT NOT NULL,
  topic              TEXT NOT NULL,
  thread_id          TEXT NOT NULL DEFAULT '',
  place              TEXT NOT NULL DEFAULT '',
  reply_to           TEXT,
  trigger_message_id INTEGER NOT NULL REFERENCES messages (id),
  claims_engagement  INTEGER NOT NULL DEFAULT 0 CHECK (claims_engagement IN (0, 1)),
  surface            TEXT NOT NULL,
  ceiling            INTEGER NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('queued', 'offered', 'running', 'done', 'failed', 'cancelled')),
  reason             TEXT NOT NULL DEFAULT '',
  attempts           INTEGER NOT NULL DEFAULT 0,
  not_before         INTEGER NOT NULL DEFAULT 0,
  observed_upto      INTEGER NOT NULL DEFAULT 0,
  frames             INTEGER NOT NULL DEFAULT 0,
  depth              INTEGER NOT NULL DEFAULT 0,
  root_turn_id       INTEGER REFERENCES turns (id),
  error              TEXT NOT NULL DEFAULT '',
  created_at         INTEGER NOT NULL,
  started_at         INTEGER,
  ended_at           INTEGER,
  CHECK (state NOT IN ('offered', 'running') OR run_id IS NOT NULL),
  CHECK ((state IN ('done', 'failed', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT;
CREATE INDEX turns_open ON turns (chat_jid, id) WHERE state IN ('queued', 'offered', 'running');
CREATE INDEX turns_run ON turns (run_id, id) WHERE state IN ('offered', 'running');
CREATE INDEX turns_session ON turns (folder, topic, id);
CREATE INDEX turns_folder ON turns (folder, id);
CREATE INDEX turns_chat ON turns (chat_jid, id);
CREATE INDEX turns_claims ON turns (chat_jid, place, id) WHERE claims_engagement = 1;
CREATE INDEX turns_root ON turns (root_turn_id) WHERE root_turn_id IS NOT NULL;

-- Lines for a folder's next prompt. turn_id: the turn whose prompt carries it; deleted when that turn ends.
CREATE TABLE system_messages (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  folder     TEXT NOT NULL,
  origin     TEXT NOT NULL,
  event      TEXT NOT NULL,
  body       TEXT NOT NULL DEFAULT '',
  turn_id    INTEGER REFERENCES turns (id),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX system_messages_folder ON system_messages (folder, id);
CREATE INDEX system_messages_turn ON system_messages (turn_id) WHERE turn_id IS NOT NULL;
