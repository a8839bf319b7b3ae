-- agent: the agent of AGENTS that the session is of, '' for the default one. No agent resumes a session of another.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE session_log ADD COLUMN agent TEXT NOT NULL DEFAULT '';

-- The sessions of agents that a group had before, for when it is switched back to them.
CREATE TABLE kept_sessions (
  group_folder TEXT NOT NULL,
  topic        TEXT NOT NULL,
  agent        TEXT NOT NULL,
  session_id   TEXT NOT NULL,
  updated_at   INTEGER NOT NULL,
  PRIMARY KEY (group_folder, topic, agent)
) STRICT, WITHOUT ROWID;

-- The models that an agent offers to a group, as it said last. models: JSON. current: the id of the one that it uses.
CREATE TABLE agent_models (
  folder     TEXT NOT NULL,
  agent      TEXT NOT NULL,
  models     TEXT NOT NULL CHECK (json_valid(models)),
  current    TEXT NOT NULL DEFAULT '',
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (folder, agent)
) STRICT, WITHOUT ROWID;
