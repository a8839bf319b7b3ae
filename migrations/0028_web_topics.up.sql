-- What users of the web chat call a topic, and up to which of its messages they have put it away.
CREATE TABLE web_topics (
  chat_jid         TEXT NOT NULL,
  topic            TEXT NOT NULL,
  title            TEXT NOT NULL DEFAULT '',
  archived_through INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (chat_jid, topic)
) STRICT, WITHOUT ROWID;
