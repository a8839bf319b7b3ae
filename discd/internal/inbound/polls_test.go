package inbound

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/msg"
)

func TestMissedVotes_DifferFromStoredOnes_MakeRows(t *testing.T) {
	poll := &msg.Message{ChatJID: "discord:5", ThreadID: "6", PlatformID: "61"}
	voters := map[int][]discordapi.User{
		1: {{ID: "1"}, {ID: "2", Username: "bob", GlobalName: "Bob"}, {ID: "4"}},
		2: {{ID: "2", Username: "bob"}, {ID: "3"}},
	}
	stored := map[string]msg.PollVote{
		"discord:2": {Options: []int{2}}, "discord:5": {Name: "Eve", Options: []int{1, 2}}, "discord:6": {Options: []int{1}},
	}
	heard := func(user string, answer int) bool { return user == "4" && answer == 1 || user == "6" }
	var got []string
	for _, m := range MissedVotes(poll, voters, stored, "s", Self{Platform: "discord", ID: "1"}, heard) {
		got = append(got, m.PlatformID+" "+m.Sender+" "+m.SenderName+" "+m.Content)
		if m.ChatJID != poll.ChatJID || m.ThreadID != "6" || m.Topic != "6" || m.TargetID != "61" || m.Verb != msg.VerbVote {
			t.Errorf("%+v", m)
		}
	}
	want := []string{
		`61:v:5:-1:s.missed discord:5 Eve {"options":[1],"change":"remove"}`,
		`61:v:5:-2:s.missed discord:5 Eve {"options":[2],"change":"remove"}`,
		`61:v:2:1:s.missed discord:2 Bob {"options":[1],"change":"add"}`,
		`61:v:3:2:s.missed discord:3 user 3 {"options":[2],"change":"add"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
