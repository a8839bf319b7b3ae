DROP TABLE system_messages;
DROP TABLE turns;
DROP TABLE session_log;
DROP TABLE runs;
DROP TABLE sessions;
DROP TABLE cursors;
DROP TABLE router_state;
