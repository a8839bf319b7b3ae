DROP TABLE agent_models;
DROP TABLE kept_sessions;
ALTER TABLE session_log DROP COLUMN agent;
ALTER TABLE sessions DROP COLUMN agent;
