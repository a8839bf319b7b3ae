DROP TABLE spend;
DROP INDEX turns_answered_with;
ALTER TABLE turns DROP COLUMN answered_with;
