package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// bury stores so many rows of a chat after its messages that no user reads as one.
func bury(t *testing.T, s *store.Store, n int, thread string) {
	t.Helper()
	write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
			INSERT INTO messages (chat_jid, direction, verb, kind, content, thread_id, timestamp, received_at)
			SELECT ?2, CASE i % 3 WHEN 2 THEN 'out' ELSE 'in' END, CASE i % 3 WHEN 0 THEN 'vote' WHEN 1 THEN 'reaction' ELSE 'message' END,
				CASE i % 3 WHEN 2 THEN 'reaction' ELSE 'message' END, 'x', ?3, 1, 1 FROM n`, n, chat, thread)
	})
}

// TestMessages_BelowVotesAndReactions_AreFound stores 3,000 votes and reactions after two messages.
func TestMessages_BelowVotesAndReactions_AreFound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	said := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Content: "needle", ThreadID: "7", Timestamp: 1, ReceivedAt: 1})
	decide(t, s, said.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: folder, ThreadID: "7"})
	answered := queued(t, s)
	own := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "answer", Source: msg.SourceAgent, TurnID: answered.ID, OutState: msg.OutSent})
	bury(t, s, 3000, "7")

	if got := must(s.LastHome(t.Context(), chat))(t); got != folder {
		t.Errorf("home %q", got)
	}
	if got := must(s.LastAnswer(t.Context(), folder, chat, ""))(t); got != own.ID {
		t.Errorf("last answer %d, want %d", got, own.ID)
	}
	if !must(s.HasThread(t.Context(), chat, "7"))(t) || must(s.HasThread(t.Context(), chat, "8"))(t) {
		t.Error("the chat's threads are not found")
	}
	for name, scope := range map[string]store.Scope{"chat": {ChatJID: chat}, "thread": {ChatJID: chat, ThreadID: "7"}} {
		if rows := must(s.Recent(t.Context(), scope, everything))(t); len(rows) == 0 || rows[0].Content != "needle" {
			t.Errorf("recent rows of the %s: %+v", name, rows)
		}
	}
	if rows := must(s.SearchMessages(t.Context(), search("needle")))(t); len(rows) != 1 {
		t.Errorf("%d rows found", len(rows))
	}
	last := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Content: "later", ThreadID: "7", Timestamp: 2, ReceivedAt: 2})
	for _, m := range []*msg.Message{said, last} {
		if diff := cmp.Diff([]string{"needle", "later"}, textsOf(must(s.Around(t.Context(), m, 5))(t))); diff != "" {
			t.Errorf("around %q (-want +got):\n%s", m.Content, diff)
		}
	}
}

func search(text string) store.Search {
	return store.Search{Folder: folder, ChatJID: chat, Text: text, Limit: 10, Others: store.ScopeShared}
}

func textsOf(rows []*msg.Message) (all []string) {
	for _, m := range rows {
		all = append(all, m.Content)
	}
	return all
}

func TestSearch_EditedMessage_IsFoundByItsNewText(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(jid, id, text string) {
		m := stored(t, s, &msg.Message{ChatJID: jid, PlatformID: id, Direction: msg.In, Content: text, Timestamp: 1, ReceivedAt: 1})
		decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: folder})
	}
	change := func(jid, verb, target, text string) {
		stored(t, s, &msg.Message{ChatJID: jid, Direction: msg.In, Verb: verb, TargetID: target, Content: text, Timestamp: 2, ReceivedAt: 2})
	}
	for _, jid := range []string{chat, "telegram:-5"} {
		in(jid, "a", "the old plan")
		change(jid, msg.VerbEdit, "a", "a draft")
		change(jid, msg.VerbEdit, "a", "the new plan")
		in(jid, "b", "regretted plan")
		change(jid, msg.VerbDelete, "b", "")
	}
	own := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Content: "my old answer", Source: msg.SourceAgent, OutState: msg.OutSent})
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Kind: msg.KindEdit, Content: "my new answer", DerivedFrom: own.ID, Source: msg.SourceTool, OutState: msg.OutSent})

	for text, want := range map[string][]string{
		"old": nil, "draft": nil, "regretted": nil, "NEW PLAN": {"the new plan", "the new plan"}, "new answer": {"my new answer"},
	} {
		if diff := cmp.Diff(want, textsOf(must(s.SearchMessages(t.Context(), search(text)))(t))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	if diff := cmp.Diff([]string{"the new plan", "my new answer"}, textsOf(must(s.Around(t.Context(), own, 5))(t))); diff != "" {
		t.Errorf("around (-want +got):\n%s", diff)
	}
}

func TestSearch_Poll_IsFoundByItsWords(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	poll := msg.Poll{Question: "Lunch?", Options: []string{"pizza", "soup & bread"}}
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Kind: msg.KindPoll, Content: poll.JSON(), Source: msg.SourceTool, OutState: msg.OutSent})
	for text, want := range map[string]int{"lunch": 1, "soup & bread": 1, "question": 0, "options": 0, "closes": 0} {
		if got := len(must(s.SearchMessages(t.Context(), search(text)))(t)); got != want {
			t.Errorf("%q: %d rows, want %d", text, got, want)
		}
	}
}

// TestSearch_DirectMessages_OfAChatNotDescribed are not read in other chats: the statement
// judges its address as msg.KindOfJID does.
func TestSearch_DirectMessages_OfAChatNotDescribed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	jids := []string{
		"telegram:5", "telegram:-5", "telegram+work:5", "telegram+work:-5", "discord:5", "discord:dm-5", "discord+work:dm-5", "slack:D5", "slack:C5",
		"slack+work:D5", "slack+work:C5", "web:acme", "group:acme", "matrix:D5", "telegram:",
	}
	for i, jid := range jids {
		m := stored(t, s, &msg.Message{ChatJID: jid, Direction: msg.In, Content: fmt.Sprintf("needle%d.", i), Timestamp: 1, ReceivedAt: 1})
		decide(t, s, m.ID, store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRoute, RoutedTo: folder})
		found := len(must(s.SearchMessages(t.Context(), search(fmt.Sprintf("needle%d.", i))))(t)) == 1
		observed, _, err := s.Observed(t.Context(), observedSince(int64(i), 0, true, 1))
		if shared := msg.KindOfJID(jid) != msg.ChatDM; found != shared || (len(observed) == 1) != shared || err != nil {
			t.Errorf("%s: found %t, observed %d, want %t (%v)", jid, found, len(observed), shared, err)
		}
	}
}
