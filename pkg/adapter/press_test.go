package adapter

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	asker    = platform + ":ada"
	stranger = platform + ":eve"
)

// press is a press as a platform reports it.
func press(id, sender, target string, ask int64, option int) Inbound {
	return Inbound{Messages: []*msg.Message{{
		ChatJID: room, PlatformID: id, Sender: sender, TargetID: target, Verb: msg.VerbAnswer, Content: msg.Press{Ask: ask, Option: option}.JSON(),
	}}}
}

func TestReceivePress_Sender_ReadsWhetherItCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.platform.cut = func(m *msg.Message) ([]Part, error) { return []Part{string(m.Kind)}, nil }
		asked, other := r.agent(room, "t", groupconfig.ProgressOff).asks(), r.out("t", "no question")
		s := r.shell()
		receive := func(in Inbound) (notice string, row *msg.Message) {
			t.Helper()
			notice, err := s.ReceivePress(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			return notice, r.row(in.Messages[0].ID)
		}
		expect := func(in Inbound, want string) {
			t.Helper()
			if got, _ := receive(in); got != want {
				t.Errorf("%s of %s: %q, want %q", in.Messages[0].PlatformID, in.Messages[0].Sender, got, want)
			}
		}
		expect(press("q0", asker, "early", asked.ID, 1), "") // the id of the message is not stored yet
		r.start()
		synctest.Wait()
		const own, closed = "id of message", "This question is closed."
		got, row := receive(press("q1", asker, own, asked.ID, 2))
		want := msg.Message{Content: `{"ask":1,"option":2,"text":"no"}`, ThreadID: "t", Topic: "t", Sender: asker, TargetID: own}
		if row := (msg.Message{Content: row.Content, ThreadID: row.ThreadID, Topic: row.Topic, Sender: row.Sender, TargetID: row.TargetID}); got != "" || !cmp.Equal(row, want) {
			t.Errorf("%q, the row differs: %s", got, cmp.Diff(want, row))
		}
		expect(press("q2", stranger, own, asked.ID, 1), "Only Ada may answer this.")
		expect(press("q3", asker, own, asked.ID, 3), closed)
		expect(press("q4", asker, own, asked.ID+1, 1), closed)
		expect(press("q5", asker, "another", asked.ID, 1), "This question was sent again: answer it there.")
		r.write(func(tx *store.Tx) error {
			return gatedtest.AnswerAsk(tx, asked.ID, 2, asker, "Ada", time.Now().UnixMilli(), time.Now().UnixMilli())
		})
		expect(press("q6", asker, own, asked.ID, 2), "")
		expect(press("q7", asker, own, asked.ID, 1), closed)
		expect(press("q8", stranger, own, asked.ID, 1), "Only Ada may answer this.")
		if first, again := press("q9", asker, own, asked.ID, 2), press("q9", asker, own, asked.ID, 2); true {
			_, _ = receive(first)
			if _, row := receive(again); row.ID != first.Messages[0].ID {
				t.Errorf("a press that comes twice has the rows %d and %d", first.Messages[0].ID, row.ID)
			}
		}
		if r.row(other).OutState != msg.OutSent {
			t.Errorf("the other row is %s", r.row(other).OutState)
		}
	})
}

func TestReceivePress_ExpiredQuestion_IsClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		asked := r.agent(room, "", groupconfig.ProgressOff).asks()
		s := r.shell()
		pass(time.Hour)
		if got, err := s.ReceivePress(t.Context(), press("q", asker, "early", asked.ID, 1)); got != "This question is closed." || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// A crash before the id of a question's message is stored leaves a copy of it. The press of one of its buttons names it.
func TestReceivePress_CopyOfAnEndedQuestion_LosesItsButtons(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var mu sync.Mutex
		var edits []string
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			mu.Lock()
			defer mu.Unlock()
			if m.Kind == msg.KindEdit {
				edits = append(edits, fmt.Sprint(m.TargetID, " own ", m.Target != nil, " ", m.Ask != nil && m.Ask.State == msg.AskAnswered,
					" ", strings.Contains(m.Content, "answered by Ada")))
			}
			return []Part{string(m.Kind)}, nil
		}
		r.previewer(messages)
		a := r.agent(room, "", groupconfig.ProgressLive)
		asked := a.asks()
		r.start()
		synctest.Wait()
		press := func(id, target, want string) {
			t.Helper()
			got, err := r.running.ReceivePress(t.Context(), press(id, asker, target, asked.ID, 1))
			if err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", id, got, err, want)
			}
			r.look()
			pass(time.Second)
		}
		press("open", "copy", copyNotice)
		r.write(func(tx *store.Tx) error {
			return gatedtest.AnswerAsk(tx, asked.ID, 2, asker, "Ada", time.Now().UnixMilli(), time.Now().UnixMilli())
		})
		r.look()
		pass(time.Second)
		for _, id := range []string{"first", "again"} {
			press(id, "copy", closedNotice)
		}
		press("own", "id of message", closedNotice)
		for i := range 2 * 3 {
			press(fmt.Sprint("forged ", i), fmt.Sprint("m", i), closedNotice)
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{" own true true true", "copy own false true true", "m0 own false true true", "m1 own false true true"}
		if diff := cmp.Diff(want, edits); diff != "" {
			t.Errorf("edits (-want +got):\n%s", diff)
		}
	})
}

// The rows that show or end a question are cut with it, no others.
func TestDeliver_Question_IsReadForItsRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		var mu sync.Mutex
		got := map[string]msg.AskState{}
		r.platform.cut = func(m *msg.Message) ([]Part, error) {
			mu.Lock()
			defer mu.Unlock()
			if got[string(m.Kind)+" "+m.Source] = "none"; m.Ask != nil {
				got[string(m.Kind)+" "+m.Source] = m.Ask.State
			}
			return []Part{string(m.Kind)}, nil
		}
		r.out("", "an answer")
		asked := r.agent(room, "", groupconfig.ProgressOff).asks()
		r.start()
		synctest.Wait()
		r.write(func(tx *store.Tx) error { return gatedtest.ExpireAsk(tx, asked.ID, time.Now().UnixMilli()) })
		r.look()
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		want := map[string]msg.AskState{"message agent": "none", "message tool": msg.AskOpen, "edit notice": msg.AskExpired}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("questions of rows (-want +got):\n%s", diff)
		}
	})
}

// stopPress is a press of the button that stops a turn, as a platform reports it.
func stopPress(id, target string, turn int64) Inbound {
	return Inbound{Messages: []*msg.Message{{
		ChatJID: room, PlatformID: id, Sender: asker, TargetID: target, Verb: msg.VerbAnswer, Content: msg.Press{Stop: turn, Text: msg.StopLabel}.JSON(),
	}}}
}

// The row of a press gets the place of the preview. Its user reads whether there is anything left to stop.
func TestReceivePress_Stop_TakenWhileTheTurnIsOpen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.previewer(messages)
		a := r.agent(room, "t", groupconfig.ProgressLive)
		r.start()
		a.says("half", "")
		pass(5 * time.Second)
		press := func(id, target string, turn int64, want, thread string) {
			t.Helper()
			in := stopPress(id, target, turn)
			notice, err := r.running.ReceivePress(t.Context(), in)
			if row := r.row(in.Messages[0].ID); err != nil || notice != want || row.ThreadID != thread || row.Topic != thread || row.Content != in.Messages[0].Content {
				t.Errorf("%s: %q, %v, the row is %+v", id, notice, err, row)
			}
		}
		press("taken", "p1", a.turn.ID, "", "t")
		press("taken again", "p1", a.turn.ID, "", "t")
		press("another message", "p2", a.turn.ID, finishedNotice, "")
		press("another turn", "p1", a.turn.ID+1, finishedNotice, "")
		a.answers("all", true)
		press("before the answer is shown", "p1", a.turn.ID, finishedNotice, "t")
		pass(5 * time.Second)
		press("late", "p1", a.turn.ID, finishedNotice, "t")
	})
}
