DROP INDEX asks_allow;
ALTER TABLE asks DROP COLUMN rule_at;
ALTER TABLE asks DROP COLUMN rule_id;
ALTER TABLE asks DROP COLUMN always;
ALTER TABLE asks DROP COLUMN allow;
ALTER TABLE asks DROP COLUMN tool;
DROP TABLE permission_rules;
