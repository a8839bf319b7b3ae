DROP TABLE chat_reply_state;
DROP TABLE registered_groups;
DROP TABLE routes;
