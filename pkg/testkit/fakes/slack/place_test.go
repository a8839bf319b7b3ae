package slack_test

import (
	"testing"

	"arizuko/pkg/testkit/fakes/slack"
)

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
