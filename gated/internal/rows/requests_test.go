package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAnswerTurn_Escalation_AnswersTheAskingGroup(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	from := &msg.ReturnAddress{
		Kind: msg.Escalation, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1", Topic: "#deploy",
		ThreadID: "171.5", Place: "171.5", ReplyTo: "171.6", Surface: "slack-channel-thread", Ceiling: 4000, Claims: true,
	}
	ask := storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: from})
	asked := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ChatJID, turn.Kind = ask.ID, "group:acme", msg.Delegated
	})
	for len(pokes) > 0 {
		<-pokes
	}
	run := gatedtest.Begun(t, s, asked)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, asked, "you may"), 300)
	if got := storetest.Replies(t, s, asked.ID); got != nil {
		t.Errorf("outbound: %+v", got)
	}
	back := *from
	back.Kind, back.TurnID = msg.Answer, asked.ID
	want := &msg.Message{
		ChatJID: "group:acme/eng", Direction: msg.In, Kind: msg.KindMessage, Sender: "agent:acme", SenderName: "acme", IsBot: true,
		Verb: msg.VerbMessage, Content: "you may", Timestamp: 300, ReceivedAt: 300,
		Source: msg.SourceDelegate, ForwardedFrom: &back,
	}
	rows := storetest.Must(rows.Undecided(t.Context(), s.Reader, "group:acme/eng", 0, 10))(t)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	rows[0].ID = 0
	differ(t, "got", rows[0], want)
	storetest.Eventually(t, "gated to be poked", func() bool { return storetest.Receive(t, "a poke", pokes) == "gated" })
}

// TestEndTurn_OfARequest: the group that asked hears that nothing was said, unless the turn has asked further, and the session of
// the request ends.
func TestEndTurn_OfARequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind          msg.ReturnKind
		text          string
		escalates     bool
		answer, noted string
		session       string
	}{
		"an escalation, answered":     {msg.Escalation, "you may", false, "you may", "", ""},
		"an escalation, silent":       {msg.Escalation, "", false, "(No answer: acme has read this and said nothing.)", "", ""},
		"an escalation, asks further": {msg.Escalation, "", true, "", "", "s1"},
		"a delegation, answered":      {msg.Delegation, "done", false, "", "", ""},
		"a delegation, silent":        {msg.Delegation, "", false, "", "acme has ended what you delegated to it (message 1) without an answer.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			row := storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: &msg.ReturnAddress{
				Kind: c.kind, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1"}})
			asked := gatedtest.Queued(t, s, func(turn *msg.Turn) {
				turn.TriggerMessageID, turn.ChatJID, turn.Kind, turn.Topic = row.ID, "group:acme", msg.Delegated, msg.DelegatedTopic(row.ID)
			})
			run := gatedtest.Begun(t, s, asked)
			if c.escalates {
				storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutToolCall(tx, asked.ID, "1", "escalate", []byte(`{}`), 250) })
			}
			frame := gatedtest.Answer(run, asked, c.text)
			frame.SessionID = "s1"
			gatedtest.StoreReply(t, s, frame, 300)
			got := ""
			for _, m := range storetest.Must(rows.Undecided(t.Context(), s.Reader, "group:acme/eng", 0, 10))(t) {
				got += m.Content
			}
			noted := ""
			next := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/eng" })
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.ClaimSystemMessages(tx, "acme/eng", next.ID) })
			for _, line := range storetest.Must(rows.TurnSystemMessages(t.Context(), s.Reader, next.ID))(t) {
				noted += line.Body
			}
			session := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, asked.Topic))(t)
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.EndOldRequests(tx, 1000, 1000) })
			if old := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, asked.Topic))(t); old != "" {
				t.Errorf("an old session is kept: %q", old)
			}
			if got != c.answer || noted != c.noted || session != c.session {
				t.Errorf("answer %q, noted %q, session %q; want %q, %q, %q", got, noted, session, c.answer, c.noted, c.session)
			}
		})
	}
}
