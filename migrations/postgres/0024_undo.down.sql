DROP TABLE undos;
DROP INDEX turns_undone;
ALTER TABLE turns DROP COLUMN undone_at;
ALTER TABLE turns DROP COLUMN session_after;
ALTER TABLE turns DROP COLUMN session_before;
