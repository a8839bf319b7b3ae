DROP TABLE daemons;
DROP TABLE audit;
DROP TABLE polls;
DROP TABLE reminder_slots;
DROP TABLE reminders;
DROP TABLE context_objects;
DROP TABLE onboarding_requests;
