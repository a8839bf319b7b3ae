package rows_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// inFork stores an answer in a chat's place whose turn runs in a topic, and returns its platform id.
func inFork(t *testing.T, s *store.Store, chat, thread, turnTopic, rowTopic, id string) string {
	t.Helper()
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		in := &msg.Message{ChatJID: chat, Direction: msg.In, ThreadID: thread, Topic: thread, ReceivedAt: 1}
		if _, _, err := tx.PutMessage(in); err != nil {
			return err
		}
		turn := &msg.Turn{Kind: msg.Conversation, Folder: "f", ChatJID: chat, Topic: turnTopic, ThreadID: thread, Place: thread, TriggerMessageID: in.ID}
		if _, err := rows.PutTurn(tx, turn, 0); err != nil {
			return err
		}
		out := &msg.Message{ChatJID: chat, Direction: msg.Out, ThreadID: thread, Topic: rowTopic, TurnID: turn.ID, PlatformID: id, OutState: msg.OutSent, ReceivedAt: 1}
		_, _, err := tx.PutMessage(out)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// putFork stores a fork of a group.
func putFork(t *testing.T, s *store.Store, f msg.Fork) {
	t.Helper()
	f.MessageID = 1
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.PutFork(tx, &f) }); err != nil {
		t.Fatal(err)
	}
}

func endFork(t *testing.T, s *store.Store, chat, topic string, now int64) {
	t.Helper()
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return tx.EndFork(chat, topic, now) }); err != nil {
		t.Fatal(err)
	}
}

// wantForks fails the test unless a message runs in those forks; "/" marks one that has ended.
func wantForks(t *testing.T, s *store.Store, m msg.Message, want ...string) {
	t.Helper()
	forks, err := rows.ForksOfRow(t.Context(), s.Reader, &m)
	var got []string
	for _, f := range forks {
		got = append(got, f.Folder+" "+f.Topic+map[bool]string{true: "/"}[f.EndedAt != 0])
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s %q, reply to %q: %q %v, want %q", m.ChatJID, m.ThreadID, m.ReplyToID, got, err, want)
	}
}

func TestForksOfRow_RepliesToItsMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chat := "telegram:-1"
	parent := inFork(t, s, chat, "", "", "", "1")
	answer := inFork(t, s, chat, "", "#fix", "", "2")
	question := inFork(t, s, chat, "", "", "#fix", "3")
	elsewhere := inFork(t, s, chat, "9", "9#fix", "9", "4")
	putFork(t, s, msg.Fork{ChatJID: chat, Topic: "#fix", Folder: "f", CreatedAt: 1})
	check := func(thread, replyTo string, want ...string) {
		t.Helper()
		wantForks(t, s, msg.Message{ChatJID: chat, ThreadID: thread, ReplyToID: replyTo}, want...)
	}
	check("", "")
	check("", "unknown")
	check("", parent)
	check("", answer, "f #fix")
	check("", question, "f #fix")
	check("9", elsewhere) // there is no such fork
	inside := storetest.Must(s.MessageByPlatformID(t.Context(), chat, answer))(t)
	kid := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.Kind, turn.ChatJID, turn.Folder, turn.Topic, turn.RootTurnID = msg.Delegated, chat, "f/kid", "#d9", inside.TurnID
	})
	storetest.Stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, TurnID: kid.ID, PlatformID: "7", OutState: msg.OutSent})
	check("", "7", "f #fix")
	endFork(t, s, chat, "#fix", 5)
	check("", answer)
	check("", question)
}

// In a thread on Slack, the message that a message replies to is not known.
func TestForksOfRow_UnlinkedThread_AllOpenForks(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	slack := "slack:C1"
	off := inFork(t, s, slack, "1.2", "1.2", "1.2", "1.3")
	for at, f := range []msg.Fork{{Topic: "1.2#fix", Folder: "f"}, {Topic: "1.2#fix2", Folder: "f"}, {Topic: "1.2#other", Folder: "g"}} {
		f.ChatJID, f.ThreadID, f.CreatedAt = slack, "1.2", int64(at)+1
		putFork(t, s, f)
	}
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "1.2", ReplyToID: "1.2"}, "g 1.2#other", "f 1.2#fix2", "f 1.2#fix")
	endFork(t, s, slack, "1.2#fix2", 5)
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "1.2", ReplyToID: "1.2"}, "g 1.2#other", "f 1.2#fix")
	wantForks(t, s, msg.Message{ChatJID: slack, ThreadID: "8.8", ReplyToID: "8.8"})
	wantForks(t, s, msg.Message{ChatJID: slack, ReplyToID: off})
}

func TestForksOfRow_OwnThread_AfterItsEndToo(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "slack:C1", "", "", "", "2.2")
	own := msg.Fork{ChatJID: "slack:C1", Topic: "#fix", Folder: "f", ThreadID: "2.2", OwnThread: true, CreatedAt: 7}
	putFork(t, s, own)
	inside := msg.Message{ChatJID: "slack:C1", ThreadID: "2.2", ReplyToID: "2.2"}
	wantForks(t, s, inside, "f #fix")
	putFork(t, s, msg.Fork{ChatJID: "slack:C1", Topic: "#fix#fix", Folder: "f", ThreadID: "2.2", CreatedAt: 8})
	wantForks(t, s, inside, "f #fix#fix", "f #fix")
	endFork(t, s, "slack:C1", "#fix#fix", 9)
	endFork(t, s, "slack:C1", "#fix", 10)
	endFork(t, s, "slack:C1", "#fix", 11) // again
	wantForks(t, s, inside, "f #fix/")
	own.MessageID, own.EndedAt = 1, 10
	got, err := s.ForkOfThread(t.Context(), "slack:C1", "2.2")
	if diff := cmp.Diff(&own, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	again := own
	again.Topic, again.CreatedAt, again.EndedAt = "#fix2", 6, 0 // the clock was set back
	putFork(t, s, again)
	wantForks(t, s, inside, "f #fix2")
}

func TestForkTaken_OncePerChat_AndWhileOpenPerGroup(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	for _, f := range []msg.Fork{
		{ChatJID: "telegram:-1", Topic: "#fix"}, {ChatJID: "telegram:-1", Topic: "#fix10"}, {ChatJID: "telegram:-1", Topic: "#fix#fix"},
		{ChatJID: "telegram:-1", Topic: "#fix-99"}, {ChatJID: "telegram:-1", Topic: "#fixed"}, {ChatJID: "web:f", Topic: "#tab"},
	} {
		f.Folder, f.CreatedAt = "f", 1
		putFork(t, s, f)
	}
	check := func(folder, chat, topic string, want bool) {
		t.Helper()
		if taken, err := rows.ForkTaken(t.Context(), s.Reader, folder, chat, topic); taken != want || err != nil {
			t.Errorf("%s %s %s: %v %v, want %v", folder, chat, topic, taken, err, want)
		}
	}
	for _, ended := range []bool{false, true} {
		check("f", "telegram:-1", "#fix", true)
		check("g", "telegram:-1", "#fix", true)
		check("f", "telegram:-2", "#fix", !ended)
		check("g", "telegram:-2", "#fix", false)
		check("f", "telegram:-2", "#tab", true) // a tab stays
		endFork(t, s, "telegram:-1", "#fix", 5)
		endFork(t, s, "web:f", "#tab", 5)
	}
	for chat, want := range map[string]int{"telegram:-1": 10, "telegram:-2": 0} {
		if n, err := rows.LastFork(t.Context(), s.Reader, chat, "#fix"); n != want || err != nil {
			t.Errorf("the last fork of %s is %d, %v, want %d", chat, n, err, want)
		}
	}
	open, err := rows.OpenForks(t.Context(), s.Reader, "f", "telegram:-1", 3)
	if want := []string{"#fix#fix", "#fix-99", "#fix10"}; !slices.Equal(open, want) || err != nil {
		t.Errorf("open: %q %v, want %q", open, err, want)
	}
}

func TestForkTaken_TopicOfUsers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	run := msg.Run{Folder: "f", Topic: "#fix", ChatJID: "telegram:-1", Runtime: "process", StartedAt: 1}
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := rows.BindThread(tx, "telegram:-1", "33", "#bound"); err != nil {
			return err
		}
		if err := rows.StartRun(tx, &run, 1); err != nil {
			return err
		}
		return rows.StoreSession(tx, &msg.Run{ID: run.ID, Folder: "f", Topic: "#fix"}, 1, "session", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		folder, chat, topic string
		want                bool
	}{
		{"f", "telegram:-2", "#fix", true}, {"g", "telegram:-2", "#fix", false}, {"g", "telegram:-1", "#bound", true}, {"g", "telegram:-2", "#bound", false},
	} {
		if taken, err := rows.ForkTaken(t.Context(), s.Reader, tt.folder, tt.chat, tt.topic); taken != tt.want || err != nil {
			t.Errorf("%+v: %v %v", tt, taken, err)
		}
	}
}

func TestPutFork_NameOfAnEndedFork_Refused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	f := msg.Fork{ChatJID: "telegram:-1", Topic: "#fix", Folder: "f", CreatedAt: 1, MessageID: 1}
	putFork(t, s, f)
	endFork(t, s, "telegram:-1", "#fix", 2)
	f.Folder = "g"
	if err := s.Write(t.Context(), func(tx *store.Tx) error { return rows.PutFork(tx, &f) }); !errors.Is(err, store.ErrRefused) {
		t.Errorf("the same name again: %v", err)
	}
}

// A question to a fork's own thread, sent by a turn in the parent, calls the group there.
func TestDeliveryChanges_MessageToForksThread_CountsThere(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	parent := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Place, turn.Folder, turn.Topic = "discord:5", "", "f", "" })
	inside := gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.ChatJID, turn.ThreadID, turn.Place, turn.Folder, turn.Topic = "discord:5", "77", "77", "f", "#fix"
	})
	other := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID, turn.Place, turn.Folder, turn.Topic = "discord:5", "", "g", "" })
	putFork(t, s, msg.Fork{ChatJID: "discord:5", Topic: "#fix", Folder: "f", ThreadID: "77", OwnThread: true, CreatedAt: 900})
	sent := func(turn *msg.Turn, thread string) {
		t.Helper()
		m := storetest.Stored(t, s, &msg.Message{ChatJID: "discord:5", Direction: msg.Out, Source: msg.SourceTool, TurnID: turn.ID, ThreadID: thread, OutState: msg.OutQueued})
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(m.ID, 1, 950) })
		storetest.Deliver(t, s, store.Delivery{MessageID: m.ID, State: msg.OutSent}, 960)
	}
	sent(parent, "77") // the question
	sent(inside, "77")
	sent(inside, "") // the corrected answer
	sent(other, "77")
	sent(parent, "88") // a thread of no fork
	type change struct {
		Folder, Place string
		Claims        bool
		ClaimedAt     int64
	}
	at := func(turn *msg.Turn) int64 {
		return storetest.Must(s.Message(t.Context(), turn.TriggerMessageID))(t).ReceivedAt
	}
	want := []change{
		{"f", "77", true, 900}, {"f", "77", false, at(inside)}, {"f", "77", false, at(inside)}, {"g", "", false, at(other)}, {"f", "", false, at(parent)},
	}
	check := func(want []change) {
		t.Helper()
		var got []change
		for _, d := range storetest.Must(factrows.DeliveryChanges(t.Context(), s.Reader, 0, 100))(t) {
			if d.State == msg.OutSent {
				got = append(got, change{d.Folder, d.Place, d.Claims, d.ClaimedAt})
			}
		}
		differ(t, "got", got, want)
	}
	check(want)
	endFork(t, s, "discord:5", "#fix", 970)
	want[0].Claims = false
	check(want)
}

func TestMoveChat_ForksMove(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inFork(t, s, "telegram:-1", "", "", "", "1")
	err := s.Write(t.Context(), func(tx *store.Tx) error {
		if err := rows.PutFork(tx, &msg.Fork{ChatJID: "telegram:-1", Topic: "#fix", Folder: "f", MessageID: 1, CreatedAt: 1}); err != nil {
			return err
		}
		return chatmove.Move(tx, "telegram:-1", "telegram:-100", 5)
	})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := s.Fork(t.Context(), "telegram:-100", "#fix"); f == nil || err != nil {
		t.Errorf("the fork has not moved: %v", err)
	}
}
