package tools

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// engChat is answered by acme/eng.
const engChat = "telegram:-9"

// configure sets the configuration of a group, and a route to acme/eng.
func (f *fixture) configure(folder, config string) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error {
		if err := storetest.SetConfig(tx, folder, []byte(config)); err != nil {
			return err
		}
		return tx.PutRoute(&msg.Route{Match: "chat_jid=" + engChat, Target: "acme/eng"})
	})
}

// TestAccess_OfAGroupBelow_IsAskedForTheTurnsSender has each tool by which an agent acts on another group than its own.
func TestAccess_OfAGroupBelow_IsAskedForTheTurnsSender(t *testing.T) {
	f := parallel(t)
	f.configure("acme/eng", `{"access":["telegram:1"]}`)
	theirs := f.ask("acme/eng", engChat, "a secret of eng")
	reminder := f.reminder("acme/eng", chat)
	poll := f.poll("acme/eng", chat, "secret?")
	calls := map[string]string{
		"delegate":         `{"folder":"acme/eng","prompt":"fix it"}`,
		"inject_message":   `{"chat_jid":"` + engChat + `","content":"fix it"}`,
		"inject_message 2": `{"chat_jid":"group:acme/eng","content":"fix it"}`,
		"broadcast":        `{"text":"hi","chats":["` + engChat + `"]}`,
		"reset_session":    `{"groupFolder":"acme/eng"}`,
		"engage":           `{"jid":"` + engChat + `","topic":""}`,
		"disengage":        `{"jid":"` + engChat + `","topic":""}`,
		"get_thread":       fmt.Sprintf(`{"message_id":%d}`, theirs.ID),
		"get_attachment":   fmt.Sprintf(`{"message_id":%d,"n":1}`, theirs.ID),
		"reminder_update":  fmt.Sprintf(`{"id":%d,"body":"x"}`, reminder),
		"reminder_cancel":  fmt.Sprintf(`{"id":%d}`, reminder),
		"poll_close":       fmt.Sprintf(`{"poll_id":%d}`, poll),
	}
	before, _ := f.st.LastMessageID(t.Context())
	for call, arguments := range calls {
		tool, _, _ := strings.Cut(call, " ")
		if text, isError := f.call(tool, arguments); !isError || !strings.Contains(text, "telegram:7, for whom you work") && !strings.Contains(text, "in reach") {
			t.Errorf("%s: %v %q", call, isError, text)
		}
	}
	f.shows("reminder_list", `{}`, not(fmt.Sprintf(`"id":%d`, reminder)))
	if after, _ := f.st.LastMessageID(t.Context()); after != before {
		t.Errorf("%d rows were written", after-before)
	}
	f.services.Operators = map[string]bool{"telegram:7": true}
	f.works("delegate", calls["delegate"])
	f.works("inject_message", calls["inject_message"])
	if rows := f.forwarded(); len(rows) != 2 || rows[0].OnBehalfOf != "telegram:7" || rows[1].OnBehalfOf != "telegram:7" {
		t.Errorf("rows %+v", rows)
	}
}

// TestAccess_OfADelegatedTurn_IsAskedForTheFirstSender: groups in between do not matter.
func TestAccess_OfADelegatedTurn_IsAskedForTheFirstSender(t *testing.T) {
	f := parallel(t)
	f.configure("acme/eng", `{"access":["telegram:1"]}`)
	for payer, admitted := range map[string]bool{"telegram:1": true, "telegram:66": false} {
		from := &msg.ReturnAddress{Kind: msg.Delegation, TurnID: f.turn.ID, RootTurnID: f.turn.ID, Depth: 1, Folder: folder, ChatJID: chat}
		m := &msg.Message{ChatJID: "group:acme", Content: "go on", Sender: "agent:acme", ForwardedFrom: from, OnBehalfOf: payer}
		_, access := f.startTurn(m, &msg.Turn{Kind: msg.Delegated, Folder: folder, ChatJID: chat, Depth: 1, RootTurnID: f.turn.ID})
		if text, isError := f.callAs(access, "delegate", `{"folder":"acme/eng","prompt":"fix it"}`); isError == admitted {
			t.Errorf("for %s: %q", payer, text)
		}
	}
	escalating := &msg.Message{ChatJID: "telegram:-8", Content: "hi", Sender: "telegram:66"}
	_, access := f.startTurn(escalating, &msg.Turn{Kind: msg.Conversation, Folder: "acme/eng/ops", ChatJID: "telegram:-8"})
	f.refusedAs(access, "escalate", `{"prompt":"may I?"}`, "group acme/eng is only for certain users")
}

// TestAccess_TurnOfSeveralSenders_IsAskedForEach: any of them may have made the agent act.
func TestAccess_TurnOfSeveralSenders_IsAskedForEach(t *testing.T) {
	f := parallel(t)
	f.configure("acme/eng", `{"access":["telegram:7"]}`)
	other := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "delegate to eng", Sender: "telegram:66"}
	f.put(other)
	f.write(func(tx *store.Tx) error {
		return tx.Decide(other.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: folder, TurnID: f.turn.ID}, 3)
	})
	f.refused("delegate", `{"folder":"acme/eng","prompt":"fix it"}`, "telegram:66, for whom you work, is none of them")
}

func TestRate_OfTheOtherGroup_IsThatOfTheTurnsSender(t *testing.T) {
	f := parallel(t)
	f.configure("acme/eng", `{"rate":1}`)
	f.clock = time.UnixMilli(4)
	f.ask("acme/eng", engChat, "one turn") // of telegram:7
	for tool, arguments := range map[string]string{
		"delegate": `{"folder":"acme/eng","prompt":"fix it"}`, "inject_message": `{"chat_jid":"` + engChat + `","content":"fix it"}`,
	} {
		f.refused(tool, arguments, "has had the 1 turns an hour that group acme/eng gives each user")
	}
	f.clock = f.clock.Add(time.Hour)
	f.works("delegate", `{"folder":"acme/eng","prompt":"fix it"}`)
}

func TestInjectMessage_BareToken_NeedsTheSendersAuthority(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		chat, config string
		operator     bool
		refused      bool
	}{
		"own chat":                              {chat: chat, config: `{}`},
		"own chat, pins are for operators":      {chat: chat, config: `{"pin":"operators"}`, refused: true},
		"another chat":                          {chat: engChat, config: `{}`, refused: true},
		"another chat, for an operator":         {chat: engChat, config: `{}`, operator: true},
		"operators' pins, for one of operators": {chat: chat, config: `{"pin":"operators"}`, operator: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := parallel(t)
			f.configure(folder, tc.config)
			f.services.Operators = map[string]bool{"telegram:7": tc.operator}
			for _, token := range []string{"#evil", "#"} {
				arguments := fmt.Sprintf(`{"chat_jid":%q,"content":%q}`, tc.chat, token)
				if tc.refused {
					f.refused("inject_message", arguments, "pins the chat for all its users")
				} else {
					f.works("inject_message", arguments)
				}
			}
			f.works("inject_message", fmt.Sprintf(`{"chat_jid":%q,"content":"#deploy go on"}`, tc.chat))
		})
	}
}

// TestReminderCreate_Prompt_HasAPayerAndADistance is about the limits of prompts that plan prompts.
func TestReminderCreate_Prompt_HasAPayerAndADistance(t *testing.T) {
	f := parallel(t)
	prompt := func(seconds int) string {
		return fmt.Sprintf(`{"kind":"prompt","body":"again","due_at":%q}`, f.clock.Add(time.Duration(seconds)*time.Second).UTC().Format(time.RFC3339))
	}
	f.works("reminder_create", prompt(1))
	f.refused("reminder_create", prompt(1), "the first free time is 2023-11-14T22:14:21Z")
	f.refused("reminder_create", prompt(60), "the first free time is 2023-11-14T22:14:21Z")
	f.works("reminder_create", prompt(61))
	f.works("reminder_create", strings.Replace(prompt(1), "prompt", "text", 1)) // no turn
	made := f.ownReminders()[1]
	if made.Payer() != "telegram:7" || made.RootTurnID != f.turn.ID || made.Depth != 0 {
		t.Errorf("%+v", made)
	}

	// The turn of a reminder plans the next one a minute later, and at most so often.
	due := &msg.Message{ChatJID: "group:acme", Content: "again", Sender: "reminder:1", Source: msg.SourceReminder, OnBehalfOf: "telegram:7"}
	turn, access := f.startTurn(due, &msg.Turn{Kind: msg.Broadcast, Folder: folder, ChatJID: chat, Topic: "#plan", Depth: 1, RootTurnID: f.turn.ID})
	f.refusedAs(access, "reminder_create", prompt(1), "the first free time is 2023-11-14T22:15:21Z")
	f.worksAs(access, "reminder_create", prompt(121))
	all := f.ownReminders()
	if last := all[len(all)-1]; last.Payer() != "telegram:7" || last.Depth != 1 || last.RootTurnID != f.turn.ID {
		t.Errorf("made by turn %d: %+v", turn.ID, last)
	}
	deepest := &msg.Message{ChatJID: "group:acme", Content: "again", Sender: "reminder:1", OnBehalfOf: "telegram:7"}
	_, access = f.startTurn(deepest, &msg.Turn{Kind: msg.Broadcast, Folder: folder, ChatJID: chat, Topic: "#deep", Depth: msg.MaxDelegationDepth, RootTurnID: f.turn.ID})
	for _, arguments := range []string{prompt(900), `{"kind":"prompt","body":"again","cron":"0 * * * *"}`} {
		f.refusedAs(access, "reminder_create", arguments, "8 levels deep")
	}
	if n := f.notices(); n != 1 {
		t.Errorf("%d notices", n)
	}
}

// TestReminderUpdate_ByAnother_TheyPay: else a member's words would fire with an operator's authority.
func TestReminderUpdate_ByAnother_TheyPay(t *testing.T) {
	f := parallel(t)
	f.write(func(tx *store.Tx) error {
		r, err := factrows.Reminder(t.Context(), tx.Reader, f.ownReminder)
		r.CreatedBy, r.UpdatedBy, r.UpdatedAt = "telegram:1", "telegram:1", 5
		if err == nil {
			err = rows.UpdateReminder(tx, r)
		}
		return err
	})
	f.works("reminder_update", `{"id":OWN_REMINDER,"body":"delete everything"}`)
	if r := f.ownReminders()[0]; r.Payer() != "telegram:7" || r.RootTurnID != f.turn.ID {
		t.Errorf("%+v", r)
	}
}

// A child at work for its parent answers into the parent's chat, and can do nothing else there.
func TestDelegatedTurn_ChatOfItsParent_IsOutOfReach(t *testing.T) {
	f := parallel(t)
	m := &msg.Message{ChatJID: "group:acme/eng", Direction: msg.In, Content: "look into it", Sender: "agent:acme", ForwardedFrom: &msg.ReturnAddress{
		Kind: msg.Delegation, TurnID: f.turn.ID, RootTurnID: f.turn.ID, Depth: 1, Folder: folder, ChatJID: chat,
	}}
	turn, child := f.startTurn(m, &msg.Turn{Kind: msg.Delegated, Folder: "acme/eng", ChatJID: chat, Depth: 1, RootTurnID: f.turn.ID})
	child.Begin(turn.ID, &groupconfig.Config{AssistantName: "ari", Observe: "all"})
	for tool, arguments := range map[string]string{
		"inject_message": `{"chat_jid":"OWN_CHAT","content":"hi"}`, "get_thread": `{"message_id":OWN_MESSAGE}`, "broadcast": `{"text":"hi","chats":["OWN_CHAT"]}`,
	} {
		f.refusedAs(child, tool, arguments, "reach")
	}
	if text := f.worksAs(child, "search_messages", `{"text":"deploys"}`); strings.Contains(text, "who deploys") {
		t.Errorf("found: %s", text)
	}
	f.worksAs(child, "send_message", `{"text":"found it"}`)
}

func TestSearchMessages_WithdrawnAndRefusedRows_AreLeftOut(t *testing.T) {
	f := parallel(t)
	refused := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "needle of a stranger", Sender: "telegram:66", Timestamp: 1, ReceivedAt: 2}
	f.put(refused,
		&msg.Message{ChatJID: chat, PlatformID: "p2", Direction: msg.In, Content: "needle that is deleted", Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2},
		&msg.Message{ChatJID: chat, TargetID: "p2", Verb: msg.VerbDelete, Direction: msg.In, Sender: "telegram:7", Timestamp: 3, ReceivedAt: 3},
		&msg.Message{ChatJID: chat, Direction: msg.In, Content: "needle that stays", Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2})
	f.write(func(tx *store.Tx) error {
		return tx.Decide(refused.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoAccess}, 3)
	})
	if found := f.works("search_messages", `{"text":"needle"}`); strings.Count(found, "needle") != 1 || !strings.Contains(found, "stays") {
		t.Errorf("found %s", found)
	}
}

// A run of another group calls every tool with the example that works for acme: whether it is refused or not, the
// rows of acme stay as they were, and nothing of them comes back.
func TestTools_RunOfAnotherGroup_LearnsAndChangesNothing(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		f := fixtureFor(t, tool)
		f.write(func(tx *store.Tx) error {
			_, err := tx.PutGroup(&msg.Group{Folder: "third", Name: "third", CreatedAt: 1, Config: []byte("{}")})
			return err
		})
		f.route("chat_jid=telegram:-4", "third")
		_, _, other := f.startRun("third", "telegram:-4", "hello there")
		before := f.stateOfAcme()
		text, isError := f.callAs(other, tool.Name, tool.example())
		if after := f.stateOfAcme(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		for _, secret := range []string{"who deploys?", "mine?", "acme"} {
			if !isError && strings.Contains(text, secret) {
				t.Errorf("it returns %q: %s", secret, text)
			}
		}
	})
}

// stateOfAcme are the rows of the group acme, of those below it, and of its chat.
func (f *fixture) stateOfAcme() string {
	f.t.Helper()
	db := f.db()
	var state strings.Builder
	for _, rows := range []string{
		`SELECT 'message ' || json_array(id, direction, kind, content, out_state, target_id) FROM messages WHERE chat_jid = '` + chat + `' OR chat_jid GLOB '*:acme*' ORDER BY id`,
		`SELECT 'turn ' || json_array(id, state) FROM turns WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'session ' || json_array(group_folder, topic, session_id) FROM sessions WHERE group_folder GLOB 'acme*' ORDER BY group_folder, topic`,
		`SELECT 'poll ' || json_array(id, state, closed_at) FROM polls WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'reminder ' || json_array(id, state, body, cron, next_slot) FROM reminders WHERE folder GLOB 'acme*' ORDER BY id`,
		`SELECT 'fork ' || json_array(topic, ended_at) FROM forks WHERE chat_jid = '` + chat + `' ORDER BY topic`,
		`SELECT 'object ' || json_array(object_id, active_until) FROM context_objects WHERE chat_id = '` + chat + `' ORDER BY object_id`,
	} {
		var all sql.NullString
		if err := db.QueryRow("SELECT group_concat(line, char(10)) FROM (" + strings.Replace(rows, " FROM", " AS line FROM", 1) + ")").Scan(&all); err != nil {
			f.t.Fatal(err)
		}
		state.WriteString(all.String + "\n")
	}
	return state.String()
}
