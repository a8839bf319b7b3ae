DROP TABLE chat_admins;
