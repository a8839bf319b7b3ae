-- reply_to: the message that the preview answers. ending: it is to be removed, whatever its turn does.
ALTER TABLE previews ADD COLUMN reply_to TEXT NOT NULL DEFAULT '';
ALTER TABLE previews ADD COLUMN ending INTEGER NOT NULL DEFAULT 0 CHECK (ending IN (0, 1));
CREATE INDEX previews_open ON previews (chat_jid) WHERE state = 'open';
