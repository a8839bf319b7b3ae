package adapter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPreview_MessageGone_AnswerIsSentAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		p.mu.Lock()
		delete(p.texts, "p1") // a moderator's work
		p.mu.Unlock()
		a.finish()
		expectTexts(t, p, map[string]string{"id of done": "done"})
		r.expectEnded("final 1, removed 1")
	})
}

// The edit is refused for another reason: the message is still there.
func TestPreview_EditRefused_AnswerIsSentAnewAndPreviewRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		p.script("edit p1: done", fails(refusal(msg.Permanent, "no")))
		a.finish()
		expectTexts(t, p, map[string]string{"id of done": "done"})
		r.expectEnded("final 1, removed 1")
	})
}

// Only an edit that has not reached the platform is tried again: whatever else it ends with, the answer is a new message
// within seconds.
func TestPreview_EditFails_AnswerIsSentAnew(t *testing.T) {
	asNew, asEdit := map[string]string{"id of done": "done"}, map[string]string{"p1": "done"}
	for name, tt := range map[string]struct {
		try   outcome
		texts map[string]string
		ended string
	}{
		"ambiguous": {fails(refusal(msg.Ambiguous, "no")), asNew, "final 1, removed 1"},
		"transient": {fails(refusal(msg.Transient, "no")), asNew, "final 1, removed 1"},
		"rate":      {fails(failure(msg.Rate, time.Hour)), asNew, "final 1, removed 1"},
		"hang":      {takes(time.Hour), asNew, "final 1, removed 1"},
		"unsent":    {fails(&Failure{Class: msg.Transient, Err: ErrUnsent}), asEdit, "final 1"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p, a := r.live()
				p.script("edit p1: done", tt.try)
				a.answers("done", true)
				pass(10 * time.Second)
				expectTexts(t, p, tt.texts)
				r.expectEnded(tt.ended)
			})
		})
	}
}

// A new message that may have been made stays behind, with neutral text.
func TestPreview_MakingFails(t *testing.T) {
	for class, want := range map[msg.ErrorClass]string{
		msg.Ambiguous: "final 1, lost 1", msg.Rate: "final 1, removed 1", msg.Permanent: "removed 1",
	} {
		t.Run(string(class), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p := r.previewer(messages)
				p.script("show in irc:room: Working on it…", fails(refusal(class, "no")))
				r.start()
				a := r.agent(room, "", groupconfig.ProgressLive)
				a.says("One", "")
				pass(10 * time.Second)
				a.says("One two", "")
				pass(10 * time.Second)
				a.finish()
				if n := len(p.texts); n != 1 {
					t.Errorf("the chat shows %q", p.texts)
				}
				r.expectEnded(want)
			})
		})
	}
}

func TestPreview_ChangeRefused_IsRemovedAndNotMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		p.script("show p1 in irc:room: One", fails(refusal(msg.Permanent, "no")))
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(10 * time.Second)
		a.says("Two", "")
		pass(time.Minute)
		expectTexts(t, p, map[string]string{})
		if p.made != 1 {
			t.Errorf("%d previews were made", p.made)
		}
		r.expectEnded("removed 1")
	})
}

// A change without an answer may be carried out after the answer of the turn, which it must not replace.
func TestPreview_ChangeUnanswered_NeverReplacesTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		p.script("show p1 in irc:room: One two", func(ctx context.Context) error {
			time.AfterFunc(20*time.Second, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				if _, there := p.texts["p1"]; there {
					p.texts["p1"] = "One two"
				}
			})
			<-ctx.Done()
			return refusal(msg.Ambiguous, "no answer")
		})
		a.says("One two", "")
		pass(4 * time.Second)
		a.finish()
		expectTexts(t, p, map[string]string{"id of done": "done"})
		r.expectEnded("removed 1")
	})
}

func TestPreview_RemovalFails_IsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		p.script("remove p1", fails(refusal(msg.Transient, "later")), fails(refusal(msg.Ambiguous, "later")))
		a.cancelled()
		pass(time.Minute)
		expectTexts(t, p, map[string]string{})
		r.expectEnded("removed 1")
	})
}

// A crash between making a preview and storing its id leaves it, and the turn goes on with another.
func TestPreview_CrashWhileItIsMade_IsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.previewer(messages)
		a := r.agent(room, "", groupconfig.ProgressLive)
		r.write(func(tx *store.Tx) error { _, err := tx.BeginPreview(a.turn.ID, 1); return err })
		r.start()
		a.says("One", "")
		pass(10 * time.Second)
		a.finish()
		r.expectEnded("final 1, lost 1")
	})
}

func TestPreview_CrashWhileTheTurnRuns_GoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		stop := r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(10 * time.Second)
		r.crash(stop)
		r.start()
		a.says("One two", "")
		pass(10 * time.Second)
		a.finish()
		expectTexts(t, p, map[string]string{"p1": "done"})
		r.expectEnded("final 1")
	})
}

func TestPreview_TurnEndsWhileTheAdapterIsDown_IsRemoved(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		stop := r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(10 * time.Second)
		stop()
		r.write(func(tx *store.Tx) error { return tx.CancelTurn(a.turn.ID, msg.ReasonStopped, 1) })
		r.start()
		pass(time.Minute)
		expectTexts(t, p, map[string]string{})
		r.expectEnded("removed 1")
	})
}

// The edit may have arrived: it is done again.
func TestPreview_CrashWhileItBecomesTheAnswer_IsEditedAgain(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("gone meanwhile ", again), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p := r.previewer(messages)
				p.script("edit p1: done", takes(time.Hour))
				stop := r.start()
				a := r.agent(room, "", groupconfig.ProgressLive)
				a.says("One", "")
				pass(10 * time.Second)
				a.answers("done", true)
				pass(time.Second)
				r.crash(stop)
				want := map[string]string{"p1": "done"}
				if again {
					delete(p.texts, "p1")
					want = map[string]string{"id of done": "done"}
				}
				r.start()
				pass(time.Minute)
				expectTexts(t, p, want)
			})
		})
	}
}

func TestPreview_Panic_CostsThePreview(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		p.script("show in irc:room: Working on it…", func(context.Context) error { panic("boom") })
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(10 * time.Second)
		a.finish()
		if n := len(p.texts); n != 1 {
			t.Errorf("the chat shows %q", p.texts)
		}
	})
}
