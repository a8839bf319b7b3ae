ALTER TABLE polls ADD COLUMN checked_result TEXT CHECK (json_valid(checked_result));
UPDATE polls SET checked_result = result WHERE result IS NOT NULL;
ALTER TABLE polls DROP COLUMN result;
ALTER TABLE polls RENAME COLUMN checked_result TO result;
