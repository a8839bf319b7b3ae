package platforms

import (
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/need"
)

func TestConversation_SlackEventsAPI_WithoutSocketMode(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	w := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	i := newInstance(t)
	f := i.serve(w)
	i.Instance.Env = append(i.Instance.Env, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+w.SigningSecret())
	i.start("routd", "gated", "slakd")
	i.OK(w.SetEventsURL(i.T.Context(), i.Instance.URL("slakd")+"/slack/events"))
	i.connect()
	conversation(f)
	if n := w.OpenedSockets(); n != 0 {
		t.Errorf("%d sockets opened, want none", n)
	}
}

func TestSlack_PaneThreads_AreSeparateConversations(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	w := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	f := start(t, w)
	alice := w.User("Carol", "carol")
	team := w.Channel("team", alice)
	left, right := w.OpenPane(alice, team), w.OpenPane(alice, slack.Place{})
	left.Say(alice, "until go what broke?")
	right.Say(alice, "what is for lunch?")
	f.Until("the status to be shown", func() bool {
		for _, s := range w.Statuses() {
			if s.ThreadTS == left.ThreadTS && s.Text != "" {
				return true
			}
		}
		return false
	})
	f.LetGo("main", "go")
	at := func(p slack.Place) chatsim.Conversation {
		return chatsim.Conversation{Chat: "slack:" + p.ChannelID, Thread: p.ThreadTS}
	}
	f.wantAnswer("until go what broke?", at(left), "slack-pane")
	f.wantAnswer("what is for lunch?", at(right), "slack-pane")
	f.WaitIdle()
	f.Until("the statuses to be cleared", func() bool { return left.Pane().Status == "" && right.Pane().Status == "" })
	if n := f.Value(`SELECT count(DISTINCT session_id) FROM sessions WHERE topic IN (?, ?)`, left.ThreadTS, right.ThreadTS); n != "2" {
		t.Errorf("%s sessions, want 2", n)
	}
}

// Slack's own Stop button, below an agent's status in a thread, is `/stop` there.
func TestSlack_NativeStop_EndsTheTurn(t *testing.T) {
	t.Parallel()
	w := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	f := start(t, w)
	alice := w.User("Ann", "ann")
	pane := w.OpenPane(alice, slack.Place{})
	pane.Say(alice, "until go think")
	f.Until("the button", func() bool { return pane.Session() == "processing" })
	pane.StopAgent(alice)
	f.Until("the turn to be cancelled", func() bool {
		return f.Value(`SELECT count(*) FROM turns WHERE state = 'cancelled' AND thread_id <> ''`) == "1"
	})
	if got := f.Value(`SELECT disposition || ' ' || content FROM messages WHERE sender_name = 'Ann' ORDER BY id DESC LIMIT 1`); got != "command /stop" {
		t.Errorf("the press is %q", got)
	}
}
