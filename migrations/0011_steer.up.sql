-- answered_with: the turn whose answer is for this one too, since the agent took this one in while it worked on that.
ALTER TABLE turns ADD COLUMN answered_with INTEGER;
CREATE INDEX turns_answered_with ON turns (answered_with) WHERE answered_with IS NOT NULL;

-- What the agents of a group have used in a chat on a day: of turns, as their columns have it, by the day on which it was said.
CREATE TABLE spend (
  day           TEXT NOT NULL CHECK (day GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]'),
  folder        TEXT NOT NULL,
  chat_jid      TEXT NOT NULL,
  turns         INTEGER NOT NULL DEFAULT 0,
  input_tokens  INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cost_usd      REAL NOT NULL DEFAULT 0.0,
  PRIMARY KEY (day, folder, chat_jid)
) STRICT, WITHOUT ROWID;
CREATE INDEX spend_chat ON spend (chat_jid, day);
CREATE INDEX spend_folder ON spend (folder, day);

-- For turns of before. Days are those of migrate's time zone.
INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
  SELECT date(started_at / 1000, 'unixepoch', 'localtime') AS at, folder, chat_jid, count(*), total(input_tokens), total(output_tokens), total(cost_usd)
  FROM turns WHERE cost_usd IS NOT NULL AND started_at IS NOT NULL GROUP BY at, folder, chat_jid;
