-- Indexes and states that older daemons name are gone: they must not run.
UPDATE schema_floor SET floor = 6;

-- Numbers that triggers hand out: they grow with each change and are never set back.
CREATE TABLE counters (
  name  TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES
  -- Not below what routd has read, should rows have been deleted.
  ('deliveries', max((SELECT ifnull(max(seq), 0) FROM deliveries),
    ifnull((SELECT CAST(value AS INTEGER) FROM cursors WHERE daemon = 'routd' AND key = 'deliveries'), 0))),
  ('routing', 1);

-- group_key: rows of one key become one turn. quote: the selected part of the post that is answered.
-- files_wanted: the attachments of the row are to be downloaded. error: why deciding the row failed.
ALTER TABLE messages ADD COLUMN group_key TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN quote TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN files_wanted INTEGER NOT NULL DEFAULT 0 CHECK (files_wanted IN (0, 1));
ALTER TABLE messages ADD COLUMN error TEXT NOT NULL DEFAULT '';
UPDATE messages SET files_wanted = 1 WHERE pending_files > 0;
DROP INDEX messages_pending;
CREATE INDEX messages_wanted ON messages (platform, id) WHERE pending_files > 0 AND files_wanted = 1;
-- Notes that no prompt has shown, by the conversation that they wait for, and by what they are about.
DROP INDEX messages_notes;
CREATE INDEX messages_notes ON messages (chat_jid, routed_to, thread_id, id, topic) WHERE reason = 'edit_note' AND turn_id IS NULL;
CREATE INDEX messages_note_targets ON messages (chat_jid, target_id) WHERE reason = 'edit_note' AND turn_id IS NULL;
-- Undecided rows between groups: the turns that they name are needed.
CREATE INDEX messages_returning ON messages (id) WHERE direction = 'in' AND disposition IS NULL AND forwarded_from IS NOT NULL;

-- Defaults that SQLite 3.40 can evaluate too; seq comes from a counter, so that deleting rows never sets it back.
CREATE TABLE deliveries_new (
  message_id  INTEGER NOT NULL REFERENCES messages (id),
  part        INTEGER NOT NULL CHECK (part >= 0),
  seq         INTEGER NOT NULL DEFAULT 0,
  state       TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'ambiguous', 'failed', 'cancelled')),
  attempts    INTEGER NOT NULL DEFAULT 0,
  not_before  INTEGER NOT NULL DEFAULT 0,
  platform_id TEXT,
  error_class TEXT CHECK (error_class IN ('permanent', 'transient', 'rate', 'auth', 'ambiguous', 'expired')),
  error       TEXT,
  updated_at  INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  PRIMARY KEY (message_id, part)
) STRICT, WITHOUT ROWID;
INSERT INTO deliveries_new SELECT message_id, part, seq, state, attempts, not_before, platform_id, error_class, error, updated_at
  FROM deliveries;
DROP TABLE deliveries;
ALTER TABLE deliveries_new RENAME TO deliveries;
CREATE INDEX deliveries_seq ON deliveries (seq);
CREATE INDEX deliveries_platform_id ON deliveries (platform_id) WHERE platform_id IS NOT NULL;
CREATE TRIGGER deliveries_inserted AFTER INSERT ON deliveries BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'deliveries';
  UPDATE deliveries SET seq = (SELECT value FROM counters WHERE name = 'deliveries')
    WHERE message_id = NEW.message_id AND part = NEW.part;
END;
-- Not for a platform_id alone: a chat's move renames the ids of what was sent long ago.
CREATE TRIGGER deliveries_changed AFTER UPDATE OF state, attempts, not_before, error_class, error ON deliveries BEGIN
  UPDATE counters SET value = value + 1 WHERE name = 'deliveries';
  UPDATE deliveries SET seq = (SELECT value FROM counters WHERE name = 'deliveries')
    WHERE message_id = NEW.message_id AND part = NEW.part;
END;

CREATE TABLE chats_new (
  jid          TEXT PRIMARY KEY CHECK (instr(jid, ':') > 1),
  platform     TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('dm', 'group', 'channel', 'web', 'internal')),
  title        TEXT NOT NULL DEFAULT '',
  sticky_topic TEXT, -- '' is the same as NULL, here and in sticky_group
  sticky_group TEXT,
  sticky_at    INTEGER,
  last_seen_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO chats_new SELECT jid, platform, kind, title, sticky_topic, sticky_group, sticky_at, last_seen_at FROM chats;
DROP TABLE chats;
ALTER TABLE chats_new RENAME TO chats;

CREATE TABLE registered_groups_new (
  folder     TEXT PRIMARY KEY,
  name       TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  config     TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(config))
) STRICT, WITHOUT ROWID;
INSERT INTO registered_groups_new SELECT folder, name, created_at, config FROM registered_groups;
DROP TABLE registered_groups;
ALTER TABLE registered_groups_new RENAME TO registered_groups;

-- routd reads routes and groups again when this counter has changed, by its own hand or by SQL.
CREATE TRIGGER routes_inserted AFTER INSERT ON routes BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;
CREATE TRIGGER routes_updated AFTER UPDATE ON routes BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;
CREATE TRIGGER routes_deleted AFTER DELETE ON routes BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;
CREATE TRIGGER groups_inserted AFTER INSERT ON registered_groups BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;
CREATE TRIGGER groups_updated AFTER UPDATE ON registered_groups BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;
CREATE TRIGGER groups_deleted AFTER DELETE ON registered_groups BEGIN UPDATE counters SET value = value + 1 WHERE name = 'routing'; END;

CREATE TABLE chat_reply_state_new (
  jid            TEXT NOT NULL,
  topic          TEXT NOT NULL,
  last_reply_id  INTEGER,
  engaged_until  INTEGER,
  engaged_folder TEXT,
  engaged_at     INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  ended_at       INTEGER,
  PRIMARY KEY (jid, topic),
  CHECK ((engaged_until IS NULL) = (engaged_folder IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO chat_reply_state_new SELECT jid, topic, last_reply_id, engaged_until, engaged_folder, engaged_at, ended_at
  FROM chat_reply_state;
DROP TABLE chat_reply_state;
ALTER TABLE chat_reply_state_new RENAME TO chat_reply_state;

CREATE TABLE sessions_new (
  group_folder TEXT NOT NULL,
  topic        TEXT NOT NULL DEFAULT '',
  session_id   TEXT NOT NULL,
  updated_at   INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  PRIMARY KEY (group_folder, topic)
) STRICT, WITHOUT ROWID;
INSERT INTO sessions_new SELECT group_folder, topic, session_id, updated_at FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_new RENAME TO sessions;

-- A turn is queued until a run takes it. lane: what is answered in order, a folder or a topic of its web chat.
-- waits_for: why a queued turn may not start before not_before. row_count and row_bytes: the rows it was made of.
CREATE TABLE turns_new (
  id                 INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id             INTEGER REFERENCES runs (id),
  kind               TEXT NOT NULL CHECK (kind IN ('conversation', 'broadcast', 'delegated')),
  folder             TEXT NOT NULL,
  chat_jid           TEXT NOT NULL,
  topic              TEXT NOT NULL,
  thread_id          TEXT NOT NULL DEFAULT '',
  place              TEXT NOT NULL DEFAULT '',
  lane               TEXT GENERATED ALWAYS AS (CASE WHEN substr(chat_jid, 1, 4) = 'web:' AND kind <> 'delegated'
                     THEN folder || ' ' || topic ELSE folder END) VIRTUAL,
  reply_to           TEXT,
  trigger_message_id INTEGER NOT NULL REFERENCES messages (id),
  claims_engagement  INTEGER NOT NULL DEFAULT 0 CHECK (claims_engagement IN (0, 1)),
  surface            TEXT NOT NULL,
  ceiling            INTEGER NOT NULL,
  state              TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
  reason             TEXT NOT NULL DEFAULT '',
  attempts           INTEGER NOT NULL DEFAULT 0,
  not_before         INTEGER NOT NULL DEFAULT 0,
  waits_for          TEXT NOT NULL DEFAULT '' CHECK (waits_for IN ('', 'files', 'retry', 'machine', 'probe')),
  row_count          INTEGER NOT NULL DEFAULT 0,
  row_bytes          INTEGER NOT NULL DEFAULT 0,
  observed_upto      INTEGER NOT NULL DEFAULT 0,
  frames             INTEGER NOT NULL DEFAULT 0,
  depth              INTEGER NOT NULL DEFAULT 0,
  root_turn_id       INTEGER REFERENCES turns (id),
  error              TEXT NOT NULL DEFAULT '',
  error_kind         TEXT NOT NULL DEFAULT '' CHECK (error_kind IN ('', 'session', 'transient', 'permanent', 'machine')),
  input_tokens       INTEGER,
  output_tokens      INTEGER,
  context_used       INTEGER,
  context_size       INTEGER,
  cost_usd           REAL,
  created_at         INTEGER NOT NULL,
  started_at         INTEGER,
  ended_at           INTEGER,
  CHECK (state <> 'running' OR run_id IS NOT NULL),
  CHECK ((state IN ('done', 'failed', 'cancelled')) = (ended_at IS NOT NULL))
) STRICT;
INSERT INTO turns_new (id, run_id, kind, folder, chat_jid, topic, thread_id, place, reply_to, trigger_message_id, claims_engagement,
  surface, ceiling, state, reason, attempts, not_before, waits_for, observed_upto, frames, depth, root_turn_id, error, created_at, started_at, ended_at)
  SELECT id, CASE state WHEN 'offered' THEN NULL ELSE run_id END, kind, folder, chat_jid, topic, thread_id, place, reply_to,
  trigger_message_id, claims_engagement, surface, ceiling, CASE state WHEN 'offered' THEN 'queued' ELSE state END, reason, attempts,
  not_before, CASE WHEN state = 'queued' AND not_before > 0 THEN 'retry' ELSE '' END, observed_upto, frames, depth, root_turn_id, error,
  created_at, started_at, ended_at FROM turns;
DROP TABLE turns;
ALTER TABLE turns_new RENAME TO turns;
CREATE INDEX turns_open ON turns (chat_jid, id) WHERE state IN ('queued', 'running');
CREATE INDEX turns_queued ON turns (lane, id, chat_jid, topic, not_before) WHERE state = 'queued';
CREATE INDEX turns_conversation ON turns (lane, chat_jid, topic, id) WHERE state = 'queued';
CREATE INDEX turns_files ON turns (id) WHERE state = 'queued' AND waits_for = 'files';
CREATE INDEX turns_probe ON turns (folder) WHERE state = 'queued' AND waits_for = 'probe';
CREATE INDEX turns_run ON turns (run_id, id) WHERE state = 'running';
CREATE INDEX turns_session ON turns (folder, topic, id) WHERE state = 'done';
CREATE INDEX turns_folder ON turns (folder, id) WHERE started_at IS NOT NULL;
CREATE INDEX turns_chat ON turns (chat_jid, id);
CREATE INDEX turns_state ON turns (state, id) WHERE state IN ('failed', 'cancelled');
CREATE INDEX turns_failed ON turns (chat_jid, ended_at) WHERE state = 'failed';
CREATE INDEX turns_claims ON turns (chat_jid, place, id, ended_at) WHERE claims_engagement = 1;
CREATE INDEX turns_open_claims ON turns (chat_jid, place, id) WHERE claims_engagement = 1 AND ended_at IS NULL;
CREATE INDEX turns_root ON turns (root_turn_id) WHERE root_turn_id IS NOT NULL;
-- For the foreign keys, when messages and runs are deleted.
CREATE INDEX turns_trigger ON turns (trigger_message_id);
CREATE INDEX turns_of_run ON turns (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX polls_message ON polls (message_id);
CREATE INDEX reminder_slots_message ON reminder_slots (message_id) WHERE message_id IS NOT NULL;

-- draining: the run answers the turns it has and gets no more, but may still store its session.
ALTER TABLE runs ADD COLUMN draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1));

-- A /stop under way: undecided rows of the chat below before_message and its open turns up to through_turn end
-- as stopped, in pages. topic NULL: of all topics. after_message and after_turn: where the next page begins.
-- except_rows: rows that it leaves alone, as a JSON array of ids.
CREATE TABLE stops (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  chat_jid       TEXT NOT NULL,
  topic          TEXT,
  before_message INTEGER NOT NULL,
  through_turn   INTEGER NOT NULL,
  after_message  INTEGER NOT NULL DEFAULT 0,
  after_turn     INTEGER NOT NULL DEFAULT 0,
  except_rows    TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(except_rows)),
  created_at     INTEGER NOT NULL
) STRICT;

-- A group whose turns fail alike: its turns wait, and one is tried at probe_at.
CREATE TABLE group_failures (
  folder   TEXT PRIMARY KEY,
  problem  TEXT NOT NULL,
  count    INTEGER NOT NULL,
  since    INTEGER NOT NULL,
  probe_at INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- moving: the rows of old_jid are still being moved to new_jid, in pages.
ALTER TABLE chat_aliases ADD COLUMN moving INTEGER NOT NULL DEFAULT 0 CHECK (moving IN (0, 1));
CREATE INDEX chat_aliases_moving ON chat_aliases (new_jid) WHERE moving = 1;

-- What a turn shows while its agent works: one row per turn.
CREATE TABLE turn_progress (
  turn_id    INTEGER PRIMARY KEY REFERENCES turns (id),
  state      TEXT NOT NULL CHECK (state IN ('running', 'idle', 'requires_action')),
  text       TEXT NOT NULL DEFAULT '',
  plan       TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(plan)),
  tools      TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tools)),
  updated_at INTEGER NOT NULL
) STRICT;

-- A message that shows a turn's progress on its platform, to be replaced by the answer or removed.
CREATE TABLE previews (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id     INTEGER NOT NULL REFERENCES turns (id),
  chat_jid    TEXT NOT NULL,
  thread_id   TEXT NOT NULL DEFAULT '',
  platform_id TEXT,
  state       TEXT NOT NULL CHECK (state IN ('open', 'final', 'removed', 'lost')),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX previews_turn ON previews (turn_id);

-- A question of an agent to a user.
CREATE TABLE asks (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id      INTEGER NOT NULL REFERENCES turns (id),
  ask_id       TEXT NOT NULL,
  message_id   INTEGER REFERENCES messages (id),
  question     TEXT NOT NULL,
  options      TEXT NOT NULL CHECK (json_valid(options)),
  payload_hash TEXT NOT NULL DEFAULT '',
  who          TEXT NOT NULL DEFAULT '',
  state        TEXT NOT NULL CHECK (state IN ('open', 'answered', 'expired')),
  option       TEXT,
  answered_by  TEXT,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  ended_at     INTEGER,
  UNIQUE (turn_id, ask_id),
  CHECK ((state = 'open') = (ended_at IS NULL)),
  CHECK ((state = 'answered') = (option IS NOT NULL))
) STRICT;
CREATE INDEX asks_open ON asks (expires_at) WHERE state = 'open';
CREATE INDEX asks_message ON asks (message_id) WHERE message_id IS NOT NULL;

-- Object ids are unique within a chat only.
DROP TABLE context_objects;
CREATE TABLE context_objects (
  chat_id            TEXT NOT NULL,
  object_id          TEXT NOT NULL,
  kind               TEXT NOT NULL,
  topic_id           TEXT NOT NULL DEFAULT '',
  source_message_id  INTEGER,
  label              TEXT NOT NULL DEFAULT '',
  created_at         INTEGER NOT NULL,
  last_touched_at    INTEGER NOT NULL,
  activation_reasons TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(activation_reasons)),
  created_by_user_id TEXT,
  created_by_bot     INTEGER NOT NULL DEFAULT 0 CHECK (created_by_bot IN (0, 1)),
  ttl_class          TEXT NOT NULL,
  active_until       INTEGER NOT NULL,
  PRIMARY KEY (chat_id, object_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX context_objects_active ON context_objects (active_until);
