UPDATE schema_floor SET floor = 1;

DROP TABLE context_objects;
CREATE TABLE context_objects (
  object_id          TEXT PRIMARY KEY,
  kind               TEXT NOT NULL,
  chat_id            TEXT NOT NULL,
  topic_id           TEXT NOT NULL DEFAULT '',
  source_message_id  INTEGER,
  label              TEXT NOT NULL DEFAULT '',
  created_at         INTEGER NOT NULL,
  last_touched_at    INTEGER NOT NULL,
  activation_reasons TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(activation_reasons)),
  created_by_user_id TEXT,
  created_by_bot     INTEGER NOT NULL DEFAULT 0 CHECK (created_by_bot IN (0, 1)),
  ttl_class          TEXT NOT NULL,
  active_until       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX context_objects_active ON context_objects (active_until);

DROP TABLE asks;
DROP TABLE previews;
DROP TABLE turn_progress;
DROP INDEX chat_aliases_moving;
ALTER TABLE chat_aliases DROP COLUMN moving;
DROP TABLE group_failures;
DROP TABLE stops;
ALTER TABLE runs DROP COLUMN draining;

CREATE TABLE turns_old (
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
INSERT INTO turns_old SELECT id, run_id, kind, folder, chat_jid, topic, thread_id, place, reply_to, trigger_message_id,
  claims_engagement, surface, ceiling, state, reason, attempts, not_before, observed_upto, frames, depth, root_turn_id, error,
  created_at, started_at, ended_at FROM turns;
DROP TABLE turns;
ALTER TABLE turns_old RENAME TO turns;
CREATE INDEX turns_open ON turns (chat_jid, id) WHERE state IN ('queued', 'offered', 'running');
CREATE INDEX turns_run ON turns (run_id, id) WHERE state IN ('offered', 'running');
CREATE INDEX turns_session ON turns (folder, topic, id);
CREATE INDEX turns_folder ON turns (folder, id);
CREATE INDEX turns_chat ON turns (chat_jid, id);
CREATE INDEX turns_claims ON turns (chat_jid, place, id) WHERE claims_engagement = 1;
CREATE INDEX turns_root ON turns (root_turn_id) WHERE root_turn_id IS NOT NULL;

-- The other rebuilt tables accept what the older schema accepted: they keep their form, but the checks on chats
-- are those of older daemons.
UPDATE chats SET sticky_topic = NULL WHERE sticky_topic = '';
UPDATE chats SET sticky_group = NULL WHERE sticky_group = '';
UPDATE deliveries SET error_class = 'transient' WHERE error_class = 'expired';

DROP TRIGGER routes_inserted;
DROP TRIGGER routes_updated;
DROP TRIGGER routes_deleted;
DROP TRIGGER groups_inserted;
DROP TRIGGER groups_updated;
DROP TRIGGER groups_deleted;
DROP TRIGGER deliveries_inserted;
DROP TRIGGER deliveries_changed;
DROP TABLE counters;
CREATE TRIGGER deliveries_inserted AFTER INSERT ON deliveries BEGIN
  UPDATE deliveries SET seq = (SELECT max(seq) + 1 FROM deliveries) WHERE message_id = NEW.message_id AND part = NEW.part;
END;
CREATE TRIGGER deliveries_changed AFTER UPDATE OF state, attempts, not_before, platform_id, error_class, error ON deliveries BEGIN
  UPDATE deliveries SET seq = (SELECT max(seq) + 1 FROM deliveries) WHERE message_id = NEW.message_id AND part = NEW.part;
END;

DROP INDEX messages_wanted;
DROP INDEX messages_returning;
DROP INDEX messages_notes;
CREATE INDEX messages_notes ON messages (chat_jid) WHERE reason = 'edit_note' AND turn_id IS NULL;
DROP INDEX messages_note_targets;
DROP INDEX polls_message;
DROP INDEX reminder_slots_message;
CREATE INDEX messages_pending ON messages (platform, id) WHERE pending_files > 0;
ALTER TABLE messages DROP COLUMN error;
ALTER TABLE messages DROP COLUMN files_wanted;
ALTER TABLE messages DROP COLUMN quote;
ALTER TABLE messages DROP COLUMN group_key;
