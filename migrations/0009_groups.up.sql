-- The rows of one group, such as an album: what one of them says holds for all.
CREATE INDEX messages_groups ON messages (chat_jid, group_key, id) WHERE group_key <> '';

-- The outbound rows that were not delivered, by age.
CREATE INDEX messages_lost ON messages (received_at, id) WHERE out_state IN ('failed', 'ambiguous');
