ALTER TABLE reminders DROP COLUMN depth;
ALTER TABLE reminders DROP COLUMN root_turn_id;
ALTER TABLE messages DROP COLUMN on_behalf_of;
