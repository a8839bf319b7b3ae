DROP INDEX onboarding_created;
DROP INDEX onboarding_sender;
DROP INDEX onboarding_chat;
ALTER TABLE onboarding_requests DROP COLUMN reason;
ALTER TABLE onboarding_requests DROP COLUMN thread_id;
ALTER TABLE onboarding_requests DROP COLUMN kind;
ALTER TABLE onboarding_requests DROP COLUMN sender_name;
