-- on_behalf_of: the sender whose request an agent worked on when it wrote the row, or made the reminder whose prompt the row is; '' for a
-- row that its sender wrote. That sender pays for the turns of the row, and what the row may do is asked for that sender.
ALTER TABLE messages ADD COLUMN on_behalf_of TEXT NOT NULL DEFAULT '';
-- The chain of turns in which a reminder was made: its prompts are turns one level deeper.
ALTER TABLE reminders ADD COLUMN root_turn_id INTEGER;
ALTER TABLE reminders ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
