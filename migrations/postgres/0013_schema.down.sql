-- Everything: there is no older schema for Postgres.
DROP TABLE schema_floor,
  messages,
  chat_aliases,
  platform_threads,
  topic_threads,
  routes,
  router_state,
  cursors,
  runs,
  session_log,
  onboarding_requests,
  reminders,
  reminder_slots,
  polls,
  audit,
  daemons,
  counters,
  deliveries,
  chats,
  registered_groups,
  chat_reply_state,
  sessions,
  turns,
  system_messages,
  stops,
  group_failures,
  turn_progress,
  previews,
  asks,
  context_objects,
  tool_calls,
  poll_votes,
  poll_refs,
  broadcasts,
  forks,
  search_state,
  search_deleted,
  spend,
  kept_sessions,
  agent_models,
  message_search;
DROP FUNCTION max(bigint, bigint);
DROP FUNCTION min(bigint, bigint);
DROP FUNCTION instr(text, text);
DROP FUNCTION glob(text, text);
DROP FUNCTION json_each(text);
DROP FUNCTION json_array_length(text);
DROP FUNCTION json_type(text);
DROP FUNCTION json_extract(text, text);
DROP FUNCTION json_valid(text);
DROP FUNCTION number_delivery();
DROP FUNCTION count_routing();
DROP FUNCTION unindex_message();
