package tools

// example has arguments that a tool takes in the fixture, and others that name something of another group and must be
// refused. See fill.
type example struct {
	works   string
	foreign []string
}

func (t Tool) example() string { return examples()[t.Name].works }

// examples has a row for each tool, in the order of the registry.
func examples() map[string]example {
	return map[string]example{
		"send_message":   {`{"text":"still at work"}`, nil},
		"edit_message":   {`{"message_id":OWN_ANSWER,"text":"done at **noon**"}`, []string{`{"message_id":FOREIGN_MESSAGE,"text":"x"}`, `{"message_id":FOREIGN_ANSWER,"text":"x"}`}},
		"send_file":      {`{"path":"out/report.txt","caption":"the **report**"}`, nil},
		"react":          {`{"message_id":OWN_ANSWER,"emoji":"👍"}`, []string{`{"message_id":FOREIGN_MESSAGE,"emoji":"👍"}`, `{"message_id":FOREIGN_ANSWER,"emoji":"👍"}`}},
		"get_attachment": {`{"message_id":OWN_FILE}`, []string{`{"message_id":FOREIGN_MESSAGE}`, `{"message_id":FOREIGN_ANSWER,"n":1}`}},
		"ask_user":       {`{"question":"Which environment?","options":["staging","production"]}`, nil},
		"poll_create":    {`{"question":"Where do we eat?","options":["Pizza","Sushi"]}`, nil},
		"poll_close":     {`{"poll_id":OWN_POLL}`, []string{`{"poll_id":FOREIGN_POLL}`}},
		"poll_list":      {`{}`, nil},
		"reset_session": {`{"groupFolder":"acme"}`, []string{`{"groupFolder":"other"}`, `{"groupFolder":"acmeother"}`,
			`{"groupFolder":"other","topic":"#deploy"}`}},
		"inspect_session": {`{}`, nil},
		"search_messages": {`{"text":"deploys"}`, nil},
		"get_thread":      {`{"message_id":OWN_MESSAGE}`, []string{`{"message_id":FOREIGN_MESSAGE}`, `{"message_id":999999999}`}},
		"broadcast": {`{"text":"the server is back","chats":["OWN_CHAT"]}`, []string{`{"text":"hi","chats":["FOREIGN_CHAT"]}`,
			`{"text":"hi","chats":["OWN_CHAT","FOREIGN_CHAT"]}`}},
		"reminder_create": {`{"kind":"text","body":"stand-up in 5 minutes","cron":"25 9 * * mon-fri","time_zone":"Europe/Berlin"}`, nil},
		"reminder_list":   {`{}`, nil},
		"reminder_update": {`{"id":OWN_REMINDER,"body":"stand-up in 10 minutes"}`, []string{`{"id":FOREIGN_REMINDER,"body":"x"}`}},
		"reminder_cancel": {`{"id":OWN_REMINDER}`, []string{`{"id":FOREIGN_REMINDER}`}},
		"list_active_context_objects": {`{"allowed_kinds":["poll","media.image"],"max_results":3}`, []string{`{"chat_id":"FOREIGN_CHAT"}`, `{"current_message_id":FOREIGN_MESSAGE}`,
			`{"reply_to_message_id":FOREIGN_MESSAGE}`}},
		"resolve_reference_target": {`{"kind":"poll","ordinal":-1}`, []string{`{"reply_to_message_id":FOREIGN_MESSAGE}`}},
		"activate_context_object":  {`{"event":"url_discussed","kind":"link","url":"https://example.org/tides","label":"Tides"}`, []string{`{"event":"article_summarized","kind":"article","source_message_id":FOREIGN_MESSAGE}`}},
		delegateName:               {`{"folder":"acme/eng","prompt":"find out why the build is red"}`, []string{`{"folder":"other","prompt":"hi"}`, `{"folder":"acmeother","prompt":"hi"}`}},
		escalateName:               {`{"prompt":"may we deploy on a Friday?"}`, nil},
		injectName: {`{"chat_jid":"OWN_CHAT","content":"#deploy go on with step 2"}`, []string{`{"chat_jid":"FOREIGN_CHAT","content":"hi"}`, `{"chat_jid":"group:other","content":"hi"}`,
			`{"chat_jid":"web:other","content":"hi"}`}},
		"engage":     {`{"jid":"OWN_CHAT","topic":""}`, []string{`{"jid":"FOREIGN_CHAT","topic":""}`}},
		"disengage":  {`{"jid":"OWN_CHAT","topic":""}`, []string{`{"jid":"FOREIGN_CHAT","topic":""}`}},
		"fork_topic": {`{"off_message_id":OWN_MESSAGE}`, []string{`{"off_message_id":FOREIGN_MESSAGE}`}},
	}
}
