-- At least one row in each table that is copied, with what the two kinds of database might treat differently.
INSERT INTO registered_groups (folder, name, created_at, config) VALUES ('main', 'Main', 1, '{"agent":"claude","n":1.50}'), ('acme/eng', 'Ünïcode 🦊', 2, '{}');
INSERT INTO chats (jid, platform, kind, title, sticky_topic, sticky_group, sticky_at, last_seen_at) VALUES
  ('telegram:1', 'telegram', 'group', 'a', '', NULL, 5, 9007199254740993), ('web:main', 'web', 'web', 'b', NULL, 'main', NULL, 0);
INSERT INTO messages (chat_jid, platform_id, direction, kind, sender, sender_name, verb, content, attachments, timestamp, received_at) VALUES
  ('telegram:1', '1', 'in', 'message', 'telegram:7', 'Zoë', 'mention', 'undecided', '[{"name":"a.png","size":12}]', 1, 2),
  ('telegram:1', '2', 'in', 'message', 'telegram:7', '', 'message', 'NUL ' || char(0) || ' and ' || CAST(x'ff41' AS TEXT) || ' bytes', NULL, -1, 9223372036854775807),
  ('telegram:1', NULL, 'in', 'message', '', '', 'message', 'tab' || char(9) || ' backslash \N \. quote '' newline' || char(10) || char(13) || ' end', NULL, 3, 3),
  ('web:main', 'ß', 'in', 'file', '', '', 'message', '', '[]', 4, 4);
INSERT INTO messages (chat_jid, direction, content, timestamp, received_at, out_state, derived_from) VALUES
  ('telegram:1', 'out', 'queued', 5, 5, 'queued', 1), ('telegram:1', 'out', 'sending', 6, 6, 'sending', NULL), ('telegram:1', 'out', 'sent', 7, 7, 'sent', 5);
UPDATE messages SET disposition = 'routed', reason = 'route', routed_to = 'main', decided_at = 8, decision_seq = 3 WHERE id = 2;
UPDATE messages SET disposition = 'onboarding', reason = 'awaiting_approval', decided_at = 8, decision_seq = 4, forwarded_from = '{"a":"\u0000"}' WHERE id = 3;
INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('telegram:1', 'in', 1, 1);
DELETE FROM messages WHERE id = 8; -- the next id is 9
INSERT INTO chat_aliases (old_jid, new_jid, moving) VALUES ('telegram:0', 'telegram:1', 1);
INSERT INTO platform_threads (chat_jid, thread_id, kind) VALUES ('telegram:1', '5', 'topic');
INSERT INTO topic_threads (chat_jid, thread_id, topic) VALUES ('telegram:1', '5', 'work');
INSERT INTO routes (seq, match, target, impulse_config) VALUES (-1, 'platform=telegram', 'main', NULL), (2, '', 'acme/eng', '{"x":1}');
INSERT INTO router_state (key, value) VALUES ('decision_seq', 4), ('demo_agent', 1);
INSERT INTO cursors (daemon, key, value) VALUES ('gated', 'messages', '4'), ('teled', 'updates', '123456789012');
INSERT INTO runs (folder, topic, chat_jid, runtime, pid, pid_start, label, started_at, closed_at, ended_at, owner) VALUES
  ('main', '', 'telegram:1', 'process', 1, 2, 'l', 1, 2, 3, 0), ('acme/eng', 't', 'telegram:1', 'docker', NULL, NULL, NULL, 1, NULL, NULL, 9);
INSERT INTO session_log (run_id, started_at, ended_at, folder, topic, session_id) VALUES (1, 1, 3, 'main', '', 's'), (NULL, 1, NULL, 'main', '', '');
INSERT INTO turns (run_id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, cost_usd, created_at, started_at, ended_at) VALUES
  (1, 'conversation', 'main', 'telegram:1', '', 2, 'chat', 5, 'done', 0.1, 1, 2, 3), (2, 'conversation', 'acme/eng', 'web:main', 't', 4, 'web', 5, 'running', 1e300, 1, 2, NULL),
  (NULL, 'delegated', 'main', 'web:main', 't', 4, 'web', 5, 'queued', NULL, 1, NULL, NULL);
UPDATE turns SET root_turn_id = 3 WHERE id = 2; -- a later row
INSERT INTO turn_progress (turn_id, state, text, updated_at) VALUES (2, 'running', 'working', 2);
INSERT INTO previews (turn_id, chat_jid, state, created_at, updated_at) VALUES (2, 'telegram:1', 'open', 1, 1);
INSERT INTO asks (turn_id, ask_id, message_id, question, options, state, created_at, expires_at) VALUES (2, 'a', 5, '?', '["yes","no"]', 'open', 1, 2);
INSERT INTO asks (turn_id, ask_id, question, options, payload_hash, state, option, answered_by, created_at, expires_at, ended_at, tool, allow, always, rule_id, rule_at) VALUES
  (2, 'b', '?', '["yes","no"]', 'h', 'answered', 'yes', 'telegram:7', 1, 2, 1, 'Bash', 'yes', 0, 1, 1);
INSERT INTO permission_rules (folder, chat_jid, tool, payload_hash, text_hash, text, author, created_at, used, used_at) VALUES ('main', 'telegram:1', 'Bash', 'h', 't', '?', 'telegram:7', 1, 1, 1);
INSERT INTO system_messages (folder, origin, event, turn_id, created_at) VALUES ('main', 'gateway', 'new_session', 2, 1);
UPDATE turns SET session_before = 's', session_after = 't', undone_at = 4 WHERE id = 1;
INSERT INTO undos (turn_id, redo, rest, folder, topic, message_id, by, state, answer, created_at, ended_at) VALUES
  (1, 0, 0, 'main', '', 4, 'telegram:7', 'done', 'Taken back', 1, 4), (1, 1, 1, 'main', '', NULL, 'cli', 'open', '', 5, NULL);
INSERT INTO stops (chat_jid, topic, before_message, through_turn, created_at, sender) VALUES ('telegram:1', NULL, 3, 2, 1, NULL);
INSERT INTO group_failures (folder, problem, count, since) VALUES ('main', 'key', 3, 1);
INSERT INTO onboarding_requests (code, chat_jid, state, created_at) VALUES ('abc', 'telegram:2', 'pending', 1);
INSERT INTO chat_admins VALUES ('telegram:1', 'telegram:5');
INSERT INTO hook_refusals VALUES (1, 'hook:acme.k3q5xw2m7a4b6c8d', 5, 'the signature is wrong');
INSERT INTO push_subscriptions VALUES (1, 'web:operator', 'https://push.example/1', 'BA', 'AA', 'Firefox on Android', 'answer problem', 5, 6, 0, '');
INSERT INTO push_notices VALUES (1, 'turn1', 6);
INSERT INTO reminders (folder, chat_jid, kind, body, cron, state, created_at, updated_at) VALUES ('main', 'telegram:1', 'text', 'b', '* * * * *', 'active', 1, 1);
INSERT INTO reminder_slots (reminder_id, slot, message_id) VALUES (1, 60000, 5), (1, 120000, NULL);
INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) VALUES (7, 'main', 'telegram:1', '?', '["a","b"]', 'open', 1);
INSERT INTO poll_votes (poll_id, voter, options, at) VALUES (1, 'telegram:7', '[0]', 1);
INSERT INTO poll_refs (daemon, ref, message_id) VALUES ('teled', 'r', 7);
INSERT INTO audit (at, who, what, detail) VALUES (1, 'cli', 'route', '');
INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES ('gated', 1, 2, 'stopped');
INSERT INTO counters (name, value) VALUES ('writer/0000000000001/X', 5), ('media/20260101', 77);
INSERT INTO deliveries (message_id, part, state, attempts) VALUES (5, 0, 'queued', 0), (6, 0, 'sending', 1), (7, 0, 'sent', 1), (7, 1, 'sent', 1);
INSERT INTO chat_reply_state (jid, topic, last_reply_id, engaged_until, engaged_folder, engaged_at) VALUES ('telegram:1', '', 7, 9, 'main', 1);
INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES ('main', '', 's', 1);
INSERT INTO kept_sessions (group_folder, topic, agent, session_id, updated_at) VALUES ('main', '', 'codex', 's', 1);
INSERT INTO agent_models (folder, agent, models, updated_at) VALUES ('main', '', '[]', 1);
INSERT INTO context_objects (chat_id, object_id, kind, created_at, last_touched_at, ttl_class, active_until) VALUES ('telegram:1', 'o', 'file', 1, 1, 'short', 5);
INSERT INTO tool_calls (turn_id, call, tool, result, created_at) VALUES (2, 'c', 'send', '{"ok":true}', 1);
INSERT INTO broadcasts (key, text, created_by, chats, created_at) VALUES ('k', 't', 'cli', '["telegram:1"]', 1);
INSERT INTO forks (chat_jid, topic, folder, thread_id, own_thread, message_id, created_at) VALUES ('telegram:1', 't', 'main', '5', 1, 1, 1);
INSERT INTO spend (day, folder, chat_jid, turns, cost_usd) VALUES ('2026-11-23', 'main', 'telegram:1', 1, 0.30000000000000004);
INSERT INTO transcripts (message_id, n, turn_id, folder, state, updated_at) VALUES (4, 1, 2, 'main', 'wanted', 1);
DELETE FROM egress_rules WHERE id < 20; -- of those that the schema comes with
INSERT INTO egress_rules (seq, folder, host, method, path, action, secret, author, created_at) VALUES (-10, 'main', 'api.github.com', 'POST', '/repos/', 'inject', 'github', 'cli', 1);
INSERT INTO egress_receipts (at, run_id, turn_id, folder, method, host, port, path, state, ended_at) VALUES (1, 1, 2, 'main', 'GET', 'example.com', 443, '/?q', 'sent', 2), (1, 1, 2, 'main', 'POST', 'example.com', 443, '/', 'asked', 0);
INSERT INTO search_deleted (id, content) VALUES (99, 'x');
INSERT INTO processes (daemon, place, addr, since, until) VALUES ('gated', 'h:/d', '', 1, 2);
INSERT INTO leases (name, process, since) VALUES ('gated', 1, 1);
UPDATE search_state SET indexed = 0;
INSERT INTO alerts (key, text, fix, since, seen_at, missed_at, ended_at) VALUES ('daemon-gone teled', 'gone', 'start it', 1, 2, 3, 3);
INSERT INTO alert_notices (operator, alert_id, ended, message_id, at) VALUES ('telegram:1', 1, 0, 7, 2);
INSERT INTO web_topics VALUES ('web:main', '#a', 'Plans', 7);
