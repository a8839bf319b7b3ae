package slack_test

import (
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

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
