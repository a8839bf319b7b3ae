package webchat

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestVote_InPollOfTheChat_IsStoredAndNotShown(t *testing.T) {
	r := newFixture(t)
	p := &msg.StoredPoll{Folder: "main", ChatJID: JID("main"), CreatedAt: 1, Poll: msg.Poll{Question: "Lunch?", Options: []string{"a", "b"}}}
	if err := r.st.Write(t.Context(), func(tx *store.Tx) (err error) {
		m := &msg.Message{ChatJID: p.ChatJID, Direction: msg.Out, Kind: msg.KindPoll, Content: p.Poll.JSON(), OutState: msg.OutSent}
		if p.MessageID, _, err = tx.PutMessage(m); err != nil {
			return err
		}
		return gatedtest.PutPoll(tx, p)
	}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		body string
		want int
	}{
		{fmt.Sprintf(`{"id":%d,"options":[2]}`, p.MessageID), 202},
		{fmt.Sprintf(`{"id":%d,"options":[]}`, p.MessageID), 202}, // takes the vote back
		{fmt.Sprintf(`{"id":%d,"options":[3]}`, p.MessageID), 400},
		{fmt.Sprintf(`{"id":%d,"options":[1,2]}`, p.MessageID), 400},
		{fmt.Sprintf(`{"id":%d,"options":[1,1]}`, p.MessageID), 400},
		{fmt.Sprintf(`{"id":%d,"options":[1]}`, p.MessageID+99), 404},
	} {
		if status, answer := r.ask(t, "POST", "/main/votes", tt.body); status != tt.want {
			t.Errorf("%s: %d %s", tt.body, status, answer)
		}
	}
	if status, _ := r.ask(t, "POST", "/other/votes", fmt.Sprintf(`{"id":%d,"options":[2]}`, p.MessageID)); status != 404 {
		t.Errorf("from another chat: %d", status)
	}
	_, page := r.ask(t, "GET", "/main/messages", "")
	if !strings.Contains(page, `"poll":{"options":["a","b"],"multiple":false}`) || !strings.Contains(page, "a\\n2") || strings.Contains(page, "web:operator") {
		t.Errorf("the page: %s", page)
	}
	r.ask(t, "POST", "/main/votes", fmt.Sprintf(`{"id":%d,"options":[2]}`, p.MessageID))
	if _, page := r.ask(t, "GET", "/main/messages?view=page", ""); !strings.Contains(page, `"multiple":false,"chosen":[2]}`) || !strings.Contains(page, `"html":"\u003cp\u003eLunch?\u003c/p\u003e\n"`) {
		t.Errorf("the page of the voter: %s", page)
	}
	if err := r.st.Write(t.Context(), func(tx *store.Tx) error { return gatedtest.ClosePoll(tx, p.ID, 2) }); err != nil {
		t.Fatal(err)
	}
	if status, _ := r.ask(t, "POST", "/main/votes", fmt.Sprintf(`{"id":%d,"options":[2]}`, p.MessageID)); status != 409 {
		t.Errorf("after the end: %d", status)
	}
}
