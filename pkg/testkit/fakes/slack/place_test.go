package slack_test

import (
	"fmt"
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

// Actions of users in a channel, and the only event of each.
func TestEvents_OfUserActions(t *testing.T) {
	r := start(t, slack.Options{})
	alice, bob := r.User("Alice", "alice"), r.User("Bob", "bob")
	deploys := r.OtherBot("Deploys", "deploys")
	team := r.Channel("team", alice, bob, deploys)
	w := r.dial()
	m := team.Say(alice, "a &lt;b&gt; https://example.org")
	got := w.event(fmt.Sprintf(`{"type": "message", "user": %q, "text": "a &lt;b&gt; https://example.org", "channel": %q, "ts": %q, "event_ts": %q,
		"subtype": null, "thread_ts": null, "bot_id": null, "blocks": [{"type": "rich_text"}]}`, alice.ID, team.ChannelID, m.TS, m.TS))
	if got["client_msg_id"] == nil {
		t.Error("no client_msg_id")
	}
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"a reply", func() { team.Reply(bob, m.TS, "b") },
			fmt.Sprintf(`{"subtype": null, "text": "b", "thread_ts": %q, "parent_user_id": %q, "reply_count": null}`, m.TS, alice.ID)},
		{"in the thread", func() { team.Thread(m.TS).Say(bob, "b2") }, fmt.Sprintf(`{"text": "b2", "thread_ts": %q}`, m.TS)},
		{"a broadcast", func() { team.Broadcast(bob, m.TS, "c") },
			fmt.Sprintf(`{"subtype": "thread_broadcast", "thread_ts": %q, "root": {"text": "a &lt;b&gt; https://example.org"}}`, m.TS)},
		{"an edit", func() { team.Edit(alice, m.TS, "z") },
			fmt.Sprintf(`{"type": "message", "subtype": "message_changed", "channel_type": "channel", "message": {"text": "z", "ts": %q, "edited": {"user": %q}},
				"previous_message": {"text": "a &lt;b&gt; https://example.org", "edited": null}}`, m.TS, alice.ID)},
		{"a preview", func() { team.Unfurl(team.Messages()[1].TS) },
			`{"subtype": "message_changed", "message": {"text": "b", "edited": null, "attachments": [{"id": 1}]}, "previous_message": {"attachments": null}}`},
		{"a deletion", func() { team.Delete(bob, team.Messages()[1].TS) }, `{"subtype": "message_deleted", "previous_message": {"text": "b"}, "message": null}`},
		{"a tombstone", func() { team.Delete(alice, m.TS) },
			fmt.Sprintf(`{"subtype": "message_changed", "message": {"subtype": "tombstone", "user": "USLACKBOT", "ts": %q}}`, m.TS)},
		{"a topic", func() { team.SetTopic(alice, "ships") }, `{"subtype": "channel_topic", "topic": "ships"}`},
		{"/me", func() { team.MeMessage(alice, "waves") }, `{"subtype": "me_message", "text": "waves"}`},
		{"another bot", func() { team.Say(deploys, "beep") }, `{"subtype": null, "bot_profile": {"name": "Deploys"}, "client_msg_id": null}`},
		{"an integration", func() { team.Webhook("Alerts", "disk") }, `{"subtype": "bot_message", "username": "Alerts", "text": "disk", "user": null}`},
		{"a user's name", func() { r.RenameUser(bob, "Robert") }, `{"type": "user_change", "user": {"id": "` + bob.ID + `", "profile": {"display_name": "Robert"}}}`},
		{"home", func() { r.OpenHome(alice, "messages") }, `{"type": "app_home_opened", "tab": "messages"}`},
		{"an old channel", func() { team.Archive(alice) }, `{"type": "channel_archive", "user": "` + alice.ID + `"}`},
		{"the bot out", func() { team.KickBot(alice) }, `{"type": "channel_left", "actor_id": "` + alice.ID + `"}`},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			inner := *w.r
			inner.t = t
			(&wire{&inner, w.conn}).event(step.want)
		})
	}
	r.DM(alice).Say(alice, "psst")
	w.event(`{"text": "psst", "channel_type": "im"}`)
}

func TestSetMentionFirst_SetsOrderOfEvents(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team, w := r.Channel("team", alice), r.dial()
	for _, first := range []bool{false, true} {
		r.SetMentionFirst(first)
		m := team.Say(alice, r.Encode("@arizuko and @alice, see #team & <x>"))
		if want := r.Me().Mention() + " and " + alice.Mention() + ", see <#" + team.ChannelID + "|team> &amp; &lt;x&gt;"; m.Text != want {
			t.Errorf("typed %q, want %q", m.Text, want)
		}
		both := w.events(2)
		if both[0]["ts"] != both[1]["ts"] || (both[0]["type"] == "app_mention") != first || both[0]["type"] == both[1]["type"] {
			t.Errorf("events %v", both)
		}
	}
	r.DM(alice).Say(alice, r.Me().Mention())
	w.event(`{"type": "message"}`)
}

func TestPlace_ImpossibleActionsPanic(t *testing.T) {
	r := start(t, slack.Options{})
	alice, bob := r.User("Alice", "alice"), r.User("Bob", "bob")
	team := r.Channel("team", alice)
	m := team.Say(alice, "x")
	for name, act := range map[string]func(){
		"user is not a member":   func() { team.Say(bob, "x") },
		"unknown thread":         func() { team.Reply(alice, "1.0", "x") },
		"unknown channel":        func() { r.Place("C404", "").Say(alice, "x") },
		"message of another":     func() { team.Edit(bob, m.TS, "x") },
		"delete unknown message": func() { team.Delete(alice, "1.0") },
		"react twice":            func() { team.React(alice, m.TS, "eyes"); team.React(alice, m.TS, "eyes") },
		"invite twice":           func() { team.InviteBot(alice) },
		"command as a text":      func() { team.Say(alice, "/arizuko new") },
		"command in a thread":    func() { team.Thread(m.TS).Command(alice, "/arizuko", "") },
		"command of no app":      func() { team.Command(alice, "/approve", "ABCD-1234") },
		"broadcast without thread": func() {
			_, err := team.Post(alice, slack.Draft{Text: "x", Broadcast: true})
			if err != nil {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			act()
		})
	}
}

// Of many users of a reaction the history lists some, with the count of all; reactions.get lists all that are asked for.
func TestReactions_ManyUsers_AreLeftOut(t *testing.T) {
	r := start(t, slack.Options{})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	one := team.Say(alice, "one").TS
	for range 30 {
		u := r.User("Voter", "voter")
		team.Join(u)
		team.React(u, one, "one")
	}
	users := func(message any) (listed int, count float64) {
		reaction := message.(map[string]any)["reactions"].([]any)[0].(map[string]any)
		return len(reaction["users"].([]any)), reaction["count"].(float64)
	}
	history := r.must("conversations.history", "channel", team.ChannelID, "latest", one, "inclusive", "true")
	if listed, count := users(history.Fields["messages"].([]any)[0]); listed != 25 || count != 30 {
		t.Errorf("the history lists %d of %v users", listed, count)
	}
	for full, want := range map[string]int{"false": 25, "true": 30} {
		found := r.must("reactions.get", "channel", team.ChannelID, "timestamp", one, "full", full)
		if listed, count := users(found.Fields["message"]); listed != want || count != 30 {
			t.Errorf("full %s: %d of %v users, want %d", full, listed, count, want)
		}
	}
}
