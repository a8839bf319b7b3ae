DROP TABLE topic_threads;
DROP TABLE platform_threads;
DROP TABLE chat_aliases;
DROP TABLE chats;
DROP TABLE deliveries;
DROP TABLE messages;
DROP TABLE schema_floor;
