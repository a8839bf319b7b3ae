-- Full-text search over messages. dashd puts rows into the index behind their writers, in batches.

-- One row. indexed: rows up to this id are in the index.
CREATE TABLE search_state (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  indexed INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO search_state (id) VALUES (1);

-- Indexed texts whose rows were deleted, until dashd has removed them from the index too: one after the other, in the
-- transaction that deletes the row, that takes milliseconds each; in a batch it takes microseconds.
CREATE TABLE search_deleted (
  id      INTEGER PRIMARY KEY,
  content TEXT NOT NULL
) STRICT;

-- What the index has, exactly: integrity_check compares both. The index has no copy of the texts.
CREATE VIEW search_texts AS
  SELECT id AS rowid, substr(content, 1, 16384) AS content FROM messages WHERE id <= (SELECT indexed FROM search_state)
  UNION ALL SELECT id, content FROM search_deleted;
CREATE VIRTUAL TABLE message_search USING fts4 (content="search_texts", content, order=DESC, tokenize=unicode61 "remove_diacritics=2");
-- Merges a little with each batch, in place of everything now and then.
INSERT INTO message_search (message_search) VALUES ('automerge=8');

CREATE TRIGGER messages_search_deleted AFTER DELETE ON messages WHEN OLD.id <= (SELECT indexed FROM search_state) BEGIN
  INSERT INTO search_deleted (id, content) VALUES (OLD.id, substr(OLD.content, 1, 16384));
END;
-- Edits of rows that are not decided yet.
CREATE TRIGGER messages_search_before BEFORE UPDATE OF content ON messages WHEN OLD.id <= (SELECT indexed FROM search_state) BEGIN
  DELETE FROM message_search WHERE docid = OLD.id;
END;
CREATE TRIGGER messages_search_after AFTER UPDATE OF content ON messages WHEN NEW.id <= (SELECT indexed FROM search_state) BEGIN
  INSERT INTO message_search (docid, content) VALUES (NEW.id, substr(NEW.content, 1, 16384));
END;

-- Lists of messages: by sender, by why they were dropped, and those that were not delivered, also by why.
CREATE INDEX messages_sender ON messages (sender, id) WHERE sender <> '' AND direction = 'in';
CREATE INDEX messages_dropped ON messages (reason, id) WHERE disposition = 'dropped';
CREATE INDEX messages_undelivered ON messages (out_state, id) WHERE out_state IN ('failed', 'ambiguous', 'cancelled');
CREATE INDEX deliveries_failed ON deliveries (error_class, message_id) WHERE state = 'failed';

-- Changes by operators, by who made them and by what they are.
CREATE INDEX audit_who ON audit (who);
CREATE INDEX audit_what ON audit (what);

-- Lists of chats, those seen last first, and of open engagement windows, those that end first.
CREATE INDEX chats_seen ON chats (last_seen_at, jid);
CREATE INDEX chat_reply_state_open ON chat_reply_state (engaged_until, jid, topic) WHERE engaged_until IS NOT NULL;
