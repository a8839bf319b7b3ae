-- In SQLite before 3.45, such as Debian 12's, json_valid(NULL) is 0: there a poll without a result broke its CHECK, and a dump
-- loaded without it.
ALTER TABLE polls ADD COLUMN checked_result TEXT CHECK (checked_result IS NULL OR json_valid(checked_result));
UPDATE polls SET checked_result = result WHERE result IS NOT NULL;
ALTER TABLE polls DROP COLUMN result;
ALTER TABLE polls RENAME COLUMN checked_result TO result;
