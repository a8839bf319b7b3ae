package adaptertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter"
	adapterrows "arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Shown is a message of the bot that users see now.
type Shown struct {
	ID   string
	Text string
	Stop string // the data of the button that stops a turn, "" for none
	// Buttons are all its buttons.
	Buttons string
}

// previewCases are the cases of messages that show the progress of a turn and become its answer.
func previewCases() []testCase {
	shows := func(p Platform) bool { return p.Previews }
	refused := func(f Fault) func(*fixture) {
		return func(b *fixture) { answerWhileEditsFail(b, f) }
	}
	return []testCase{
		{"preview becomes the answer", shows, previewBecomesAnswer},
		{"preview of a long text", shows, previewOfLongText},
		{"preview without an answer", shows, previewWithoutAnswer},
		{"preview that a user deletes", shows, previewDeleted},
		{"preview over a restart", shows, previewOverRestart},
		{"preview answered while down", shows, previewAnsweredWhileDown},
		{"crash before a preview is recorded", shows, crashBeforePreviewIsRecorded},
		{"answer whose edit is refused", shows, refused(Fault{Class: msg.Permanent})},
		{"answer whose edit has to wait", shows, refused(Fault{Class: msg.Rate, After: 2 * time.Second})},
		{"answer whose edit may have arrived", shows, refused(Fault{Class: msg.Ambiguous})},
		{"answer whose edit has arrived", shows, refused(Fault{Class: msg.Ambiguous, Arrived: true})},
	}
}

// PreviewCases are the names of the cases of previews.
func PreviewCases() (names []string) {
	for _, c := range previewCases() {
		names = append(names, c.name)
	}
	return names
}

// work is a turn of the first chat that an agent works on.
type work struct {
	*fixture
	run  *msg.Run
	turn *msg.Turn
}

// agent begins to work on a message.
func (b *fixture) agent() *work {
	b.Helper()
	const folder = "shown"
	chat, now, in := b.platform.Chats[0], time.Now().UnixMilli(), Stream{}
	if b.platform.Stream != nil {
		in = *b.platform.Stream
	}
	b.runs++
	w := &work{
		b, &msg.Run{Folder: folder, ChatJID: chat, ThreadID: in.Thread, Topic: fmt.Sprint("#", b.runs), StartedAt: now},
		&msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: chat, ThreadID: in.Thread, Topic: in.Thread,
			Place: in.Thread, CreatedAt: now},
	}
	b.write(func(tx *store.Tx) error {
		if _, err := tx.PutGroup(&msg.Group{Folder: folder, Config: []byte(`{"progress":"live"}`)}); err != nil {
			return err
		}
		trigger := &msg.Message{ChatJID: chat, ThreadID: in.Thread, Sender: in.Asker, Direction: msg.In,
			Content: "do something", Timestamp: now, ReceivedAt: now}
		if _, _, err := tx.PutMessage(trigger); err != nil {
			return err
		}
		w.turn.TriggerMessageID = trigger.ID
		if _, err := gatedtest.PutTurn(tx, w.turn, 0); err != nil {
			return err
		}
		return gatedtest.StartRun(tx, w.run, w.turn.ID)
	})
	return w
}

// writes stores the answer so far.
func (w *work) writes(text string) {
	w.Helper()
	w.pass(time.Millisecond) // progress is never stored twice at once
	w.write(func(tx *store.Tx) error {
		return gatedtest.PutProgress(tx, *w.run, w.turn.ID, &store.Progress{State: agentproto.StatusRunning, Text: text,
			UpdatedAt: time.Now().UnixMilli()})
	})
}

// answers ends the turn with an answer, and waits until that is delivered.
func (w *work) answers(text string) {
	w.Helper()
	w.over(text)
	w.delivered()
}

// over ends the turn with an answer.
func (w *work) over(text string) {
	w.Helper()
	w.write(func(tx *store.Tx) error {
		return gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: w.run.ID, TurnID: w.turn.ID, Text: text, Final: true},
			time.Now().UnixMilli())
	})
}

// delivered waits until the answer is delivered.
func (w *work) delivered() {
	w.Helper()
	w.within(time.Hour, "the delivery of the answer", func() bool {
		rows, err := factrows.TurnReplies(w.Context(), w.store.Reader, w.turn.ID)
		if err != nil {
			w.Fatal(err)
		}
		return len(rows) == 1 && rows[0].OutState == msg.OutSent
	})
	w.noneOpen()
}

// noneOpen waits until no preview is open.
func (b *fixture) noneOpen() {
	b.Helper()
	b.within(time.Hour, "the end of the previews", func() bool {
		all, err := adapterrows.Previews(b.Context(), b.store.Reader, b.platform.Name)
		if err != nil {
			b.Fatal(err)
		}
		return !slices.ContainsFunc(all, func(p adapterrows.Preview) bool { return p.Open() })
	})
}

// shows waits until a preview shows a text, with its button, and returns its id.
func (w *work) shows(text string) (id string) {
	w.Helper()
	w.within(time.Minute, fmt.Sprintf("a preview of %.40q", text), func() bool {
		for _, s := range w.remote.Shown() {
			if strings.Contains(s.Text, text) {
				if id = s.ID; w.platform.Stream == nil && s.Stop != msg.StopData(w.turn.ID) {
					w.Errorf("the button of the preview has the data %q", s.Stop)
				}
				return true
			}
		}
		return false
	})
	return id
}

// expectAnswer compares the messages of the bot with others and the answer, whose only button takes the turn back.
func (w *work) expectAnswer(id, text string, others ...Shown) {
	w.Helper()
	w.expectShown(append(others, Shown{ID: id, Text: text, Buttons: w.undo()})...)
}

// undo are the buttons of an answer of the turn.
func (w *work) undo() string {
	if !w.platform.Questions {
		return ""
	}
	return Buttons(map[string]string{msg.UndoLabel: msg.UndoData(w.turn.ID)})
}

// expectShown compares the messages of the bot with those expected.
func (b *fixture) expectShown(want ...Shown) {
	b.Helper()
	if got := b.remote.Shown(); !slices.Equal(got, want) {
		b.Errorf("users see %+v, want %+v", got, want)
	}
}

func previewBecomesAnswer(b *fixture) {
	b.start()
	w := b.agent()
	w.writes("half of")
	id := w.shows("half of")
	w.writes("half of it")
	if again := w.shows("half of it"); again != id {
		b.Errorf("it is shown by %s, then by %s", id, again)
	}
	w.answers("all of it")
	w.expectAnswer(id, "all of it")
}

// previewOfLongText shows the end of a text.
func previewOfLongText(b *fixture) {
	b.start()
	w := b.agent()
	w.writes(strings.Repeat("word ", 4000) + "at the end")
	id := w.shows("at the end")
	for _, s := range b.remote.Shown() {
		if b.platform.TooLong != nil && b.platform.TooLong(s.Text) {
			b.Errorf("the preview is too long: %d bytes", len(s.Text))
		}
	}
	w.answers("short")
	w.expectAnswer(id, "short")
}

func previewWithoutAnswer(b *fixture) {
	b.start()
	w := b.agent()
	w.writes("half of")
	w.shows("half of")
	b.write(func(tx *store.Tx) error {
		return gatedtest.CancelTurn(tx, w.turn.ID, msg.ReasonStopped, time.Now().UnixMilli())
	})
	b.noneOpen()
	b.expectShown()
}

// previewDeleted gets no other one, and the answer is a message of its own.
func previewDeleted(b *fixture) {
	b.start()
	w := b.agent()
	w.writes("half of")
	id := w.shows("half of")
	b.remote.Delete(id)
	w.writes("half of it")
	b.pass(time.Minute)
	b.expectShown()
	w.answers("all of it")
	got := b.remote.Shown()
	if len(got) != 1 || got[0].ID == id || got[0].Text != "all of it" || got[0].Stop != "" {
		b.Errorf("users see %+v", got)
	}
}

func previewOverRestart(b *fixture) {
	stop := b.start()
	w := b.agent()
	w.writes("half of")
	id := w.shows("half of")
	stop()
	b.start()
	w.writes("half of it")
	if again := w.shows("half of it"); again != id {
		b.Errorf("it is shown by %s, then by %s", id, again)
	}
	w.answers("all of it")
	w.expectAnswer(id, "all of it")
}

func previewAnsweredWhileDown(b *fixture) {
	stop := b.start()
	w := b.agent()
	w.writes("half of")
	id := w.shows("half of")
	stop()
	w.over("all of it")
	b.start()
	w.delivered()
	w.expectAnswer(id, "all of it")
}

// crashBeforePreviewIsRecorded leaves a message that says nothing, and has no button.
func crashBeforePreviewIsRecorded(b *fixture) {
	b.exec(`CREATE TRIGGER no BEFORE UPDATE ON previews BEGIN SELECT raise(ABORT, 'no'); END`)
	stop := b.start()
	w := b.agent()
	w.writes("half of")
	b.until("a preview", func() bool { return len(b.remote.Shown()) > 0 })
	left := b.remote.Shown()[0]
	if !strings.Contains(left.Text, adapter.PreviewStart) || left.Stop != "" {
		b.Errorf("the first content of the preview is %+v", left)
	}
	stop()
	b.exec(`DROP TRIGGER no`)
	b.start()
	id := w.shows("half of")
	w.answers("all of it")
	w.expectAnswer(id, "all of it", left)
}

// answerWhileEditsFail sends the answer while its first edit fails: it is there once, as a new message, without a
// preview.
func answerWhileEditsFail(b *fixture, f Fault) {
	b.start()
	w := b.agent()
	w.writes("half of")
	id := w.shows("half of")
	b.pass(10 * time.Second) // no news: no other edit
	b.remote.FailEdit(f)
	w.answers("all of it")
	got := b.remote.Shown()
	if len(got) != 1 || got[0].Text != "all of it" || got[0].Stop != "" || got[0].ID == id {
		b.Errorf("users see %+v, the preview was %s", got, id)
	}
}
