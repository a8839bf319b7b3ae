package tools

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestActivateContextObject_EachEvent_IsListedAndResolved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ event, kind, reason string }{
		{"article_summarized", "article", "activated_by_summary"}, {"summary_reused", "summary", "activated_by_summary"},
		{"url_discussed", "link", "activated_by_url_discussion"}, {"media_inspected", "media.image", "activated_by_media_inspection"},
		{"followup_attached", "message", "activated_by_followup"},
	} {
		f := newFixture(t)
		f.works("activate_context_object", `{"event":"`+c.event+`","kind":"`+c.kind+`","source_message_id":OWN_MESSAGE,"label":"It"}`)
		id := f.fill(c.kind + ":OWN_MESSAGE")
		f.shows("list_active_context_objects", `{}`, `"`+id+`"`, c.reason, `"owned_by_sender":true`)
		got := f.works("resolve_reference_target", `{"kind":"`+c.kind+`"}`)
		if !strings.Contains(got, `"result":"resolved"`) || !strings.Contains(got, `"`+id+`"`) || !strings.Contains(got, "activated_by_resolver") {
			t.Errorf("%s: %s", c.event, got)
		}
		log := f.log.String()
		for _, line := range []string{`msg="context objects listed" request=`, `msg="context object activated" request=`, "reason=" + c.event + " ids=[" + id + "]", "chat=telegram:-1 topic=\"\" count=1 scope=reply_chain ids=[" + id + "] truncated=false", `msg="reference resolved"`} {
			if !strings.Contains(log, line) {
				t.Errorf("no %q in the log:\n%s", line, log)
			}
		}
	}
}

// An object of no message has no owner that is known.
func TestListActiveContextObjects_Owner_IsSaidWhereKnown(t *testing.T) {
	f := parallel(t)
	f.works("activate_context_object", `{"event":"url_discussed","kind":"link","url":"https://example.org/tides"}`)
	f.shows("list_active_context_objects", `{}`, `"link:`, not("owned_by_sender"))
	f.works("activate_context_object", `{"event":"followup_attached","kind":"bot_message","source_message_id":OWN_ANSWER}`)
	f.shows("list_active_context_objects", `{"allowed_kinds":["bot_message"]}`, `"owned_by_sender":false`)
}

// An article and its summary are two objects, though both are by one URL.
func TestActivateContextObject_TwoKindsOfOneURL_AreTwoObjects(t *testing.T) {
	f := parallel(t)
	f.works("activate_context_object", `{"event":"article_summarized","kind":"article","url":"https://example.org/a"}`)
	f.works("activate_context_object", `{"event":"summary_reused","kind":"summary","url":"https://example.org/a"}`)
	f.works("activate_context_object", `{"event":"summary_reused","kind":"summary","url":"https://example.org/a","label":"A"}`)
	list := f.works("list_active_context_objects", `{"allowed_kinds":["article","summary"]}`)
	if strings.Count(list, `"object_id"`) != 2 {
		t.Errorf("active: %s", list)
	}
}

// turnCase is a turn of one of the kinds that there are, and the topic that its objects belong to.
type turnCase struct {
	turn   *msg.Turn
	access *Access
	topic  string
	known  bool
}

// eachKindOfTurn returns one turn of each kind. Those in the fixture's chat come of a turn in #deploy.
func (f *fixture) eachKindOfTurn() map[string]turnCase {
	f.t.Helper()
	const topic, other = "#deploy", "#ops"
	cases := map[string]turnCase{"ordinary": {f.turn, f.access, "", true}}
	add := func(name, topic string, known bool, m *msg.Message, t *msg.Turn) *msg.Turn {
		turn, access := f.startTurn(m, t)
		cases[name] = turnCase{turn, access, topic, known}
		return turn
	}
	user := func() *msg.Message {
		return &msg.Message{ChatJID: chat, Content: "hi", Sender: "telegram:7", Source: "telegram"}
	}
	of := func(kind msg.ReturnKind, t *msg.Turn) *msg.ReturnAddress {
		return &msg.ReturnAddress{Kind: kind, TurnID: t.ID, RootTurnID: t.Root(), Depth: t.Depth + 1, Folder: t.Folder, ChatJID: t.ChatJID, Topic: t.Topic}
	}
	row := func(jid string, from *msg.ReturnAddress) *msg.Message {
		return &msg.Message{ChatJID: jid, Content: "hi", Sender: "agent:x", IsBot: from.Kind != msg.Injection, ForwardedFrom: from}
	}
	turn := func(kind msg.TurnKind, folder, jid, topic string, from *msg.Turn) *msg.Turn {
		t := &msg.Turn{Kind: kind, Folder: folder, ChatJID: jid, Topic: topic, Place: topic}
		if from != nil {
			t.Depth, t.RootTurnID = from.Depth+1, from.Root()
		}
		return t
	}
	root := add("ordinary in a topic", topic, true, user(), turn(msg.Conversation, folder, chat, topic, nil))
	injected := add("injected", other, true, row(chat, of(msg.Injection, root)), turn(msg.Conversation, folder, chat, other, root))
	child := add("delegated", topic, true, row("group:acme/eng", of(msg.Delegation, root)), turn(msg.Delegated, "acme/eng", chat, "", root))
	add("delegated by an injected turn", other, true, row("group:acme/eng", of(msg.Delegation, injected)), turn(msg.Delegated, "acme/eng", chat, "", injected))
	grandchild := add("delegated twice", topic, true, row("group:acme/no/deep", of(msg.Delegation, child)), turn(msg.Delegated, "acme/no/deep", chat, "", child))
	asked := add("escalated", "", true, row("group:acme", of(msg.Escalation, grandchild)), turn(msg.Delegated, folder, "group:acme", "", grandchild))
	add("answer to a child's question", topic, true, row(chat, of(msg.Answer, asked)), turn(msg.Conversation, "acme/no/deep", chat, grandchild.Topic, grandchild))
	add("answer to an own question", topic, true, row(chat, of(msg.Answer, asked)), turn(msg.Conversation, folder, chat, topic, root))
	prompt := &msg.Message{ChatJID: "group:acme", Content: "check the tides", Sender: "reminder:1", IsBot: true, Source: msg.SourceReminder, Topic: topic}
	add("prompt of a reminder", topic, true, prompt, turn(msg.Broadcast, folder, chat, topic, nil))
	gone := of(msg.Delegation, root)
	gone.TurnID = 4711
	add("delegated by a turn that is gone", "", false, row("group:acme/eng", gone), turn(msg.Delegated, "acme/eng", chat, "", root))
	for name, c := range cases {
		if c.turn.Kind == msg.Delegated && (c.turn.ChatJID != chat || !c.known) {
			c.topic = c.turn.Topic
			cases[name] = c
		}
	}
	return cases
}

func TestContextTools_EachKindOfTurn_HaveItsTopic(t *testing.T) {
	f := parallel(t)
	for name, c := range f.eachKindOfTurn() {
		caller, err := f.services.caller(t.Context(), c.access, "test")
		if err != nil {
			t.Fatal(name, err)
		}
		topic, known, err := contextTopic(t.Context(), f.st.Reader, caller.Turn)
		if err != nil || topic != c.topic || known != c.known {
			t.Errorf("%s: topic %q, known %v, %v, want %q, %v", name, topic, known, err, c.topic, c.known)
		}
		label := strings.ReplaceAll(name, "'", "")
		arguments := fmt.Sprintf(`{"event":"url_discussed","kind":"link","url":"https://example.org/%d","label":%q}`, c.turn.ID, label)
		for _, call := range [][2]string{{"activate_context_object", arguments}, {"list_active_context_objects", `{"max_results":20}`}, {"resolve_reference_target", fmt.Sprintf(`{"raw_text":%q}`, label)}} {
			text, isError := f.callAs(c.access, call[0], call[1])
			if isError || call[0] != "activate_context_object" && !strings.Contains(text, label) {
				t.Errorf("%s: %s: %s", name, call[0], text)
			}
		}
		q := contextobjects.Query{ChatJID: c.turn.ChatJID, Topic: c.topic, TopicKnown: true, Topics: true, Max: 20, Now: f.services.now()}
		found := storetest.Must(f.services.Objects.Lookup(t.Context(), f.st.Reader, &q))(t)
		if !slices.ContainsFunc(found.Matches, func(m contextobjects.Match) bool { return m.Object.Label == label }) {
			t.Errorf("%s: the object is not of topic %q", name, c.topic)
		}
	}
}

// The message that the turn answers may be of another chat: then there is neither a reply chain nor a sender.
func TestContextQuery_TriggerOfAnotherChat_IsLeftOut(t *testing.T) {
	f := parallel(t)
	for name, c := range f.eachKindOfTurn() {
		caller, err := f.services.caller(t.Context(), c.access, "test")
		if err != nil {
			t.Fatal(name, err)
		}
		q, _, err := caller.contextQuery(t.Context(), f.st.Reader, contextIn{})
		if err != nil {
			t.Fatal(name, err)
		}
		trigger := storetest.Must(f.st.Message(t.Context(), c.turn.TriggerMessageID))(t)
		if here := trigger.ChatJID == c.turn.ChatJID; here != (len(q.ReplyChain) == 1) || here != (q.Sender != "") {
			t.Errorf("%s: chain %v, sender %q", name, q.ReplyChain, q.Sender)
		}
	}
}

func TestActivateContextObject_MediaOfAnotherTopic_IsRefused(t *testing.T) {
	f := parallel(t)
	cases := f.eachKindOfTurn()
	inGeneral, inDeploy := f.own.ID, cases["ordinary in a topic"].turn.TriggerMessageID
	observed := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "a picture", Topic: "#deploy", Sender: "telegram:8"}
	f.put(observed)
	for name, want := range map[string]map[int64]bool{
		"ordinary":            {inGeneral: true, inDeploy: false, observed.ID: false},
		"ordinary in a topic": {inGeneral: false, inDeploy: true, observed.ID: true},
		"injected":            {inGeneral: false, inDeploy: false, observed.ID: false},
	} {
		for id, allowed := range want {
			arguments := fmt.Sprintf(`{"event":"media_inspected","kind":"media.image","source_message_id":%d}`, id)
			text, isError := f.callAs(cases[name].access, "activate_context_object", arguments)
			if isError == allowed || isError && !strings.Contains(text, "of another topic") {
				t.Errorf("%s: message %d: %v %s", name, id, isError, text)
			}
		}
	}
}

// C asks P, which asks R: R's answer goes to P, and P's to C.
func TestEscalate_TwoLevelsUp_EachAnswerGoesToItsAsker(t *testing.T) {
	f := parallel(t)
	f.write(func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "acme/eng/lib", Name: "lib", CreatedAt: 1, Config: []byte("{}")})
		return err
	})
	_, origin, c := f.startRun("acme/eng/lib", "telegram:-9", "may I?")
	last := func() *msg.Message {
		rows := f.forwarded()
		return rows[len(rows)-1]
	}
	runs := map[int64]int64{} // by turn
	// turnOf decides a row between groups as the gateway does.
	turnOf := func(m *msg.Message) (*msg.Turn, *Access) {
		from := m.ForwardedFrom
		turn := &msg.Turn{Kind: msg.Delegated, Folder: msg.AddressedFolder(m.ChatJID), ChatJID: m.ChatJID, Depth: from.Depth, RootTurnID: from.RootTurnID}
		if from.Kind == msg.Answer {
			turn.Kind, turn.Folder, turn.Topic = msg.Conversation, from.Folder, from.Topic
		}
		turn, access := f.startTurn(m, turn)
		runs[turn.ID] = access.run.ID
		return turn, access
	}
	escalate := func(a *Access) { f.worksAs(a, "escalate", `{"prompt":"may I?"}`) }
	answer := func(turn *msg.Turn, text string) {
		t.Helper()
		f.write(func(tx *store.Tx) error {
			return gatedtest.AnswerTurn(tx, rows.Reply{RunID: runs[turn.ID], TurnID: turn.ID, Text: text, Final: true}, 9)
		})
	}
	escalate(c)
	asksP, p := turnOf(last())
	escalate(p)
	if got := last(); got.ChatJID != "group:acme" || got.ForwardedFrom.Folder != "acme/eng" || got.ForwardedFrom.Topic != asksP.Topic {
		t.Fatalf("P's question: %+v %+v", got, got.ForwardedFrom)
	}
	asksR, _ := turnOf(last())
	answer(asksR, "yes")
	got := last()
	if got.ChatJID != "group:acme/eng" || got.ForwardedFrom.Folder != "acme/eng" || got.ForwardedFrom.Topic != asksP.Topic || got.Content != "yes" {
		t.Fatalf("R's answer: %+v %+v", got, got.ForwardedFrom)
	}
	hears, _ := turnOf(got)
	answer(hears, "R says yes")
	got = last()
	if got.ChatJID != "group:acme/eng/lib" || got.Direction != msg.In || got.ForwardedFrom.ChatJID != "telegram:-9" ||
		got.ForwardedFrom.Folder != "acme/eng/lib" || got.ForwardedFrom.Topic != origin.Topic || got.Content != "R says yes" {
		t.Errorf("P's answer: %+v %+v", got, got.ForwardedFrom)
	}
}
