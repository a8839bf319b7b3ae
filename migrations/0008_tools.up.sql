-- The first result of each acting tool call of a turn: a call that a retried attempt repeats gets it instead of acting
-- twice. call: a hash of the tool's name, its arguments and how many equal calls came before in the attempt.
CREATE TABLE tool_calls (
  turn_id    INTEGER NOT NULL REFERENCES turns (id),
  call       TEXT NOT NULL,
  tool       TEXT NOT NULL,
  result     TEXT NOT NULL CHECK (json_valid(result)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, call)
) STRICT, WITHOUT ROWID;
-- Files of a chat, for the limit of a day.
CREATE INDEX messages_files ON messages (chat_jid, received_at) WHERE attachments IS NOT NULL;

-- Polls: the votes, what platforms call a poll, and its end.

-- end_pending: the poll is closed, and its message on the platform is not yet. result: JSON, the final counts.
ALTER TABLE polls ADD COLUMN end_pending INTEGER NOT NULL DEFAULT 0 CHECK (end_pending IN (0, 1));
ALTER TABLE polls ADD COLUMN result TEXT CHECK (json_valid(result));
CREATE INDEX polls_due ON polls (closes_at) WHERE state = 'open' AND closes_at IS NOT NULL;
CREATE INDEX polls_open ON polls (id) WHERE state = 'open';
CREATE INDEX polls_ending ON polls (id) WHERE end_pending = 1;
CREATE INDEX polls_list ON polls (chat_jid, folder, state, id);

-- What each voter chooses; a later vote replaces it. options: JSON, numbers from 1 in the order in which they were chosen.
CREATE TABLE poll_votes (
  poll_id INTEGER NOT NULL REFERENCES polls (id),
  voter   TEXT NOT NULL,
  name    TEXT NOT NULL DEFAULT '',
  options TEXT NOT NULL CHECK (json_valid(options)),
  at      INTEGER NOT NULL,
  PRIMARY KEY (poll_id, voter)
) STRICT, WITHOUT ROWID;

-- Polls by the ids that platforms use for them in votes, where that is not the message's.
CREATE TABLE poll_refs (
  daemon     TEXT NOT NULL,
  ref        TEXT NOT NULL,
  message_id INTEGER NOT NULL REFERENCES messages (id),
  PRIMARY KEY (daemon, ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX poll_refs_message ON poll_refs (message_id);

-- What ends an active context object beside its TTL, and where a link leads. closed_at is a poll's, NULL
-- while it is open; due_at is when a reminder fires next, NULL if it does not.
ALTER TABLE context_objects ADD COLUMN url TEXT NOT NULL DEFAULT '';
ALTER TABLE context_objects ADD COLUMN closed_at INTEGER;
ALTER TABLE context_objects ADD COLUMN due_at INTEGER;

-- The recent messages of a chat, and of a thread: what users and bots wrote, and no votes, reactions, edits and joins. An
-- index of its own for the first would cost each insert more than reading over the others does.
DROP INDEX messages_chat;
CREATE INDEX messages_chat ON messages (chat_jid, id, verb, kind);
CREATE INDEX messages_thread ON messages (chat_jid, thread_id, id)
  WHERE thread_id <> '' AND verb IN ('', 'message', 'mention', 'reply') AND kind IN ('message', 'file', 'poll');

-- Reminders. next_slot: when an active one fires next, unix ms; NULL until gated has computed it. error: why gated ended
-- it itself. updated_by: the sender or group that changed it last.
ALTER TABLE reminders ADD COLUMN next_slot INTEGER;
ALTER TABLE reminders ADD COLUMN updated_by TEXT NOT NULL DEFAULT '';
ALTER TABLE reminders ADD COLUMN error TEXT NOT NULL DEFAULT '';
CREATE INDEX reminders_due ON reminders (next_slot, id) WHERE state = 'active';
CREATE INDEX reminders_folder ON reminders (folder, state, id);
CREATE INDEX reminders_chat ON reminders (chat_jid, state, id);

-- Messages of operators and of arizuko itself to many chats. chats: their addresses, a JSON array. message_ids: those of
-- the messages that are stored so far, in the same order. key: a repeated request finds its row by it.
CREATE TABLE broadcasts (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  key         TEXT NOT NULL UNIQUE,
  text        TEXT NOT NULL,
  created_by  TEXT NOT NULL,
  chats       TEXT NOT NULL CHECK (json_valid(chats)),
  message_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(message_ids)),
  created_at  INTEGER NOT NULL,
  ended_at    INTEGER
) STRICT;
CREATE INDEX broadcasts_open ON broadcasts (id) WHERE ended_at IS NULL;

-- Topics that a tool has forked off a message. own_thread: thread_id is a thread that begins at that message, whose
-- messages run in the fork; else replies to the fork's messages in that place do. Once ended, all of them run in the parent.
CREATE TABLE forks (
  chat_jid   TEXT NOT NULL,
  topic      TEXT NOT NULL,
  folder     TEXT NOT NULL,
  thread_id  TEXT NOT NULL,
  own_thread INTEGER NOT NULL CHECK (own_thread IN (0, 1)),
  message_id INTEGER NOT NULL REFERENCES messages (id),
  created_at INTEGER NOT NULL,
  ended_at   INTEGER, -- NULL while open
  PRIMARY KEY (chat_jid, topic)
) STRICT, WITHOUT ROWID;
CREATE INDEX forks_session ON forks (folder, topic);
CREATE INDEX forks_open ON forks (chat_jid, thread_id) WHERE ended_at IS NULL;
CREATE INDEX forks_own_thread ON forks (chat_jid, thread_id) WHERE own_thread = 1;
CREATE INDEX forks_message ON forks (message_id);

-- sender: a /stop under way drops undecided rows of this sender alone; NULL: of all.
ALTER TABLE stops ADD COLUMN sender TEXT;
