package adapter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPreview_Calls(t *testing.T) {
	const quiet = " / No sign of the agent or its model for over a minute…"
	made := func(after string) string { return "show in irc:room: Working on it… @" + after }
	silent := func(events bool) func(*agent) {
		return func(a *agent) {
			a.r.look()
			if events {
				a.says("", "")
			}
			pass(50 * time.Second)
			a.answers("late", true)
		}
	}
	for name, tt := range map[string]struct {
		mode groupconfig.Progress
		act  func(*agent)
		want []string
	}{
		"a text that grows": {groupconfig.ProgressLive, func(a *agent) {
			a.says("On", "")
			pass(2 * time.Second)
			a.says("One", "")
			a.says("One two", "Read notes.md")
			pass(5 * time.Second)
			a.says("One two", "Read notes.md") // no news
			pass(3 * time.Second)
			a.answers("One two three", true)
		}, []string{made("1s"), "show p1 in irc:room: One two / Read notes.md… @4s", "edit p1: One two three @10.004s"}},
		"a line after a while": {groupconfig.ProgressStatus, func(a *agent) {
			a.says("secret thoughts", "Read notes.md")
			pass(14 * time.Second)
			a.says("secret thoughts go on", "")
			pass(10 * time.Second)
			a.answers("done", true)
		}, []string{made("10s"), "show p1 in irc:room: Read notes.md… @13s", "show p1 in irc:room: Writing the answer… @16s", "edit p1: done @24.002s"}},

		// Of an agent without events, or whose events say nothing, a line says after ten seconds that it works.
		"no events": {groupconfig.ProgressLive, silent(false), []string{made("10s"), "show p1 in irc:room: Working on it… @13s", "edit p1: late @50s"}},
		"no events, a line": {groupconfig.ProgressStatus, silent(false),
			[]string{made("10s"), "show p1 in irc:room: Working on it… @13s", "edit p1: late @50s"}},
		"empty events": {groupconfig.ProgressLive, silent(true),
			[]string{made("10s"), "show p1 in irc:room: Working on it… @13s", "edit p1: late @50.001s"}},
		"empty events, a line": {groupconfig.ProgressStatus, silent(true),
			[]string{made("10s"), "show p1 in irc:room: Working on it… @13s", "edit p1: late @50.001s"}},

		// Users read once about a minute without a sign, unless a tool may take that long.
		"quiet": {groupconfig.ProgressLive, func(a *agent) {
			a.says("One", "")
			pass(20 * time.Minute)
			a.says("One two", "Read notes.md")
			pass(20 * time.Minute)
			a.says("One two", "")
		}, []string{made("1s"), "show p1 in irc:room: One @4s", "show p1 in irc:room: One" + quiet + " @1m0s",
			"show p1 in irc:room: One two / Read notes.md… @20m0.001s", "show p1 in irc:room: One two @40m0.002s",
			"show p1 in irc:room: One two" + quiet + " @41m0.002s"}},
		"secrets": {groupconfig.ProgressLive, func(a *agent) {
			a.says("it is "+secret, "Print "+secret)
			pass(10 * time.Second)
			a.answers("done", true)
		}, []string{made("1s"), "show p1 in irc:room: it is [redacted] / Print [redacted]… @4s", "edit p1: done @10.001s"}},
	} {
		runInBubble(t, name, func(t *testing.T, r *fixture) {
			p := r.previewer(messages)
			r.start(redacting)
			tt.act(r.agent(room, "", tt.mode))
			pass(time.Hour)
			expectCalls(t, p, tt.want...)
			if len(p.texts) != 1 {
				t.Errorf("left: %q", p.texts)
			}
		})
	}
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
		off := r.agent(room, "", groupconfig.ProgressOff)
		off.says("hidden", "")
		pass(time.Hour)
		off.answers("at last", true)
		pass(time.Hour)
		r.expectSent("quick", "quick", "at last")
		if p.made != 0 {
			t.Errorf("calls %q", p.log())
		}
	})
}

func TestPreview_EndsAsTheTurnDoes(t *testing.T) {
	asEdit, asNew, nothing := map[string]string{"p1": "done"}, map[string]string{"id of done": "done"}, map[string]string{}
	below := func(verb, thread string) func(*stage) { return func(s *stage) { s.below(verb, thread) } }
	after := func(wait time.Duration) func(*stage) { return func(s *stage) { pass(wait); s.a.finish() } }
	ends := func(end func(*agent)) func(*stage) { return func(s *stage) { end(s.a); pass(time.Minute) } } // without a poke
	requeue := func(a *agent) {
		a.r.write(func(tx *store.Tx) error { return gatedtest.RequeueTurn(tx, a.turn.ID, gatedtest.Requeue{}) })
	}
	row := func(put func(*stage)) func(*stage) { return func(s *stage) { put(s); s.next() } }
	runPreviewCases(t, map[string]previewCase{
		// No platform notifies users of edits: where one would be missed, the answer is a new message.
		"within a minute":                {nil, after(49 * time.Second), asEdit, "final 1"},
		"after more than a minute":       {nil, after(51 * time.Second), asNew, "removed 1"},
		"a user has written below":       {nil, below(msg.VerbMessage, ""), asNew, "removed 1"},
		"a user has mentioned it below":  {nil, below(msg.VerbMention, ""), asNew, "removed 1"},
		"a user has reacted":             {nil, below(msg.VerbReaction, ""), asEdit, "final 1"},
		"a user has written in a thread": {nil, below(msg.VerbMessage, "t"), asEdit, "final 1"},

		"silent":    {nil, ends(func(a *agent) { a.answers("", true) }), nothing, "removed 1"},
		"cancelled": {nil, ends((*agent).cancelled), nothing, "removed 1"},
		"requeued":  {nil, ends(requeue), nothing, "removed 1"},

		// A row that cannot take over the preview goes out, and the preview above it vanishes.
		"a file": {nil, row(func(s *stage) { s.a.answers("file", false) }),
			map[string]string{"id of file": "file", "p2": "done"}, "final 1, removed 1"},
		"a row of another turn": {nil, row(func(s *stage) { s.out("", "else"); s.look() }),
			map[string]string{"id of else": "else", "p2": "done"}, "final 1, removed 1"},
		"a reply to another message": {nil, row(func(s *stage) { s.a.row("else") }),
			map[string]string{"id of else": "else", "p2": "done"}, "final 1, removed 1"},
		"the bot's reaction leaves it": {nil, func(s *stage) {
			s.write(func(tx *store.Tx) error {
				_, _, err := tx.PutMessage(&msg.Message{ChatJID: room, Direction: msg.Out, OutState: msg.OutQueued, Kind: msg.KindReaction,
					Content: "+1", TargetID: "asked", ReceivedAt: time.Now().UnixMilli()})
				return err
			})
			s.look()
			pass(10 * time.Second)
			s.a.finish()
		}, map[string]string{"p1": "done", "id of +1": "+1"}, "final 1"},
		"each of several frames takes its own over": {nil, func(s *stage) {
			s.a.answers("1/2|more", false)
			pass(10 * time.Second)
			s.a.says("Two", "")
			pass(10 * time.Second)
			s.a.answers("2/2", true)
			pass(time.Minute)
		}, map[string]string{"p1": "1/2", "id of more": "more", "p2": "2/2"}, "final 2"},
		"the chat is moved": {nil, func(s *stage) {
			s.write(func(tx *store.Tx) error { return chatmove.Move(tx, room, "irc:new", 1) })
			s.a.run.ChatJID, s.a.turn.ChatJID = "irc:new", "irc:new"
			s.a.says("One two", "")
			pass(10 * time.Second)
			s.a.finish()
		}, map[string]string{"p1": "One", "p2": "done"}, "final 1, lost 1"},
	})
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

func TestPreview_NeverAfterTheAnswer(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 6 * time.Second, 7 * time.Second} {
		runInBubble(t, after.String(), func(t *testing.T, r *fixture) {
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
	}
}

// Answers never wait for a permit that a preview has taken.
func TestPreview_Permits_AreLeftForRows(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p := r.previewer(time.Second)
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
		p := r.previewer(time.Second)
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

// What users have seen of an answer stays when they stop it.
func TestPreview_Stopped_HalfAnswerStays(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		p, a := r.live()
		a.says("```\ncode", "")
		pass(10 * time.Second)
		stop := &msg.Message{ChatJID: room, Direction: msg.In, PlatformID: "stop", Sender: "irc:7", SenderName: "Ada *A*",
			Content: "/stop", ReceivedAt: time.Now().UnixMilli()}
		r.write(func(tx *store.Tx) error {
			if _, _, err := tx.PutMessage(stop); err != nil {
				return err
			}
			_, _, err := gatedtest.StopChat(tx, gatedtest.Stop{ChatJID: room, By: stop.Sender, BeforeMessage: stop.ID, ThroughTurn: a.turn.ID},
				time.Now().UnixMilli())
			return err
		})
		r.look()
		pass(time.Minute)
		text := "```\ncode\n```\n\n*Stopped by Ada \\*A\\*.*"
		expectTexts(t, p, map[string]string{idOf(text): text}) // below the command
		r.expectEnded("removed 1")
	})
}
