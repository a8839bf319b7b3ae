package adapter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// previewer is a platform with messages that can be changed. It notes what a chat shows, and every call.
type previewer struct {
	*fake
	every time.Duration
	began time.Time
	made  int
	texts map[string]string // of messages, by id
}

func (r *fixture) previewer(every time.Duration) *previewer {
	p := &previewer{fake: r.platform, every: every, began: time.Now(), texts: map[string]string{}}
	r.as = p
	return p
}

// messages is how often previews that are messages are changed.
const messages = 3 * time.Second

func (p *previewer) PreviewEvery(store.Lane) time.Duration { return p.every }

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
			_, err = gatedtest.PutTurn(tx, turn, 0)
		}
		if err == nil {
			err = gatedtest.StartRun(tx, run, turn.ID)
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
	a.r.write(func(tx *store.Tx) error { return gatedtest.PutProgress(tx, *a.run, a.turn.ID, p) })
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
		return gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: a.run.ID, TurnID: a.turn.ID, Text: text, Final: final}, time.Now().UnixMilli())
	})
	a.r.look()
}

func (a *agent) cancelled() {
	a.r.t.Helper()
	a.r.write(func(tx *store.Tx) error {
		return gatedtest.CancelTurn(tx, a.turn.ID, msg.ReasonStopped, time.Now().UnixMilli())
	})
	a.r.look()
}

// previewsOpen lists the open previews, as in "p1" or "" for one without an id.
func (r *fixture) previewsOpen() (ids []string) {
	r.t.Helper()
	all, err := rows.Previews(r.t.Context(), r.store.Reader, platform)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, p := range all {
		if p.Open() {
			ids = append(ids, p.PlatformID)
		}
	}
	return ids
}

// expectEnded compares how the previews of the last shell have ended, as in "final 1".
func (r *fixture) expectEnded(want string) {
	r.t.Helper()
	var all []string
	for _, state := range []rows.PreviewState{rows.PreviewFinal, rows.PreviewRemoved, rows.PreviewLost} {
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

// asks asks the asker a question, for an hour.
func (a *agent) asks() (asked *msg.Ask) {
	a.r.t.Helper()
	a.r.write(func(tx *store.Tx) (err error) {
		now := time.Now().UnixMilli()
		asked, err = gatedtest.PutAsk(tx, a.turn, &gatedtest.Question{
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
