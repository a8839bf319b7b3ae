package inbound

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

func TestBallot_Updates_MakeRows(t *testing.T) {
	poll := &msg.Message{ID: 40, ChatJID: "telegram:-1005", PlatformID: "12", ThreadID: "33"}
	row := func(change func(*msg.Message)) *msg.Message {
		m := &msg.Message{ChatJID: "telegram:-1005", ThreadID: "33", Topic: "33", TargetID: "12", Verb: msg.VerbVote, Sender: "telegram:7", SenderName: "Ada L"}
		change(m)
		return m
	}
	tests := map[string]struct {
		update, ref string
		want        *msg.Message
	}{
		"a vote": {`{"update_id":5,"poll_answer":{"poll_id":"61","user":{"id":7,"first_name":"Ada","last_name":"L"},"option_ids":[0,2]}}`, "61",
			row(func(m *msg.Message) { m.PlatformID, m.Content = "p:61:v:7:5", `{"options":[1,3],"row":40}` })},
		"withdrawn": {`{"update_id":6,"poll_answer":{"poll_id":"61","user":{"id":7,"first_name":"Ada L"},"option_ids":[]}}`, "61",
			row(func(m *msg.Message) { m.PlatformID, m.Content = "p:61:v:7:6", `{"options":[],"row":40}` })},
		"of a chat": {`{"update_id":7,"poll_answer":{"poll_id":"61","voter_chat":{"id":-9,"type":"channel","title":"News"},"user":{"id":136817688},"option_ids":[0]}}`, "61",
			row(func(m *msg.Message) {
				m.Sender, m.SenderName, m.PlatformID, m.Content = "telegram:-9", "News", "p:61:v:-9:7", `{"options":[1],"row":40}`
			})},
		"of no user": {`{"update_id":8,"poll_answer":{"poll_id":"61","option_ids":[0]}}`, "61", nil},
		"of the bot": {`{"update_id":8,"poll_answer":{"poll_id":"61","user":{"id":99},"option_ids":[0]}}`, "61", nil},
		"the end": {`{"update_id":9,"poll":{"id":"61","is_closed":true,"total_voter_count":2,"options":[{"voter_count":2},{"voter_count":0}]}}`, "61",
			row(func(m *msg.Message) {
				m.Verb, m.Sender, m.SenderName, m.PlatformID = msg.VerbPollEnd, "telegram:99", "", "p:61:end"
				m.Content = `{"result":{"counts":[2,0],"voters":2},"row":40}`
			})},
		"counts":  {`{"update_id":9,"poll":{"id":"61","options":[{"voter_count":2}]}}`, "", nil},
		"message": {`{"update_id":9,"message":{"message_id":1}}`, "", nil},
	}
	for name, tt := range tests {
		var u telegramapi.Update
		if err := json.Unmarshal([]byte(tt.update), &u); err != nil {
			t.Fatal(err)
		}
		if got := PollRef(&u); got != tt.ref {
			t.Errorf("%s: of poll %q, not %q", name, got, tt.ref)
		}
		if tt.ref == "" {
			continue
		}
		var got *msg.Message
		if rows := Ballot(&u, poll, Self{Platform: "telegram", ID: 99}).Messages; len(rows) > 0 {
			got = rows[0]
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
