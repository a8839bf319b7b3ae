-- Rows whose attachments are still to be downloaded, by the adapter that does it.
CREATE INDEX messages_pending ON messages (platform, id) WHERE pending_files > 0;
