DROP INDEX previews_open;
ALTER TABLE previews DROP COLUMN ending;
ALTER TABLE previews DROP COLUMN reply_to;
