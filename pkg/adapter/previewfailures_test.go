package adapter

import (
	"context"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/chatmove"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// stage is a chat in which the preview of a turn shows "One".
type stage struct {
	*fixture
	p    *previewer
	a    *agent
	stop func()
}

// gone deletes the message of the preview, as a moderator may.
func (s *stage) gone() {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.texts, "p1")
}

// below stores a message of a user, or a reaction.
func (s *stage) below(verb, thread string) {
	s.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, ThreadID: thread, Direction: msg.In, PlatformID: "below", Verb: verb,
			Content: "x", ReceivedAt: time.Now().UnixMilli()})
		return err
	})
	pass(time.Second)
	s.a.finish()
}

// next goes on with the turn after its preview was removed: the next one stands below.
func (s *stage) next() {
	pass(10 * time.Second)
	s.expectEnded("removed 1")
	s.a.says("One two", "")
	pass(10 * time.Second)
	s.a.finish()
}

// previewCase is what happens to a preview, and what is left.
type previewCase struct {
	script map[string][]outcome // of the first tries of calls
	act    func(*stage)
	texts  map[string]string
	ended  string
}

func runPreviewCases(t *testing.T, cases map[string]previewCase) {
	for name, tt := range cases {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			s := &stage{fixture: r, p: r.previewer(messages)}
			for call, tries := range tt.script {
				s.p.script(call, tries...)
			}
			s.stop = r.start()
			s.a = r.agent(room, "", groupconfig.ProgressLive)
			s.a.says("One", "")
			pass(10 * time.Second)
			tt.act(s)
			expectTexts(t, s.p, tt.texts)
			r.expectEnded(tt.ended)
		})
	}
}

func TestPreview_CallFails(t *testing.T) {
	finish := func(s *stage) { s.a.finish() }
	soon := func(s *stage) { s.a.answers("done", true); pass(10 * time.Second) }
	asNew, asEdit, nothing := map[string]string{"id of done": "done"}, map[string]string{"p1": "done"}, map[string]string{}
	edit := func(try outcome) map[string][]outcome { return map[string][]outcome{"edit p1: done": {try}} }
	runPreviewCases(t, map[string]previewCase{
		"the message is gone": {nil, func(s *stage) { s.gone(); s.a.finish() }, asNew, "final 1, removed 1"},
		// the message is still there
		"the edit is refused": {edit(fails(refusal(msg.Permanent, "no"))), finish, asNew, "final 1, removed 1"},
		// Only an edit that has not reached the platform is tried again: whatever else it ends with, the answer is a new
		// message within seconds.
		"the edit may have arrived": {edit(fails(refusal(msg.Ambiguous, "no"))), soon, asNew, "final 1, removed 1"},
		"the edit fails":            {edit(fails(refusal(msg.Transient, "no"))), soon, asNew, "final 1, removed 1"},
		"the edit has to wait":      {edit(fails(failure(msg.Rate, time.Hour))), soon, asNew, "final 1, removed 1"},
		"the edit hangs":            {edit(takes(time.Hour)), soon, asNew, "final 1, removed 1"},
		"the edit is unsent":        {edit(fails(&Failure{Class: msg.Transient, Err: ErrUnsent})), soon, asEdit, "final 1"},
		"a change is refused: no other preview is made": {
			map[string][]outcome{"show p1 in irc:room: One": {fails(refusal(msg.Permanent, "no"))}},
			func(s *stage) { s.a.says("Two", ""); pass(time.Minute) }, nothing, "removed 1",
		},
		"the removal fails": {
			map[string][]outcome{"remove p1": {fails(refusal(msg.Transient, "later")), fails(refusal(msg.Ambiguous, "later"))}},
			func(s *stage) { s.a.cancelled(); pass(time.Minute) }, nothing, "removed 1",
		},
		// It may be carried out after the answer of the turn, which it must not replace.
		"a change is not answered": {nil, func(s *stage) {
			s.p.script("show p1 in irc:room: One two", func(ctx context.Context) error {
				time.AfterFunc(20*time.Second, func() {
					s.p.mu.Lock()
					defer s.p.mu.Unlock()
					if _, there := s.p.texts["p1"]; there {
						s.p.texts["p1"] = "One two"
					}
				})
				<-ctx.Done()
				return refusal(msg.Ambiguous, "no answer")
			})
			s.a.says("One two", "")
			pass(4 * time.Second)
			s.a.finish()
		}, asNew, "removed 1"},
		"the chat is moved while it becomes the answer": {nil, func(s *stage) {
			s.p.script("edit p1: done", func(context.Context) error {
				s.write(func(tx *store.Tx) error { return chatmove.Move(tx, room, "irc:new", 1) })
				return refusal(msg.Transient, "moved")
			})
			s.a.finish()
		}, map[string]string{"p1": "One", "id of done": "done"}, "final 1"},
	})
}

func TestPreview_ShellEnds(t *testing.T) {
	becomes := func(meanwhile func(*stage)) func(*stage) {
		return func(s *stage) {
			s.a.answers("done", true)
			pass(time.Second)
			s.crash(s.stop)
			meanwhile(s)
			s.start()
			pass(time.Minute)
		}
	}
	hangs := map[string][]outcome{"edit p1: done": {takes(time.Hour)}}
	runPreviewCases(t, map[string]previewCase{
		"while the turn runs": {nil, func(s *stage) {
			s.crash(s.stop)
			s.start()
			s.a.says("One two", "")
			pass(10 * time.Second)
			s.a.finish()
		}, map[string]string{"p1": "done"}, "final 1"},
		"before the turn is cancelled": {nil, func(s *stage) {
			s.stop()
			s.write(func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, s.a.turn.ID, msg.ReasonStopped, 1) })
			s.start()
			pass(time.Minute)
		}, map[string]string{}, "removed 1"},
		// The edit may have arrived: it is done again.
		"while it becomes the answer": {hangs, becomes(func(*stage) {}), map[string]string{"p1": "done"}, ""},
		"while it becomes the answer, and is deleted": {hangs, becomes((*stage).gone),
			map[string]string{"id of done": "done"}, "removed 1"},
	})
}

// A new message that may have been made stays behind, with neutral text.
func TestPreview_MakingFails(t *testing.T) {
	for class, want := range map[msg.ErrorClass]string{
		msg.Ambiguous: "final 1, lost 1", msg.Rate: "final 1, removed 1", msg.Permanent: "removed 1",
	} {
		runInBubble(t, string(class), func(t *testing.T, r *fixture) {
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
	}
}

// A crash between making a preview and storing its id leaves it, and the turn goes on with another.
func TestPreview_CrashWhileItIsMade_IsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.previewer(messages)
		a := r.agent(room, "", groupconfig.ProgressLive)
		r.write(func(tx *store.Tx) error { _, err := rows.BeginPreview(tx, a.turn.ID, 1); return err })
		r.start()
		a.says("One", "")
		pass(10 * time.Second)
		a.finish()
		r.expectEnded("final 1, lost 1")
	})
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
