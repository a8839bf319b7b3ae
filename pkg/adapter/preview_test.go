package adapter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// direct is a chat of one user, as far as the platform's tests store it.
const direct = platform + ":direct"

// previewer is a platform with messages that can be changed. It notes what a chat shows, and every call.
type previewer struct {
	*fake
	pace  PreviewPace
	began time.Time
	made  int
	texts map[string]string // of messages, by id
}

func (r *fixture) previewer(pace PreviewPace) *previewer {
	p := &previewer{fake: r.platform, pace: pace, began: time.Now(), texts: map[string]string{}}
	r.as = p
	return p
}

// messages is the pace of previews that are messages.
var messages = PreviewPace{Every: 3 * time.Second}

func (p *previewer) PreviewPace(store.Lane) PreviewPace { return p.pace }

// try notes a call, and returns how it ends.
func (p *previewer) try(ctx context.Context, row int64, text string) error {
	p.mu.Lock()
	p.calls = append(p.calls, call{row, text, time.Now()})
	var try outcome
	if script := p.scripts[text]; len(script) > 0 {
		try, p.scripts[text] = script[0], script[1:]
	}
	p.mu.Unlock()
	if try == nil {
		return nil
	}
	return try(ctx)
}

func (p *previewer) ShowPreview(ctx context.Context, v *Preview) (string, error) {
	text := strings.Trim(v.Text+" / "+v.Line, " /")
	if err := p.try(ctx, 0, fmt.Sprintf("show %s: %s", strings.TrimPrefix(v.PlatformID+" in "+v.In.ChatJID, " "), text)); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pace.Expires > 0 {
		return "", nil
	}
	id := v.PlatformID
	if id == "" {
		p.made++
		id = fmt.Sprint("p", p.made)
	} else if _, there := p.texts[id]; !there {
		return "", refusal(msg.Permanent, "no such message")
	}
	p.texts[id] = text
	return id, nil
}

func refusal(class msg.ErrorClass, text string) error {
	return &Failure{Class: class, Err: errors.New(text)}
}

func (p *previewer) RemovePreview(ctx context.Context, _ store.Lane, id string) error {
	if err := p.try(ctx, 0, "remove "+id); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.texts, id)
	return nil
}

// takenOver is the part that makes a preview the answer.
type takenOver struct{ id, text string }

func (takenOver) Repeatable() bool { return true }

func (p *previewer) TakeOver(part Part, id string) (Part, bool) {
	text := textOf(part)
	return takenOver{id, text}, strings.HasPrefix(id, "p") && !strings.HasPrefix(text, "file")
}

func (p *previewer) Send(ctx context.Context, m *msg.Message, part Part) (string, error) {
	edit, ok := part.(takenOver)
	if !ok {
		id, err := p.fake.Send(ctx, m, part)
		if err == nil {
			p.mu.Lock()
			p.texts[id] = textOf(part)
			p.mu.Unlock()
		}
		return id, err
	}
	if err := p.try(ctx, m.ID, "edit "+edit.id+": "+edit.text); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.texts[edit.id]; !there {
		return "", refusal(msg.Permanent, "no such message")
	}
	p.texts[edit.id] = edit.text
	return "", nil
}

// log lists the calls, each with the seconds that had passed.
func (p *previewer) log() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		all = append(all, fmt.Sprintf("%s @%s", c.Text, c.At.Sub(p.began)))
	}
	return all
}

func expectCalls(t *testing.T, p *previewer, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, p.log()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// expectTexts compares what the chat shows, with the ids of the messages.
func expectTexts(t *testing.T, p *previewer, want map[string]string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.texts); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// agent is a turn under way.
type agent struct {
	r    *fixture
	run  *msg.Run
	turn *msg.Turn
}

// agent begins a turn in a chat, of a group whose progress is shown in a mode.
func (r *fixture) agent(chat, thread string, mode groupconfig.Progress) *agent {
	r.t.Helper()
	folder := "group" + string(mode)
	turn := &msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: chat, ThreadID: thread, Place: thread, ReplyTo: "asked", CreatedAt: 1}
	r.runs++
	run := &msg.Run{Folder: folder, Topic: fmt.Sprint("#", r.runs), ChatJID: chat, ThreadID: thread, StartedAt: time.Now().UnixMilli()}
	trigger := &msg.Message{ChatJID: chat, ThreadID: thread, Direction: msg.In, Content: "do something"}
	r.write(func(tx *store.Tx) (err error) {
		if _, err := tx.PutGroup(&msg.Group{Folder: folder, Config: fmt.Appendf(nil, `{"progress":%q}`, mode)}); err != nil {
			return err
		}
		if turn.TriggerMessageID, _, err = tx.PutMessage(trigger); err == nil {
			_, err = tx.PutTurn(turn, 0)
		}
		if err == nil {
			err = tx.StartRun(run, turn.ID)
		}
		return err
	})
	return &agent{r, run, turn}
}

// live starts a shell, and a turn in the room whose preview shows "One".
func (r *fixture) live() (*previewer, *agent) {
	r.t.Helper()
	p := r.previewer(messages)
	r.start()
	a := r.agent(room, "", groupconfig.ProgressLive)
	a.says("One", "")
	pass(10 * time.Second)
	return p, a
}

// says stores the answer so far, and the tool that runs, and pokes the shell.
func (a *agent) says(text, tool string) {
	a.r.t.Helper()
	p := &store.Progress{State: agentproto.StatusRunning, Text: text, UpdatedAt: time.Now().UnixMilli()}
	if tool != "" {
		p.Tools = []agentproto.Tool{{ID: "1", Title: tool, Status: agentproto.ToolRunning}}
	}
	a.r.write(func(tx *store.Tx) error { return tx.PutProgress(*a.run, a.turn.ID, p) })
	a.r.look()
	pass(time.Millisecond) // progress is never stored twice at once
}

// finish answers, and waits until that is delivered.
func (a *agent) finish() {
	a.r.t.Helper()
	a.answers("done", true)
	pass(time.Minute)
}

// answers stores a frame, the last one if final, and pokes the shell.
func (a *agent) answers(text string, final bool) {
	a.r.t.Helper()
	a.r.write(func(tx *store.Tx) error {
		return tx.AnswerTurn(store.Reply{RunID: a.run.ID, TurnID: a.turn.ID, Text: text, Final: final}, time.Now().UnixMilli())
	})
	a.r.look()
}

func (a *agent) cancelled() {
	a.r.t.Helper()
	a.r.write(func(tx *store.Tx) error { return tx.CancelTurn(a.turn.ID, msg.ReasonStopped, time.Now().UnixMilli()) })
	a.r.look()
}

// previewsOpen lists the open previews, as in "p1" or "" for one without an id.
func (r *fixture) previewsOpen() (ids []string) {
	r.t.Helper()
	open, err := r.store.OpenPreviews(r.t.Context(), platform)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range open {
		ids = append(ids, p.PlatformID)
	}
	return ids
}

// expectEnded compares how the previews of the last shell have ended, as in "final 1".
func (r *fixture) expectEnded(want string) {
	r.t.Helper()
	var all []string
	for _, state := range []store.PreviewState{store.PreviewFinal, store.PreviewRemoved, store.PreviewLost} {
		if n := testutil.ToFloat64(r.running.counters.previews.WithLabelValues(platform, string(state))); n > 0 {
			all = append(all, fmt.Sprint(state, " ", n))
		}
	}
	if got := strings.Join(all, ", "); got != want {
		r.t.Errorf("previews: %s, want %s", got, want)
	}
	if open := r.previewsOpen(); open != nil {
		r.t.Errorf("open previews: %q", open)
	}
}

func TestPreview_Live_BecomesTheAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("On", "")
		pass(2 * time.Second)
		a.says("One", "")
		a.says("One two", "Read notes.md")
		pass(5 * time.Second)
		a.says("One two", "Read notes.md") // no news
		pass(3 * time.Second)
		a.answers("One two three", true)
		pass(time.Hour)
		expectCalls(t, p, "show in irc:room: Working on it… @1s", "show p1 in irc:room: One two / Read notes.md… @4s", "edit p1: One two three @10.004s")
		expectTexts(t, p, map[string]string{"p1": "One two three"})
		r.expectEnded("final 1")
	})
}

func TestPreview_Status_IsALineAfterAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		r.start()
		a := r.agent(room, "", groupconfig.ProgressStatus)
		a.says("secret thoughts", "Read notes.md")
		pass(14 * time.Second)
		a.says("secret thoughts go on", "")
		pass(time.Minute)
		a.answers("done", true)
		pass(time.Hour)
		expectCalls(t, p, "show in irc:room: Working on it… @10s", "show p1 in irc:room: Read notes.md… @13s",
			"show p1 in irc:room: Writing the answer… @16s", "edit p1: done @1m14.002s")
		r.expectEnded("final 1")
	})
}

func TestPreview_ShortTurn_HasNone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		r.start()
		for _, mode := range []groupconfig.Progress{groupconfig.ProgressLive, groupconfig.ProgressStatus} {
			a := r.agent(room, "", mode)
			a.says("quick", "")
			pass(900 * time.Millisecond)
			a.answers("quick", true)
			pass(time.Hour)
		}
		silent := r.agent(room, "", groupconfig.ProgressLive) // an agent without events
		pass(time.Hour)
		silent.answers("late", true)
		off := r.agent(room, "", groupconfig.ProgressOff)
		off.says("hidden", "")
		pass(time.Hour)
		off.answers("at last", true)
		pass(time.Hour)
		r.expectSent("quick", "quick", "late", "at last")
		if p.made != 0 {
			t.Errorf("calls %q", p.log())
		}
	})
}

func TestPreview_TurnEndsWithoutAnAnswer_IsRemoved(t *testing.T) {
	for name, end := range map[string]func(*agent){
		"silent":    func(a *agent) { a.answers("", true) },
		"cancelled": (*agent).cancelled,
		"requeued": func(a *agent) {
			a.r.write(func(tx *store.Tx) error { return tx.RequeueTurn(a.turn.ID, store.Requeue{}) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p, a := r.live()
				end(a)
				pass(time.Minute) // without a poke
				expectTexts(t, p, map[string]string{})
				r.expectEnded("removed 1")
			})
		})
	}
}

// A row that cannot take over the preview goes out, and the preview above it vanishes; the next one stands below.
func TestPreview_OtherRow_RemovesIt(t *testing.T) {
	for name, put := range map[string]func(*agent){
		"a file":                 func(a *agent) { a.answers("file", false) },
		"a row of another turn":  func(a *agent) { a.r.out("", "else"); a.r.look() },
		"a reply to another one": func(a *agent) { a.row("else") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p, a := r.live()
				put(a)
				pass(10 * time.Second)
				r.expectEnded("removed 1")
				a.says("One two", "")
				pass(10 * time.Second)
				a.finish()
				if got := p.texts["p2"]; got != "done" || len(p.texts) != 2 {
					t.Errorf("the chat shows %q; calls %q", p.texts, p.log())
				}
				r.expectEnded("final 1, removed 1")
			})
		})
	}
}

// asks asks the asker a question, for an hour.
func (a *agent) asks() (asked *msg.Ask) {
	a.r.t.Helper()
	a.r.write(func(tx *store.Tx) (err error) {
		now := time.Now().UnixMilli()
		asked, err = tx.PutAsk(a.turn, &store.Question{
			AskID: "1", Question: "Sure?", Options: []string{"yes", "no"}, Who: msg.Who{Senders: []string{asker}, Label: "Ada"}, Name: "bot",
			ExpiresAt: now + time.Hour.Milliseconds(),
		}, now)
		return err
	})
	a.r.look()
	return asked
}

// row queues a row of the turn that answers no message.
func (a *agent) row(text string) {
	a.r.write(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(&msg.Message{
			ChatJID: a.turn.ChatJID, ThreadID: a.turn.ThreadID, Direction: msg.Out, OutState: msg.OutQueued, Content: text,
			Source: msg.SourceTool, TurnID: a.turn.ID, ReceivedAt: time.Now().UnixMilli(),
		})
		return err
	})
	a.r.look()
}

// A question is a message of its own: an edit would notify no user of it.
func TestPreview_Question_RemovesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		a.asks()
		pass(time.Second)
		r.expectEnded("removed 1")
		for id, text := range p.texts {
			if len(p.texts) != 1 || !strings.Contains(text, "Sure?") || id != idOf(text) {
				t.Errorf("the chat shows %q", p.texts)
			}
		}
	})
}

func TestPreview_Reaction_LeavesIt(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		r.write(func(tx *store.Tx) error {
			_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, Kind: msg.KindReaction,
				Content: "+1", TargetID: "asked", ReceivedAt: time.Now().UnixMilli()})
			return err
		})
		r.look()
		pass(10 * time.Second)
		a.finish()
		if p.texts["p1"] != "done" {
			t.Errorf("the chat shows %q", p.texts)
		}
		r.expectEnded("final 1")
	})
}

func TestPreview_SeveralFrames_EachTakesItsOwnOver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		a.answers("1/2|more", false)
		pass(10 * time.Second)
		a.says("Two", "")
		pass(10 * time.Second)
		a.answers("2/2", true)
		pass(time.Minute)
		expectTexts(t, p, map[string]string{"p1": "1/2", "id of more": "more", "p2": "2/2"})
		r.expectEnded("final 2")
	})
}

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

func TestPreview_EditFails_IsTriedAgain(t *testing.T) {
	for _, class := range []msg.ErrorClass{msg.Ambiguous, msg.Transient, msg.Rate} {
		t.Run(string(class), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p, a := r.live()
				p.script("edit p1: done", fails(refusal(class, "later")))
				a.answers("done", true)
				pass(time.Hour)
				expectTexts(t, p, map[string]string{"p1": "done"})
				r.expectEnded("final 1")
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

func TestPreview_ChatIsMoved_IsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		r.write(func(tx *store.Tx) error { return tx.MoveChat(room, "irc:new", 1) })
		a.run.ChatJID, a.turn.ChatJID = "irc:new", "irc:new"
		a.says("One two", "")
		pass(10 * time.Second)
		a.finish()
		expectTexts(t, p, map[string]string{"p1": "One", "p2": "done"})
		r.expectEnded("final 1, lost 1")
	})
}

// The chat is moved while the answer takes over its preview: the id says nothing there.
func TestPreview_ChatIsMovedWhileItBecomesTheAnswer_AnswerIsSentAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		p.script("edit p1: done", func(context.Context) error {
			r.write(func(tx *store.Tx) error { return tx.MoveChat(room, "irc:new", 1) })
			return refusal(msg.Transient, "moved")
		})
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(10 * time.Second)
		a.finish()
		expectTexts(t, p, map[string]string{"p1": "One", "id of done": "done"})
	})
}

func TestPreview_Expiring_IsShownAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(PreviewPace{Every: time.Second, Expires: 30 * time.Second})
		r.start()
		a := r.agent(direct, "", groupconfig.ProgressLive)
		r.look()
		pass(5 * time.Second)
		a.says("One", "")
		a.says("One two", "")
		pass(40 * time.Second)
		a.answers("done", true)
		pass(time.Hour)
		expectCalls(t, p, "show in irc:direct:  @1s", "show in irc:direct: One @5s", "show in irc:direct: One two @6s",
			"show in irc:direct: One two @26s", "done @45.002s")
		r.expectEnded("")
	})
}

func TestPreview_NeverAfterTheAnswer(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 6 * time.Second, 7 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *fixture) {
				p := r.previewer(messages)
				slow := takes(2 * time.Second)
				p.script("show in irc:room: Working on it…", slow)
				p.script("show p1 in irc:room: One", slow)
				p.script("done", slow)
				p.script("edit p1: done", slow)
				r.start()
				a := r.agent(room, "", groupconfig.ProgressLive)
				a.says("One", "")
				pass(after)
				a.finish()
				texts := p.log()
				if last := texts[len(texts)-1]; !strings.Contains(last, "done") || len(p.texts) != 1 {
					t.Errorf("calls %q, messages %q", texts, p.texts)
				}
			})
		})
	}
}

func TestPreview_SecretsAreHidden(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		r.start(redacting)
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("it is "+secret, "Print "+secret)
		pass(10 * time.Second)
		if got := p.texts["p1"]; got != "it is [redacted] / Print [redacted]…" {
			t.Errorf("the chat shows %q", got)
		}
	})
}

// Answers never wait for a permit that a preview has taken.
func TestPreview_Permits_AreLeftForRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(PreviewPace{Every: time.Second})
		r.start(func(o *Options) {
			o.Pace = Pace{Lane: func(l store.Lane) (string, []Limit) { return l.ChatJID, []Limit{{Every: time.Minute, Burst: 4}} }}
		})
		a := r.agent(room, "", groupconfig.ProgressLive)
		for i := range 30 {
			a.says(fmt.Sprint("text ", i), "")
			pass(time.Second)
		}
		if n := len(p.log()); n != 2 {
			t.Errorf("%d calls: %q", n, p.log())
		}
		before := time.Now()
		a.answers("done|and more", true)
		synctest.Wait()
		if n, took := len(p.log()), time.Since(before); n != 4 || took > time.Second {
			t.Errorf("after %s %q", took, p.log())
		}
	})
}

// What has ended does not stay until a flood of rows is over.
func TestPreview_AccountIsBusy_IsRemovedAmongRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(PreviewPace{Every: time.Second})
		r.start(func(o *Options) { o.Pace = Pace{Account: Limit{Every: time.Second, Burst: 1}} })
		a := r.agent(room, "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(3 * time.Second)
		shown := len(p.log())
		if shown == 0 {
			t.Fatal("nothing is shown")
		}
		for i := range 40 {
			r.outIn(fmt.Sprintf("irc:%d", i%8), "", fmt.Sprint(i))
		}
		r.look()
		pass(2 * time.Second)
		a.answers("", true)
		pass(20 * time.Second)
		if log := p.log()[shown:]; !slices.ContainsFunc(log, func(s string) bool { return strings.HasPrefix(s, "remove") }) {
			t.Errorf("20 s after its end, beside rows that wait: %q", log)
		}
	})
}

func TestPreview_AccountWaits_NoCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(messages)
		p.script("show in irc:room: Working on it…", fails(&Failure{Class: msg.Rate, Account: true, After: time.Minute, Err: errors.New("flood")}))
		r.start()
		a := r.agent(room, "", groupconfig.ProgressLive)
		b := r.agent("irc:other", "", groupconfig.ProgressLive)
		a.says("One", "")
		pass(2 * time.Second)
		b.says("Two", "")
		pass(50 * time.Second)
		if n := len(p.log()); n != 1 {
			t.Errorf("calls %q", p.log())
		}
		pass(time.Minute)
		if n := len(p.texts); n != 2 {
			t.Errorf("the chats show %q", p.texts)
		}
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
