package tools

import (
	"fmt"
	"testing"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// forwarded returns the rows that the run's tools have written for groups and chats.
func (f *fixture) forwarded() (rows []*msg.Message) {
	f.t.Helper()
	last := storetest.Must(f.st.LastMessageID(f.t.Context()))(f.t)
	for id := f.foreign.ID + 1; id <= last; id++ {
		m := storetest.Must(f.st.Message(f.t.Context(), id))(f.t)
		if m != nil && m.ForwardedFrom != nil {
			rows = append(rows, m)
		}
	}
	return rows
}

func (f *fixture) notices() (n int) {
	for _, m := range f.outbound() {
		if m.Source == msg.SourceNotice {
			n++
		}
	}
	return n
}

func TestDelegate_Row_HasTheTurnsAddress(t *testing.T) {
	f := parallel(t)
	f.works("delegate", `{"folder":"acme/eng","prompt":"fix it, the password is hunter2 <internal>secret</internal>"}`)
	rows := f.forwarded()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	m := rows[0]
	if m.ChatJID != "group:acme/eng" || m.Content != "fix it, the password is [redacted]" || m.Sender != "agent:acme" || !m.IsBot || m.Direction != msg.In || m.Disposition != "" {
		t.Errorf("%+v", m)
	}
	want := &msg.ReturnAddress{
		Kind: msg.Delegation, TurnID: f.turn.ID, RootTurnID: f.turn.ID, Depth: 1, Folder: folder, ChatJID: chat,
		Surface: f.turn.Surface, Ceiling: f.turn.Ceiling,
	}
	if diff := cmp.Diff(want, m.ForwardedFrom); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEscalate_FromAChild_AsksTheNearestGroupAbove(t *testing.T) {
	f := parallel(t)
	_, turn, access := f.startRun("acme/no/deep", "telegram:-9", "hi")
	f.worksAs(access, "escalate", `{"prompt":"may I?"}`)
	rows := f.forwarded()
	if len(rows) != 1 || rows[0].ChatJID != "group:acme" || rows[0].ForwardedFrom.Kind != msg.Escalation || rows[0].ForwardedFrom.TurnID != turn.ID {
		t.Fatalf("%+v", rows)
	}
	f.refused("escalate", `{"prompt":"may I?"}`, "no group above acme")
}

// escalatedTurn is a turn of acme that answers acme/eng, whose chat is telegram:-9.
func (f *fixture) escalatedTurn() *Access {
	f.t.Helper()
	asked, origin, access := f.startRun("acme/eng", "telegram:-9", "hi")
	access.Close()
	return f.turnFor("group:acme", &msg.ReturnAddress{
		Kind: msg.Escalation, TurnID: origin.ID, RootTurnID: origin.ID, Depth: 1, Folder: "acme/eng", ChatJID: asked.ChatJID,
	})
}

// delegatedTurn is a turn of acme at a depth below the turn of the fixture.
func (f *fixture) delegatedTurn(depth int) *Access {
	f.t.Helper()
	return f.turnFor(chat, &msg.ReturnAddress{Kind: msg.Delegation, TurnID: f.turn.ID, RootTurnID: f.turn.ID, Depth: depth, Folder: folder, ChatJID: chat})
}

// turnFor is a turn of acme about a row of another group, answering a chat.
func (f *fixture) turnFor(chat string, from *msg.ReturnAddress) *Access {
	f.t.Helper()
	m := &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", Sender: "agent:acme/eng", ForwardedFrom: from}
	_, access := f.startTurn(m, &msg.Turn{Kind: msg.Delegated, Folder: folder, ChatJID: chat, Depth: from.Depth, RootTurnID: from.RootTurnID})
	return access
}

// startTurn stores a row, unless it is stored, and gives a turn about it to a new run. A delegated turn gets the topic of its row.
func (f *fixture) startTurn(m *msg.Message, turn *msg.Turn) (*msg.Turn, *Access) {
	f.t.Helper()
	m.Direction, turn.Surface, turn.CreatedAt = msg.In, "group", 1
	if m.ID == 0 {
		f.put(m)
	}
	if turn.Kind == msg.Delegated {
		turn.Topic = msg.DelegatedTopic(m.ID)
	}
	turn.TriggerMessageID = m.ID
	f.write(func(tx *store.Tx) error {
		if _, err := rows.PutTurn(tx, turn, 5); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonDelegated, RoutedTo: turn.Folder, TurnID: turn.ID}, 3)
	})
	// A topic may have a single run, and a test needs several turns.
	return turn, f.begin(msg.Run{Folder: turn.Folder, ChatJID: turn.ChatJID, Topic: msg.DelegatedTopic(m.ID)}, turn.ID)
}

func TestDelegate_InATurnThatAnswersAGroup_AnswerGoesToThatGroup(t *testing.T) {
	f := parallel(t)
	f.worksAs(f.escalatedTurn(), "delegate", `{"folder":"acme/no/deep","prompt":"look it up"}`)
	rows := f.forwarded()
	got := rows[len(rows)-1]
	if from := got.ForwardedFrom; got.ChatJID != "group:acme/no/deep" || from.Kind != msg.Escalation || from.Folder != "acme/eng" || from.ChatJID != "telegram:-9" || from.Depth != 2 {
		t.Errorf("%+v %+v", got, from)
	}
}

func TestForward_Loop_EndsAtTheDepthWithOneNotice(t *testing.T) {
	f := parallel(t)
	deep := f.delegatedTurn(msg.MaxDelegationDepth)
	for range 3 {
		for tool, arguments := range map[string]string{
			"delegate": `{"folder":"acme/no/deep","prompt":"hi"}`, "inject_message": `{"chat_jid":"OWN_CHAT","content":"hi"}`,
		} {
			f.refusedAs(deep, tool, arguments, "8 levels deep")
		}
	}
	if n := f.notices(); n != 1 || len(f.forwarded()) != 1 {
		t.Errorf("%d notices, %d rows, that of the turn included", n, len(f.forwarded()))
	}
}

func TestForward_Storm_EndsWithOneNotice(t *testing.T) {
	f := parallel(t)
	for i := range msg.MaxDelegations {
		f.works([]string{"delegate", "inject_message"}[i%2], []string{
			fmt.Sprintf(`{"folder":"acme/eng","prompt":"part %d"}`, i), fmt.Sprintf(`{"chat_jid":"OWN_CHAT","content":"part %d"}`, i),
		}[i%2])
	}
	for range 2 {
		f.refused("delegate", `{"folder":"acme/eng","prompt":"one more"}`, "passed on 16 times")
	}
	if n := f.notices(); n != 1 || len(f.forwarded()) != msg.MaxDelegations {
		t.Errorf("%d notices, %d rows", n, len(f.forwarded()))
	}
}

func TestInjectMessage_Row_IsLikeAUsers(t *testing.T) {
	f := parallel(t)
	f.works("inject_message", `{"chat_jid":"OWN_CHAT","content":"go on","topic":"#deploy","sender_name":"Nightly"}`)
	f.works("inject_message", `{"chat_jid":"group:acme/eng","content":"go on"}`)
	rows := f.forwarded()
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	m := rows[0]
	if m.IsBot || m.Verb != msg.VerbMessage || m.Sender != "agent:acme" || m.SenderName != "Nightly" || m.Topic != "#deploy" || m.ThreadID != "" || m.BetweenGroups() {
		t.Errorf("%+v", m)
	}
	if from := m.ForwardedFrom; from.Depth != 1 || from.RootTurnID != f.turn.ID {
		t.Errorf("%+v", from)
	}
	if m := rows[1]; m.SenderName != "acme" || m.ChatJID != "group:acme/eng" {
		t.Errorf("%+v", m)
	}
	f.in(chat, "33", "#deploy") // in another chat the topic is not where the turn is
	f.works("inject_message", `{"chat_jid":"group:acme/eng","content":"go on","topic":"#deploy"}`)
	if m := f.last(); m.Topic != "#deploy" || m.ThreadID != "" {
		t.Errorf("%+v", m)
	}
}
