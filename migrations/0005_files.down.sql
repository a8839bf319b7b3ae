DROP INDEX messages_pending;
