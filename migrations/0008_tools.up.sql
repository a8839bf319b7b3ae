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
