-- What users of the web chat call a topic, and up to which of its messages they have put it away.
CREATE TABLE web_topics (
  chat_jid         text COLLATE "C" NOT NULL,
  topic            text COLLATE "C" NOT NULL,
  title            text COLLATE "C" NOT NULL DEFAULT '',
  archived_through bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (chat_jid, topic)
);
