-- Users who administer a chat, as its platform said with their last message or press there. Adapters keep them.
CREATE TABLE chat_admins (
  chat_jid TEXT NOT NULL,
  sender   TEXT NOT NULL,
  PRIMARY KEY (chat_jid, sender)
);
