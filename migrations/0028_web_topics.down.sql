DROP TABLE web_topics;
