package platforms

import (
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/testkit/fakes/slack"
)

// TestTheStoryWithEventsThatArePosted is the story without Socket Mode.
func TestTheStoryWithEventsThatArePosted(t *testing.T) {
	t.Parallel()
	w := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	r := newRig(t)
	f := r.serve(w)
	r.Env = append(r.Env, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+w.SigningSecret())
	r.run("routd", "gated", "slakd")
	r.ok(w.SetEventsURL(r.ctx, r.URL("slakd")+"/slack/events"))
	r.connect()
	story(f)
	if n := w.OpenedSockets(); n != 0 {
		t.Errorf("%d sockets were opened", n)
	}
}

func TestTwoCallsInAChannelOpenTwoThreads(t *testing.T) {
	t.Parallel()
	f := start(t, newSlack())
	channel := f.NewGroup("team")
	left, right := channel, channel
	left.Thread, right.Thread = f.call(channel, "what broke?"), f.call(channel, "what is for lunch?")
	f.answered("what broke?", left, f.about.Thread)
	f.answered("what is for lunch?", right, f.about.Thread)
	f.say(right, "and for dinner?")
	f.say(left, "tell me more")
	f.answered("tell me more", left, f.about.Thread)
	f.answered("and for dinner?", right, f.about.Thread)
	if n := f.value(`SELECT count(DISTINCT session_id) FROM sessions WHERE topic IN (?, ?)`, left.Thread, right.Thread); n != "2" {
		t.Errorf("there are %s sessions", n)
	}
}

func TestEachThreadOfThePaneIsAConversation(t *testing.T) {
	t.Parallel()
	w := chatsim.NewSlack(chatsim.Size{}, slackOptions())
	f := start(t, w)
	alice := w.User("Carol", "carol")
	team := w.Channel("team", alice)
	left, right := w.OpenPane(alice, team), w.OpenPane(alice, slack.Place{})
	left.Say(alice, "slow 1 what broke?")
	right.Say(alice, "what is for lunch?")
	f.until("its status is shown", func() bool {
		for _, s := range w.Statuses() {
			if s.ThreadTS == left.ThreadTS && s.Text != "" {
				return true
			}
		}
		return false
	})
	at := func(p slack.Place) chatsim.Conversation {
		return chatsim.Conversation{Chat: "slack:" + p.ChannelID, Thread: p.ThreadTS}
	}
	f.answered("slow 1 what broke?", at(left), "slack-pane")
	f.answered("what is for lunch?", at(right), "slack-pane")
	f.settle()
	f.until("no status is left", func() bool { return left.Pane().Status == "" && right.Pane().Status == "" })
	if n := f.value(`SELECT count(DISTINCT session_id) FROM sessions WHERE topic IN (?, ?)`, left.ThreadTS, right.ThreadTS); n != "2" {
		t.Errorf("there are %s sessions", n)
	}
}
