-- The compatibility floor: a daemon built for an older schema must not run.
CREATE TABLE schema_floor (
  floor INTEGER NOT NULL
) STRICT;
INSERT INTO schema_floor (floor) VALUES (1);

-- Every message, in and out. Times are unix milliseconds UTC throughout this schema.
CREATE TABLE messages (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  chat_jid       TEXT NOT NULL CHECK (instr(chat_jid, ':') > 1),
  platform       TEXT GENERATED ALWAYS AS (substr(chat_jid, 1, instr(chat_jid, ':') - 1)) VIRTUAL,
  platform_id    TEXT CHECK (platform_id <> ''),
  direction      TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  kind           TEXT NOT NULL DEFAULT 'message'
                 CHECK (kind IN ('message', 'file', 'reaction', 'edit', 'delete', 'poll')),
  sender         TEXT NOT NULL DEFAULT '',
  sender_name    TEXT NOT NULL DEFAULT '',
  is_bot_message INTEGER NOT NULL DEFAULT 0 CHECK (is_bot_message IN (0, 1)),
  verb           TEXT NOT NULL DEFAULT 'message',
  content        TEXT NOT NULL DEFAULT '',
  attachments    TEXT CHECK (attachments IS NULL OR json_valid(attachments)),
  topic          TEXT NOT NULL DEFAULT '',
  thread_id      TEXT NOT NULL DEFAULT '',
  reply_to_id    TEXT,
  target_id      TEXT,
  addressed      INTEGER NOT NULL DEFAULT 0 CHECK (addressed IN (0, 1)),
  pending_files  INTEGER NOT NULL DEFAULT 0 CHECK (pending_files >= 0),
  timestamp      INTEGER NOT NULL,
  received_at    INTEGER NOT NULL,
  source         TEXT NOT NULL DEFAULT '',
  derived_from   INTEGER REFERENCES messages (id),
  forwarded_from TEXT CHECK (forwarded_from IS NULL OR json_valid(forwarded_from)),
  routed_to      TEXT,
  disposition    TEXT CHECK (disposition IN
                 ('sticky', 'command', 'prefix', 'routed', 'observed', 'dropped', 'onboarding')),
  reason         TEXT,
  decided_at     INTEGER,
  decision_seq   INTEGER,
  turn_id        INTEGER,
  out_state      TEXT CHECK (out_state IN
                 ('queued', 'sending', 'sent', 'ambiguous', 'failed', 'cancelled')),
  CHECK (disposition IS NULL OR direction = 'in'),
  CHECK (out_state IS NULL OR direction = 'out'),
  CHECK ((disposition IS NULL) = (decided_at IS NULL)),
  CHECK ((disposition IS NULL) = (decision_seq IS NULL)),
  CHECK ((disposition IS NULL) = (reason IS NULL)),
  CHECK (disposition <> 'routed' OR routed_to IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX messages_platform_id ON messages (chat_jid, platform_id) WHERE platform_id IS NOT NULL;
CREATE INDEX messages_chat ON messages (chat_jid, id);
CREATE INDEX messages_undecided ON messages (chat_jid, id) WHERE direction = 'in' AND disposition IS NULL;
CREATE INDEX messages_parked ON messages (chat_jid, id) WHERE disposition = 'onboarding';
CREATE INDEX messages_outbox ON messages (platform, chat_jid, thread_id, id) WHERE out_state IN ('queued', 'sending');
CREATE INDEX messages_web ON messages (chat_jid, topic, id) WHERE platform = 'web';
CREATE INDEX messages_turn ON messages (turn_id, id) WHERE turn_id IS NOT NULL;
CREATE INDEX messages_routed ON messages (routed_to, decision_seq, chat_jid) WHERE routed_to IS NOT NULL;
CREATE INDEX messages_notes ON messages (chat_jid) WHERE reason = 'edit_note' AND turn_id IS NULL;
CREATE INDEX messages_stale ON messages (chat_jid, id) WHERE reason = 'stale';
CREATE INDEX messages_derived ON messages (derived_from) WHERE derived_from IS NOT NULL;
CREATE INDEX messages_target ON messages (chat_jid, target_id) WHERE target_id IS NOT NULL;

-- One row per part of an outbound message, inserted when the adapter claims the message.
-- seq grows with every change of any row by any writer: the triggers assign it.
CREATE TABLE deliveries (
  message_id  INTEGER NOT NULL REFERENCES messages (id),
  part        INTEGER NOT NULL CHECK (part >= 0),
  seq         INTEGER NOT NULL DEFAULT 0,
  state       TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'ambiguous', 'failed', 'cancelled')),
  attempts    INTEGER NOT NULL DEFAULT 0,
  not_before  INTEGER NOT NULL DEFAULT 0,
  platform_id TEXT,
  error_class TEXT CHECK (error_class IN ('permanent', 'transient', 'rate', 'auth', 'ambiguous')),
  error       TEXT,
  updated_at  INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  PRIMARY KEY (message_id, part)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_seq ON deliveries (seq);
CREATE TRIGGER deliveries_inserted AFTER INSERT ON deliveries BEGIN
  UPDATE deliveries SET seq = (SELECT max(seq) + 1 FROM deliveries) WHERE message_id = NEW.message_id AND part = NEW.part;
END;
CREATE TRIGGER deliveries_changed AFTER UPDATE OF state, attempts, not_before, platform_id, error_class, error ON deliveries BEGIN
  UPDATE deliveries SET seq = (SELECT max(seq) + 1 FROM deliveries) WHERE message_id = NEW.message_id AND part = NEW.part;
END;
CREATE INDEX deliveries_platform_id ON deliveries (platform_id) WHERE platform_id IS NOT NULL;

CREATE TABLE chats (
  jid          TEXT PRIMARY KEY CHECK (instr(jid, ':') > 1),
  platform     TEXT NOT NULL,
  kind         TEXT NOT NULL CHECK (kind IN ('dm', 'group', 'channel', 'web', 'internal')),
  title        TEXT NOT NULL DEFAULT '',
  sticky_topic TEXT CHECK (sticky_topic <> ''),
  sticky_group TEXT CHECK (sticky_group <> ''),
  sticky_at    INTEGER,
  last_seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chat_aliases (
  old_jid TEXT PRIMARY KEY,
  new_jid TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE platform_threads (
  chat_jid      TEXT NOT NULL,
  thread_id     TEXT NOT NULL,
  kind          TEXT NOT NULL DEFAULT '',
  title         TEXT NOT NULL DEFAULT '',
  parent_author TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (chat_jid, thread_id)
) STRICT, WITHOUT ROWID;

-- A platform thread bound to a named topic: rows of the thread run in that topic.
CREATE TABLE topic_threads (
  chat_jid  TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  topic     TEXT NOT NULL,
  PRIMARY KEY (chat_jid, thread_id)
) STRICT, WITHOUT ROWID;
