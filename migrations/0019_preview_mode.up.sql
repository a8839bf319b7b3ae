-- preview: how a turn's chat shows it before it answers, as the group was configured when a run got the turn; '' for a turn that no
-- run has had, or that answers no chat.
ALTER TABLE turns ADD COLUMN preview TEXT NOT NULL DEFAULT ''
  CHECK (preview IN ('', 'live', 'status', 'off'));
