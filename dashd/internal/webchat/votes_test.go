package webchat

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
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

func TestAnswer_ToAQuestionOfTheChat_IsStoredAndNotShown(t *testing.T) {
	r := newFixture(t)
	defer gatedtest.Work(t, r.st, JID("main"), "", "", "1")()
	turns, err := storetest.OpenTurns(t.Context(), r.st.Reader)
	if err != nil || len(turns) != 1 {
		t.Fatal(turns, err)
	}
	put := func(id, sender string) (a *msg.Ask) {
		t.Helper()
		q := &gatedtest.Question{
			AskID: id, Question: "Which?", Options: []string{"red", "green"}, Who: msg.Who{Senders: []string{sender}, Label: "Ann"}, ExpiresAt: 1 << 60,
		}
		if err := r.st.Write(t.Context(), func(tx *store.Tx) (err error) {
			if a, err = gatedtest.PutAsk(tx, turns[0], q, 1); err != nil {
				return err
			}
			if err = tx.ClaimOutbound(a.MessageID, 1, 1); err != nil {
				return err
			}
			return tx.SettleOutbound(a.MessageID, msg.OutSent, fmt.Sprint(a.MessageID))
		}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, other := put("q", msg.WebOperator), put("other", "web:ann")
	for body, want := range map[string]int{
		fmt.Sprintf(`{"id":%d,"option":2}`, a.MessageID):     202,
		fmt.Sprintf(`{"id":%d,"option":3}`, a.MessageID):     400,
		fmt.Sprintf(`{"id":%d,"option":0}`, a.MessageID):     400,
		fmt.Sprintf(`{"id":%d,"option":1}`, other.MessageID): 403,
		fmt.Sprintf(`{"id":%d,"option":1}`, a.MessageID+99):  404,
	} {
		if status, answer := r.ask(t, "POST", "/main/answers", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if status, _ := r.ask(t, "POST", "/other/answers", fmt.Sprintf(`{"id":%d,"option":2}`, a.MessageID)); status != 404 {
		t.Errorf("from another chat: %d", status)
	}
	rows, err := gatedtest.Undecided(t.Context(), r.st.Reader, JID("main"), 0, 10)
	if err != nil || len(rows) == 0 {
		t.Fatal(rows, err)
	}
	last := rows[len(rows)-1]
	if want := (msg.Press{Ask: a.ID, Option: 2, Text: "green"}).JSON(); last.Verb != msg.VerbAnswer || last.Content != want || last.Sender != msg.WebOperator || last.TargetID != fmt.Sprint(a.MessageID) {
		t.Errorf("stored %+v", last)
	}
	_, page := r.ask(t, "GET", "/main/messages", "")
	if strings.Count(page, `"question":{"options":["red","green"]}`) != 2 || strings.Contains(page, `"green\"`) {
		t.Errorf("the page: %s", page)
	}
	if err := r.st.Write(t.Context(), func(tx *store.Tx) error { return gatedtest.ExpireAsk(tx, a.ID, 2) }); err != nil {
		t.Fatal(err)
	}
	if status, _ := r.ask(t, "POST", "/main/answers", fmt.Sprintf(`{"id":%d,"option":2}`, a.MessageID)); status != 409 {
		t.Errorf("after the end: %d", status)
	}
}
