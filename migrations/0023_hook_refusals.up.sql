-- Deliveries that a hook has refused: their signature was wrong, or there was none. dashd keeps the last ones.
CREATE TABLE hook_refusals (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  chat_jid TEXT NOT NULL,
  at       INTEGER NOT NULL,
  reason   TEXT NOT NULL
) STRICT;
CREATE INDEX hook_refusals_chat ON hook_refusals(chat_jid, id);
