CREATE TABLE onboarding_requests (
  code       TEXT PRIMARY KEY,
  chat_jid   TEXT NOT NULL,
  sender     TEXT NOT NULL DEFAULT '',
  title      TEXT NOT NULL DEFAULT '',
  sample     TEXT NOT NULL DEFAULT '',
  state      TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'rejected', 'expired')),
  folder     TEXT,
  decided_by TEXT,
  decided_at INTEGER,
  created_at INTEGER NOT NULL,
  CHECK ((state = 'pending') = (decided_at IS NULL)),
  CHECK (state <> 'approved' OR folder IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX onboarding_pending ON onboarding_requests (chat_jid) WHERE state = 'pending';

-- The journal from which the index of active context objects is rebuilt at start.
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

CREATE TABLE reminders (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  folder      TEXT NOT NULL,
  chat_jid    TEXT NOT NULL,
  topic       TEXT NOT NULL DEFAULT '',
  thread_id   TEXT NOT NULL DEFAULT '',
  kind        TEXT NOT NULL CHECK (kind IN ('text', 'prompt')),
  body        TEXT NOT NULL,
  due_at      INTEGER,
  cron        TEXT,
  time_zone   TEXT NOT NULL DEFAULT 'UTC',
  missed      TEXT NOT NULL DEFAULT 'one' CHECK (missed IN ('skip', 'one')),
  state       TEXT NOT NULL CHECK (state IN ('active', 'done', 'cancelled')),
  created_by  TEXT NOT NULL DEFAULT '',
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  CHECK ((due_at IS NULL) <> (cron IS NULL) OR state <> 'active')
) STRICT;
CREATE INDEX reminders_active ON reminders (id) WHERE state = 'active';

-- When reminders fired: one message per reminder and slot.
CREATE TABLE reminder_slots (
  reminder_id INTEGER NOT NULL REFERENCES reminders (id),
  slot        INTEGER NOT NULL,
  message_id  INTEGER REFERENCES messages (id),
  PRIMARY KEY (reminder_id, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE polls (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  message_id INTEGER NOT NULL REFERENCES messages (id),
  folder     TEXT NOT NULL,
  chat_jid   TEXT NOT NULL,
  topic      TEXT NOT NULL DEFAULT '',
  question   TEXT NOT NULL,
  options    TEXT NOT NULL CHECK (json_valid(options)),
  multiple   INTEGER NOT NULL DEFAULT 0 CHECK (multiple IN (0, 1)),
  closes_at  INTEGER,
  state      TEXT NOT NULL CHECK (state IN ('open', 'closed')),
  created_at INTEGER NOT NULL,
  closed_at  INTEGER,
  CHECK ((state = 'closed') = (closed_at IS NOT NULL))
) STRICT;
CREATE INDEX polls_chat ON polls (chat_jid, id);

CREATE TABLE audit (
  id     INTEGER PRIMARY KEY AUTOINCREMENT,
  at     INTEGER NOT NULL,
  who    TEXT NOT NULL,
  what   TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE daemons (
  name          TEXT PRIMARY KEY,
  version       TEXT NOT NULL DEFAULT '',
  started_at    INTEGER NOT NULL,
  heartbeat_at  INTEGER NOT NULL,
  connection    TEXT NOT NULL CHECK (connection IN ('connecting', 'connected', 'degraded', 'bad_credentials', 'stopped')),
  last_event_at INTEGER,
  last_probe_at INTEGER,
  detail        TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;
