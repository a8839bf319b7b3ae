package rows_test

import (
	"fmt"
	"slices"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestStopChat_ManyRowsAndTurns_GoesInPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	thread, senders := "7", []string{"telegram:7", "telegram:8"}
	running := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.ThreadID = "#run", thread })
	run := gatedtest.Begun(t, s, running)
	backlog(t, s, 1200, `''`)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET thread_id = ?`, thread) })
	var kept []int64 // one on each page
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 1300 {
			m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: senders[i%2], Topic: fmt.Sprintf("#%d", i), ThreadID: thread}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			if i%200 == 0 {
				kept = append(kept, m.ID)
			}
		}
		return nil
	})
	command := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "/stop", ThreadID: thread}).ID
	var cancelled []*msg.Turn
	var more bool
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		cancelled, more, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Thread: &thread, Sender: &senders[0], BeforeMessage: command, Except: kept}, 500)
		return err
	})
	// The running turn, and a page of 200 or as many as end within 20 ms.
	if !more || len(cancelled) < 2 || len(cancelled) > 201 || cancelled[0].ID != running.ID {
		t.Fatalf("%d turns, more %t", len(cancelled), more)
	}
	if got := gatedtest.Piped(t, s, run); got.State != msg.TurnQueued {
		t.Errorf("the stopped run took turn %+v", got)
	}
	later := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID = thread })
	if next := storetest.Must(rows.FindQueued(t.Context(), s.Reader, storetest.Folder, 0, 100))(t); next.Turn != nil && next.Turn.ID < 1202 {
		t.Errorf("turn %d may start during the stop", next.Turn.ID)
	}
	stops := storetest.Must(rows.Stops(t.Context(), s.Reader, storetest.Chat))(t)
	if len(stops) != 1 {
		t.Fatalf("stops %+v", stops)
	}
	for _, m := range []msg.Message{
		{ID: 1, ThreadID: thread, Sender: senders[0]}, // the only one that is covered
		{ID: 1, Sender: senders[0]}, {ID: 1, ThreadID: thread, Sender: senders[1]}, {ID: command, ThreadID: thread, Sender: senders[0]},
	} {
		if got, want := stops[0].CoversRow(&m, ""), m.ID == 1 && m.ThreadID == thread && m.Sender == senders[0]; got != want {
			t.Errorf("row %+v is covered: %t", m, got)
		}
	}
	pages := 0
	for ; len(stops) > 0; stops = storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t) {
		pages++
		storetest.Write(t, s, func(tx *store.Tx) error { _, _, err := rows.ContinueStop(tx, stops[0], 600); return err })
	}
	if pages < 5 {
		t.Errorf("%d more pages", pages)
	}
	if got := storetest.Turn(t, s, later.ID); got.State != msg.TurnQueued {
		t.Errorf("a turn written after the stop is %s", got.State)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM turns WHERE state = 'cancelled'`); n != 1201 {
		t.Errorf("%d turns are cancelled", n)
	}
	if n := storetest.Value[int](t, s, `SELECT count(*) FROM messages WHERE reason = 'stopped' AND topic <> '' AND thread_id = '7'`); n != 650-len(kept) {
		t.Errorf("%d rows are dropped, with topic and thread kept", n)
	}
	for _, id := range kept {
		if m := storetest.Must(s.Message(t.Context(), id))(t); m.Disposition != "" {
			t.Errorf("row %d, which another service decides, is %s", id, m.Disposition)
		}
	}
}

// The work of groups for a conversation belongs to it: a turn in a chat between groups, on any level, and an undecided row
// there. Their work for another thread goes on.
func TestStopChat_WorkOfOtherGroups_EndsWithTheConversation(t *testing.T) {
	t.Parallel()
	thread, topic := "7", "#a"
	for name, stop := range map[string]rows.Stop{
		"of a thread": {ChatJID: storetest.Chat, Thread: &thread}, "of a topic": {ChatJID: storetest.Chat, Topic: &topic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			// request is a row by which a group asks another one for a turn, and asked its turn in a chat between groups.
			request := func(by *msg.Turn) *msg.Message {
				return storetest.Stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, ForwardedFrom: &msg.ReturnAddress{
					Kind: msg.Escalation, TurnID: by.ID, RootTurnID: by.Root(), Folder: by.Folder, ChatJID: by.ChatJID, Topic: by.Topic, ThreadID: by.ThreadID,
				}})
			}
			asked := func(by *msg.Turn) *msg.Turn {
				row := request(by)
				return gatedtest.Queued(t, s, func(turn *msg.Turn) {
					turn.Kind, turn.Folder, turn.ChatJID, turn.Topic, turn.RootTurnID = msg.Delegated, "acme", "group:acme", msg.DelegatedTopic(row.ID), by.Root()
					turn.TriggerMessageID = row.ID
				})
			}
			var kept, ended []int64
			for _, in := range []struct {
				thread, topic string
				turns         *[]int64
			}{{"7", "#a", &ended}, {"8", "#b", &kept}} {
				root := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic = in.thread, in.topic })
				gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, root), root, "I asked"), 300)
				parent := asked(root)
				above := asked(parent)
				gatedtest.Begun(t, s, above)
				*in.turns = append(*in.turns, parent.ID, above.ID)
			}
			undecided := request(storetest.Turn(t, s, ended[0]))
			storetest.Write(t, s, func(tx *store.Tx) error {
				stop.BeforeMessage = undecided.ID + 1
				_, _, err := rows.StopChat(tx, stop, 500)
				return err
			})
			for _, id := range ended {
				if got := storetest.Turn(t, s, id); got.State != msg.TurnCancelled {
					t.Errorf("turn %d for the conversation is %s", id, got.State)
				}
			}
			for _, id := range kept {
				if got := storetest.Turn(t, s, id); !got.State.IsOpen() {
					t.Errorf("turn %d for another one is %s", id, got.State)
				}
			}
			if m := storetest.Must(s.Message(t.Context(), undecided.ID))(t); m.Reason != msg.ReasonStopped {
				t.Errorf("the undecided request is %q", m.Reason)
			}
		})
	}
}

func TestStopChat_CancelsOpenTurnsAndRows(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	inTopic := func(topic string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Topic = topic } }
	ofFolder := func(folder string) func(*msg.Turn) { return func(turn *msg.Turn) { turn.Folder = folder } }
	elsewhere := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	running := gatedtest.Queued(t, s, inTopic("#a"))
	run := gatedtest.Begun(t, s, running)
	piped := gatedtest.Piped(t, s, run)
	plain, other, guest := gatedtest.Queued(t, s), gatedtest.Queued(t, s, inTopic("#b")), gatedtest.Queued(t, s, ofFolder("else"))
	done := gatedtest.Queued(t, s, inTopic("#c"))
	gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, done), done, "ok"), 300)

	cancel := func(topic *string) (cancelled []*msg.Turn) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			cancelled, _, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Topic: topic, BeforeMessage: 99}, 500)
			return err
		})
		return cancelled
	}
	rowA := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: "#a"})
	rowB := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: "#b"})
	topic := "#a"
	got := cancel(&topic)
	differ(t, "rows after the stop of a topic", fates(t, s, rowA, rowB), []string{"dropped/stopped", "/"})
	if !slices.Equal(turnIDs(got), []int64{running.ID, piped.ID}) || got[0].State != msg.TurnRunning || got[0].RunID != run.ID {
		t.Errorf("of a topic: %v", turnIDs(got))
	}
	if got := turnIDs(cancel(nil)); !slices.Equal(got, []int64{plain.ID, other.ID, guest.ID}) {
		t.Errorf("of the chat: %v", got)
	}
	if got := cancel(nil); got != nil {
		t.Errorf("again: %v", turnIDs(got))
	}
	open := storetest.Must(storetest.OpenTurns(t.Context(), s.Reader))(t)
	if !slices.Equal(turnIDs(open), []int64{elsewhere.ID}) {
		t.Errorf("open: %v", turnIDs(open))
	}
	if got := storetest.Turn(t, s, done.ID); got.State != msg.TurnDone {
		t.Errorf("the done turn is %s", got.State)
	}
}

// A /stop ends the turns of its own thread. Outside of threads it also ends the questions of its sender there, and is
// answered in a thread that begins at the question.
func TestStopChat_OneThread_KeepsTheOthers(t *testing.T) {
	t.Parallel()
	const ann, bob = "slack:U1", "slack:U2"
	for name, tc := range map[string]struct {
		thread, by string
		want       []string
	}{
		"of a thread":                   {"7", bob, []string{"in 7"}},
		"of the thread of a question":   {"9", bob, []string{"ann's"}},
		"of no thread":                  {"", "slack:U3", []string{"in none"}},
		"of no thread, by ann":          {"", ann, []string{"in none", "ann's"}},
		"of no thread, by bob":          {"", bob, []string{"in none"}},
		"of a thread without questions": {"99", ann, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			names := map[int64]string{}
			put := func(name, thread, sender, post string) {
				m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: sender, PlatformID: post, ThreadID: thread})
				turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Topic, turn.TriggerMessageID = thread, name, m.ID })
				names[turn.ID] = name
			}
			put("in none", "", bob, "1")
			put("in 7", "7", ann, "2")
			put("in 8", "8", ann, "3")
			put("ann's", "9", ann, "9")
			var got []string
			storetest.Write(t, s, func(tx *store.Tx) error {
				cancelled, _, err := rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, Thread: &tc.thread, By: tc.by}, 500)
				for _, t := range cancelled {
					got = append(got, names[t.ID])
				}
				return err
			})
			differ(t, "cancelled", got, tc.want)
		})
	}
}

// Where others operate a group, a /stop ends what its sender has asked for, however much of others waits before it.
func TestStopChat_Own_EndsWhatItsSenderAskedFor(t *testing.T) {
	t.Parallel()
	const ann, bob = "telegram:1", "telegram:2"
	s := storetest.Open(t)
	asked := func(sender string, options ...func(*msg.Turn)) *msg.Turn {
		m := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: sender})
		return gatedtest.Queued(t, s, append(options, func(turn *msg.Turn) { turn.TriggerMessageID, turn.ThreadID = m.ID, "" })...)
	}
	running := asked(bob)
	gatedtest.Begun(t, s, running)
	backlog(t, s, 260, `''`) // more than a page
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET thread_id = ''`) })
	own := asked(ann)
	var undecided []*msg.Message
	storetest.Write(t, s, func(tx *store.Tx) error {
		for range 260 {
			m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: ann}
			if len(undecided) == 0 {
				m.Sender = bob
			}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			undecided = append(undecided, m)
		}
		return nil
	})
	sender, thread := ann, ""
	stop := rows.Stop{ChatJID: storetest.Chat, By: ann, Sender: &sender, Thread: &thread, Own: true,
		BeforeMessage: undecided[259].ID + 1}
	var cancelled []*msg.Turn
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		cancelled, _, err = rows.StopChat(tx, stop, 500)
		return err
	})
	for _, rest := range storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t) {
		for more := true; more; {
			storetest.Write(t, s, func(tx *store.Tx) (err error) {
				var some []*msg.Turn
				some, more, err = rows.ContinueStop(tx, rest, 600)
				cancelled = append(cancelled, some...)
				return err
			})
			if left := storetest.Must(rows.Stops(t.Context(), s.Reader, ""))(t); more {
				rest = left[0]
			}
		}
	}
	if got := turnIDs(cancelled); !slices.Equal(got, []int64{own.ID}) {
		t.Errorf("turns %v were cancelled, want %d alone", got, own.ID)
	}
	differ(t, "rows", fates(t, s, undecided[0], undecided[1], undecided[258]), []string{"/", "dropped/stopped", "dropped/stopped"})
	for _, button := range []struct {
		by   string
		want int
	}{{ann, 0}, {bob, 1}} {
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			cancelled, _, err = rows.StopChat(tx, rows.Stop{ChatJID: storetest.Chat, By: button.by, Turn: running.ID, Own: true}, 700)
			return err
		})
		if len(cancelled) != button.want {
			t.Errorf("the button of bob's turn, pressed by %s, ends %v", button.by, turnIDs(cancelled))
		}
	}
}

func TestStopParked_DropsOlderRowsOfTheSender(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	one, two, held := storetest.Park(t, s, storetest.Chat, "one"), storetest.Park(t, s, storetest.Chat, "two"), storetest.Inbound(t, s, storetest.Chat, "held")
	stop, later := storetest.Inbound(t, s, storetest.Chat, "/stop"), storetest.Park(t, s, storetest.Chat, "later")
	for _, tc := range []struct {
		sender string
		want   []string
	}{
		{"telegram:99", []string{"onboarding/awaiting_approval", "onboarding/awaiting_approval", "/", "onboarding/awaiting_approval"}},
		{one.Sender, []string{"dropped/stopped", "dropped/stopped", "/", "onboarding/awaiting_approval"}},
	} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "", &tc.sender, stop.ID, 20) })
		differ(t, "rows after the stop of "+tc.sender, fates(t, s, one, two, held, later), tc.want)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "thread", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of a thread", fates(t, s, later), []string{"onboarding/awaiting_approval"})
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.StopParked(tx, storetest.Chat, "", nil, later.ID+1, 20) })
	differ(t, "rows after the stop of all", fates(t, s, later), []string{"dropped/stopped"})
}
