package adapter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// undoer is a previewer with Undo buttons, which stand in the texts.
type undoer struct{ *previewer }

func (r *fixture) undoer() *undoer {
	u := &undoer{r.previewer(messages)}
	u.cut = func(m *msg.Message) ([]Part, error) {
		parts := pieces(m.Content)
		if last := len(parts) - 1; m.UndoUntil != 0 {
			parts[last] = fmt.Sprintf("%s [Undo %d]", parts[last], m.TurnID)
		}
		return parts, nil
	}
	r.as = u
	return u
}

func (u *undoer) RemoveUndo(ctx context.Context, m *msg.Message, part Part, id string) error {
	if err := u.try(ctx, m.ID, "remove from "+id); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.texts[id] = textOf(part)
	return nil
}

// removals are the calls that removed buttons, each with the time that had passed.
func (u *undoer) removals() (all []string) {
	for _, c := range u.log() {
		if text, ok := strings.CutPrefix(c, "remove from id of "); ok {
			all = append(all, text)
		}
	}
	return all
}

// shows are the texts that users see.
func (u *undoer) shows() map[string]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[string]bool{}
	for text := range maps.Values(u.texts) {
		all[text] = true
	}
	return all
}

func (u *undoer) expect(t *testing.T, want ...string) {
	t.Helper()
	all := map[string]bool{}
	for _, text := range want {
		all[text] = true
	}
	if diff := cmp.Diff(all, u.shows()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func expectRemovals(t *testing.T, u *undoer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, u.removals()); diff != "" {
		t.Errorf("removals (-want +got):\n%s", diff)
	}
}

// answered is a turn in a thread that ends with an answer.
func (r *fixture) answered(thread, text string) *agent {
	r.t.Helper()
	a := r.agent(room, thread, groupconfig.ProgressOff)
	a.answers(text, true)
	pass(time.Second)
	return a
}

func TestUndoButton_LastPartOfTheLastText_HasItForTenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		u := r.undoer()
		r.start()
		r.out("", "a notice")
		a := r.agent(room, "", groupconfig.ProgressOff)
		a.answers("half", false)
		a.answers("one|two", true)
		pass(msg.UndoTime - time.Second)
		u.expect(t, "a notice", "half", "one", "two [Undo 1]")
		pass(undoInterval)
		u.expect(t, "a notice", "half", "one", "two")
		pass(time.Hour)
		expectRemovals(t, u, "two [Undo 1] @10m0s")
	})
}

func TestUndoButton_Preview_EndsWithIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		u := r.undoer()
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("half", "")
		pass(5 * time.Second)
		a.answers("all", true)
		pass(5 * time.Second)
		expectTexts(t, u.previewer, map[string]string{"p1": "all [Undo 1]"})
		pass(msg.UndoTime)
		expectTexts(t, u.previewer, map[string]string{"p1": "all"})
	})
}

// A restart knows the buttons, those that were due while no process ran, too.
func TestUndoButton_Restart_RemovesItInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		down time.Duration
		want string
	}{
		"before": {time.Minute, "@10m2s"},
		"late":   {15 * time.Minute, "@15m2s"},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			u := r.undoer()
			stop := r.start()
			r.answered("", "one")
			r.answered("t", "two")
			stop()
			pass(tt.down)
			r.start()
			pass(time.Hour)
			u.expect(t, "one", "two")
			if all := u.removals(); len(all) != 2 || !strings.HasSuffix(all[0], tt.want) {
				t.Errorf("removed: %q, want the first %s", all, tt.want)
			}
		})
	}
}

func TestUndoButton_AnswersThatHaveNone(t *testing.T) {
	undone := func(r *fixture) {
		r.write(func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET undone_at = 1`) })
	}
	for name, before := range map[string]func(*fixture){
		"delivered late": func(*fixture) { pass(msg.UndoTime) },
		"undone":         undone,
		"with no conversation": func(r *fixture) {
			r.write(func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET kind = 'delegated'`) })
		},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			u := r.undoer()
			a := r.agent(room, "", groupconfig.ProgressOff)
			r.wake = make(chan struct{}, 2)
			a.answers("one", true)
			before(r)
			r.start()
			pass(time.Minute)
			u.expect(t, "one")
		})
	}
}

// A removal is tried again once, after a failure that may pass.
func TestUndoButton_RemovalFails_IsDropped(t *testing.T) {
	for class, want := range map[msg.ErrorClass][]string{
		msg.Permanent: {"one [Undo 1] @10m0s"},
		msg.Transient: {"one [Undo 1] @10m0s", "one [Undo 1] @10m5s"},
		msg.Rate:      {"one [Undo 1] @10m0s", "one [Undo 1] @10m20s"},
	} {
		runInBubble(t, string(class), func(t *testing.T, r *fixture) {
			u := r.undoer()
			r.start()
			r.answered("", "one")
			err := &Failure{Class: class, After: map[msg.ErrorClass]time.Duration{msg.Rate: 20 * time.Second}[class], Err: errors.New("no")}
			u.script("remove from id of one [Undo 1]", fails(err), fails(err), fails(err))
			pass(time.Hour)
			u.expect(t, "one [Undo 1]")
			expectRemovals(t, u, want...)
		})
	}
}

// An edit has no buttons.
func TestUndoButton_ChangedAnswer_IsLeftAlone(t *testing.T) {
	for _, kind := range []msg.Kind{msg.KindEdit, msg.KindDelete, msg.KindReaction} {
		runInBubble(t, string(kind), func(t *testing.T, r *fixture) {
			u := r.undoer()
			r.start()
			r.answered("", "one")
			answer, err := r.store.MessageByPlatformID(t.Context(), room, idOf("one [Undo 1]"))
			if err != nil {
				t.Fatal(err)
			}
			r.write(func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, Direction: msg.Out, Kind: kind, OutState: msg.OutQueued, DerivedFrom: answer.ID, Content: "👍"})
				return err
			})
			pass(time.Hour)
			if n := len(u.removals()); n != map[msg.Kind]int{msg.KindReaction: 1}[kind] {
				t.Errorf("%d removals", n)
			}
		})
	}
}

// An edit that comes while a button is being removed is sent after it, since the removal may repeat the old text.
func TestUndoButton_EditMeanwhile_IsSentAfterTheRemoval(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		u := r.undoer()
		r.start()
		r.answered("", "one")
		answer, err := r.store.MessageByPlatformID(t.Context(), room, idOf("one [Undo 1]"))
		if err != nil {
			t.Fatal(err)
		}
		edit := int64(0)
		u.script("remove from id of one [Undo 1]", func(ctx context.Context) error {
			edit = r.changed(msg.KindEdit, answer.ID, "two")
			r.look()
			Pause(ctx, time.Second)
			r.expect(edit, "queued:")
			return nil
		})
		pass(time.Hour)
		r.expect(edit, "sent: sent")
	})
}

// While the account must wait, no button is removed.
func TestUndoButton_AccountWaits_IsRemovedLater(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		u := r.undoer()
		r.start()
		r.answered("", "one")
		r.running.admission.hold(msg.UndoTime + time.Minute)
		pass(time.Hour)
		if all := u.removals(); len(all) != 1 || !strings.HasPrefix(all[0], "one [Undo 1] @11m5s") {
			t.Errorf("removed: %q", all)
		}
	})
}

// The platform refuses to delete a message of a turn that was taken back.
func TestDeliver_DeletionOfAnUndoFails_TextIsReplaced(t *testing.T) {
	for name, tt := range map[string]struct {
		set  string // of the turn
		kind msg.Kind
		want string
	}{
		"text":             {`undone_at = 1`, msg.KindMessage, "edit " + msg.TakenBack},
		"file":             {`undone_at = 1`, msg.KindFile, ""},
		"done again since": {`undone_at = NULL`, msg.KindMessage, ""},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			r.undoer()
			r.start()
			a := r.answered("", "one")
			answer, err := r.store.MessageByPlatformID(t.Context(), room, idOf("one [Undo 1]"))
			if err != nil {
				t.Fatal(err)
			}
			r.exec(`UPDATE turns SET ` + tt.set)
			r.exec(`UPDATE messages SET kind = '` + string(tt.kind) + `' WHERE id = ` + fmt.Sprint(answer.ID))
			r.platform.script("deletion", fails(&Failure{Class: msg.Permanent, Err: errCause}))
			r.write(func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, Direction: msg.Out, Kind: msg.KindDelete, Content: "deletion", OutState: msg.OutQueued, DerivedFrom: answer.ID, Source: msg.SourceNotice})
				return err
			})
			pass(time.Minute)
			changes, err := r.store.DerivedFrom(t.Context(), answer.ID)
			if err != nil || len(changes) == 0 || changes[0].OutState != msg.OutFailed {
				t.Fatal(changes, err)
			}
			got := ""
			for _, c := range changes[1:] {
				got += string(c.Kind) + " " + c.Content
			}
			if got != tt.want {
				t.Errorf("turn %d: %q, want %q", a.turn.ID, got, tt.want)
			}
		})
	}
}

// undoPress is a press of the button that takes a turn back, as a platform reports it.
func undoPress(id string, turn int64) Inbound {
	return Inbound{Messages: []*msg.Message{{
		ChatJID: room, PlatformID: id, Sender: asker, TargetID: "m", Verb: msg.VerbAnswer, Content: msg.Press{Undo: turn, Text: msg.UndoLabel}.JSON(),
	}}}
}

// The row of a press gets the place of the answer. Its user reads whether it comes too late.
func TestReceivePress_Undo_TakenForTenMinutes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.undoer()
		r.start()
		a := r.agent(room, "t", groupconfig.ProgressOff)
		press := func(id string, turn int64, want, thread string) {
			t.Helper()
			in := undoPress(id, turn)
			notice, err := r.running.ReceivePress(t.Context(), in)
			if row := r.row(in.Messages[0].ID); err != nil || notice != want || row.ThreadID != thread || row.Topic != thread || row.Content != in.Messages[0].Content {
				t.Errorf("%s: %q, %v, the row is %+v", id, notice, err, row)
			}
		}
		askedBy := func(sender string) {
			t.Helper()
			r.write(func(tx *store.Tx) error {
				return tx.Exec(`UPDATE messages SET sender = ?, turn_id = ? WHERE id = ?`, sender, a.turn.ID, a.turn.TriggerMessageID)
			})
		}
		askedBy(asker)
		const old = "The button is too old: write /undo."
		press("forged", a.turn.ID, old, "")
		a.answers("one", true)
		press("taken", a.turn.ID, "", "t")
		press("another turn", a.turn.ID+1, old, "")
		askedBy("test:other")
		press("of another user", a.turn.ID, othersNotice, "t")
		askedBy(asker)
		r.write(func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET undone_at = 1`) })
		press("again", a.turn.ID, undoneNotice, "t")
		r.write(func(tx *store.Tx) error { return tx.Exec(`UPDATE turns SET undone_at = NULL`) })
		pass(msg.UndoTime)
		press("at the end", a.turn.ID, "", "t")
		pass(time.Second)
		press("late", a.turn.ID, old, "")
	})
}
