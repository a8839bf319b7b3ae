ALTER TABLE processes DROP COLUMN detail;
ALTER TABLE processes DROP COLUMN connection;
ALTER TABLE processes DROP COLUMN version;
