-- Permission requests that are always allowed. Users of a group make a rule by an answer; a later request of the group with the same
-- tool, payload hash and text is answered by it. chat_jid: of the answer. text: its beginning. text_hash: of the question and options.
CREATE TABLE permission_rules (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  folder       TEXT NOT NULL CHECK (folder <> ''),
  chat_jid     TEXT NOT NULL,
  tool         TEXT NOT NULL DEFAULT '',
  payload_hash TEXT NOT NULL CHECK (payload_hash <> ''),
  text_hash    TEXT NOT NULL CHECK (text_hash <> ''),
  text         TEXT NOT NULL,
  author       TEXT NOT NULL CHECK (author <> ''),
  created_at   INTEGER NOT NULL,
  used         INTEGER NOT NULL DEFAULT 0,
  used_at      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (folder, payload_hash, text_hash, tool, chat_jid)
) STRICT;

-- tool, allow: of a permission request that says them. always: 1 if its last option, gated's own, makes a rule. rule_id: the rule that
-- its answer made, or with always 0 the one that answered it, which was made at rule_at; 0 for none.
ALTER TABLE asks ADD COLUMN tool TEXT NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN allow TEXT NOT NULL DEFAULT '';
ALTER TABLE asks ADD COLUMN always INTEGER NOT NULL DEFAULT 0 CHECK (always IN (0, 1));
ALTER TABLE asks ADD COLUMN rule_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE asks ADD COLUMN rule_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX asks_allow ON asks (payload_hash) WHERE allow <> '';
