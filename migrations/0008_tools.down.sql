DROP TABLE poll_refs;
DROP TABLE poll_votes;
DROP INDEX polls_folder;
DROP INDEX polls_ending;
DROP INDEX polls_open;
DROP INDEX polls_due;
ALTER TABLE polls DROP COLUMN result;
ALTER TABLE polls DROP COLUMN end_pending;
DROP TABLE tool_calls;
