-- sender_name, title and sample are texts of strangers. kind: the chat's. thread_id: where the chat asked, and is
-- answered. reason: an operator's, for a rejection. A pending request with a folder is being approved into it.
ALTER TABLE onboarding_requests ADD COLUMN sender_name TEXT NOT NULL DEFAULT '';
ALTER TABLE onboarding_requests ADD COLUMN kind TEXT NOT NULL DEFAULT 'group';
ALTER TABLE onboarding_requests ADD COLUMN thread_id TEXT NOT NULL DEFAULT '';
ALTER TABLE onboarding_requests ADD COLUMN reason TEXT NOT NULL DEFAULT '';
CREATE INDEX onboarding_chat ON onboarding_requests (chat_jid, created_at);
CREATE INDEX onboarding_sender ON onboarding_requests (sender, created_at);
CREATE INDEX onboarding_created ON onboarding_requests (created_at);
