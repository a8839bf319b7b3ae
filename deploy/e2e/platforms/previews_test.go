package platforms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/adapter"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// liveChats sets the progress of all chats of the group, and makes one of each kind.
func (f *fixture) liveChats() []chatsim.Conversation {
	f.T.Helper()
	f.SetGroup("main", `{"rate":0,"progress":"live"}`)
	return []chatsim.Conversation{f.dm, f.NewGroup("Team"), f.NewThread("Topic")}
}

// previews lists those of a chat, as in "open p1".
func (f *fixture) previews(c chatsim.Conversation) []string {
	f.T.Helper()
	return f.Query(`SELECT state || ' ' || ifnull(platform_id, '') FROM previews WHERE chat_jid = ? ORDER BY id`, c.Chat)
}

// waitPreview waits until a preview shows more than that an agent works, and returns its id.
func (f *fixture) waitPreview(c chatsim.Conversation) (id string) {
	f.T.Helper()
	f.Until("a preview in "+c.Chat, func() bool {
		if all := f.previews(c); len(all) > 0 {
			id, _ = strings.CutPrefix(all[len(all)-1], "open ")
		}
		return id != "" && len(f.shown(c)) > 0
	})
	return id
}

// shown are the texts of the bot in a chat, previews included that show something.
func (f *fixture) shown(c chatsim.Conversation) (texts []string) {
	for _, a := range f.Arrivals() {
		if a.Chat == c.Chat {
			texts = append(texts, a.Text)
		}
	}
	return texts
}

// wantPreviews waits until the previews of a chat have ended like this, and fails the test if one is left.
func (f *fixture) wantPreviews(c chatsim.Conversation, want ...string) {
	f.T.Helper()
	f.Until("previews of "+c.Chat+" to be "+strings.Join(want, ", "), func() bool { return strings.Join(f.previews(c), ", ") == strings.Join(want, ", ") })
	for _, a := range f.LeftPreviews() {
		if a.Chat == c.Chat {
			f.T.Errorf("a preview is left: %+v", a)
		}
	}
}

func TestPreview_LongTurn_IsShownAndBecomesTheAnswer(t *testing.T) {
	onEachPlatform(t, func(f *fixture) {
		for n, c := range f.liveChats() {
			enough := fmt.Sprint("shown", n)
			text := "work stream until " + enough + " hello " + c.Chat
			f.ask(c, text)
			id := f.waitPreview(c)
			f.LetGo("main", enough)
			a := f.waitAnswer(text)
			f.wantPreviews(c, "final "+id)
			if plain, marked := f.copies(text); a.ID != id || plain != 1 || marked != 0 {
				t.Errorf("the answer is %s, %d copies and %d marked ones; the preview was %s", a.ID, plain, marked, id)
			}
		}
	})
}

func TestPreview_Stopped_HalfAnswerStays(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		c := f.liveChats()[1]
		f.ask(c, "work stream until never hello")
		id := f.waitPreview(c)
		f.Until("the beginning of the answer", func() bool {
			return f.Value(`SELECT count(*) FROM turn_progress WHERE text LIKE 'You said%'`) == "1"
		})
		f.say(c, msg.CommandIn(c.Chat, "stop"))
		f.Until("the preview to end", func() bool { return !slices.Contains(f.previews(c), "open "+id) })
		f.Until("the half answer", func() bool {
			return slices.ContainsFunc(f.shown(c), func(text string) bool {
				return strings.Contains(text, "You said") && strings.Contains(text, "Stopped by ")
			})
		})
	})
}

// The adapter is killed while the preview is shown, and gated, after which the agent begins again.
func TestPreview_Kills_OneAnswer(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		c := f.liveChats()[1]
		f.ask(c, "work stream slow 8 hello")
		id := f.waitPreview(c)
		f.Kill(f.info.Daemon)
		f.Kill("gated")
		f.Restart(f.info.Daemon)
		f.Restart("gated")
		f.waitAnswer("work stream slow 8 hello")
		f.WaitIdle()
		if all := f.previews(c); all[0] != "removed "+id && all[0] != "final "+id {
			t.Errorf("previews %q", all)
		}
		if plain, marked := f.copies("work stream slow 8 hello"); plain != 1 || marked != 0 || len(f.LeftPreviews()) != 0 {
			t.Errorf("%d answers, %d marked, previews left: %+v", plain, marked, f.LeftPreviews())
		}
	})
}

// stoppable makes the agent work in a conversation whose preview is a message with a button, and waits for that.
func (f *fixture) stoppable(text string) (in chatsim.Conversation, message string) {
	f.T.Helper()
	in = f.liveChats()[1]
	if f.info.Platform == "slack" { // in threads it is a stream
		in = f.dm
	}
	f.ask(in, text)
	message = f.waitPreview(in)
	f.Until("a button", func() bool { labels, _ := f.Buttons(in, message); return slices.Equal(labels, []string{"Stop"}) })
	return in, message
}

// wantStopped waits until a turn is cancelled by a press, and its preview is gone.
func (f *fixture) wantStopped(in chatsim.Conversation, message string) {
	f.T.Helper()
	f.wantPreviews(in, "removed "+message)
	f.waitDelivered(in, "stopped")
	f.WaitIdle()
	if got := f.presses(); got != "command command" {
		f.T.Errorf("presses: %s", got)
	}
	for _, text := range f.shown(in) {
		if strings.Contains(text, "You said") {
			f.T.Errorf("the chat shows %q", text)
		}
	}
}

func TestStop_Pressed_EndsTheTurn(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		in, message := f.stoppable("work stream slow 60 hello")
		f.wantPressAnswer(in, f.press(in, message, "Stop", false), "")
		f.wantStopped(in, message)
	})
}

// The adapter is killed when it has stored the press, and then gated when it has decided it.
func TestStop_KillsAfterThePress_EndTheTurnOnce(t *testing.T) {
	need.Verify(t)
	onEachPlatform(t, func(f *fixture) {
		in, message := f.stoppable("work stream slow 60 hello")
		f.Kill("gated")
		f.Kill(f.info.Daemon)
		f.Until("the connection to end", func() bool { return !f.Connected() })
		f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(fp.Pressed))
		f.Until("the connection", f.Connected)
		f.press(in, message, "Stop", false)
		f.waitKilled(f.info.Daemon)
		f.StartDaemon("gated", "FAILPOINT="+string(fp.Decide.After()))
		f.waitKilled("gated")
		f.Restart("gated")
		f.Restart(f.info.Daemon)
		f.wantStopped(in, message)
	})
}

// The adapter is killed around the call that makes the message of a preview, before it has stored the id. What it may have made
// says nothing, stays once, and is counted; the turn is shown by another one, and answered once.
func TestPreview_KilledWhileItIsMade_OneIsLostAndOneAnswer(t *testing.T) {
	need.Verify(t)
	for _, tt := range []struct {
		point fp.Point
		left  int
	}{{fp.Previewing, 0}, {fp.Previewed, 1}, {fp.KeepPreview.Before(), 1}} {
		t.Run(string(tt.point), func(t *testing.T) {
			onEachPlatform(t, func(f *fixture) {
				in := f.liveChats()[1] // on Slack the answer to its message is a thread, whose previews are streams
				f.Kill(f.info.Daemon)
				f.Until("the connection to end", func() bool { return !f.Connected() })
				f.StartDaemon(f.info.Daemon, "FAILPOINT="+string(tt.point))
				f.Until("the connection", f.Connected)
				f.ask(in, "work stream slow 15 hello")
				f.waitKilled(f.info.Daemon)
				if all := f.previews(in); !slices.Equal(all, []string{"open "}) {
					t.Errorf("previews %q when it was killed", all)
				}
				f.Restart(f.info.Daemon)
				id := f.waitPreview(in)
				a := f.waitAnswer("work stream slow 15 hello")
				f.WaitIdle()
				if all := f.previews(in); !slices.Equal(all, []string{"lost ", "final " + id}) || a.ID != id {
					t.Errorf("previews %q, the answer is %s", all, a.ID)
				}
				if plain, marked := f.copies("work stream slow 15 hello"); plain != 1 || marked != 0 {
					t.Errorf("%d answers and %d marked ones", plain, marked)
				}
				left := f.LeftPreviews()
				if len(left) != tt.left || len(left) == 1 && (left[0].Chat != in.Chat || left[0].ID == id) {
					t.Errorf("previews left: %+v", left)
				}
				if s, is := f.Platform.(*chatsim.Slack); is && len(left) == 1 {
					if stream, is := s.Place(strings.TrimPrefix(in.Chat, "slack:"), left[0].Thread).Stream(left[0].ID); !is || stream.Plan != adapter.PreviewStart || stream.Text != "" || len(stream.Tasks) != 0 {
						t.Errorf("the stream that is left shows %+v", stream)
					}
				}
				if got := f.scrape(f.info.Daemon); !strings.Contains(got, `arizuko_previews_total{platform="`+f.info.Platform+`",state="lost"} 1`) {
					t.Errorf("no preview is counted as lost: %s", got)
				}
			})
		})
	}
}
