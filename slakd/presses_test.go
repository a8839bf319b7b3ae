package main

import (
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// question makes an agent ask Alice in a place, and returns the question and its message once that is shown.
func (r *harness) question(p fake.Place) (*msg.Ask, fake.Message) {
	r.Helper()
	chat := "slack:" + p.ChannelID
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: chat, CreatedAt: 1}
	run := &msg.Run{Folder: "main", ChatJID: chat, StartedAt: 1}
	trigger := &msg.Message{ChatJID: chat, Direction: msg.In, Content: "do something"}
	var a *msg.Ask
	r.write(func(tx *store.Tx) (err error) {
		if turn.TriggerMessageID, _, err = tx.PutMessage(trigger); err == nil {
			_, err = gatedtest.PutTurn(tx, turn, 0)
		}
		if err == nil {
			err = gatedtest.StartRun(tx, run, turn.ID)
		}
		if err == nil {
			now := time.Now().UnixMilli()
			a, err = gatedtest.PutAsk(tx, turn, &gatedtest.Question{
				AskID: "1", Question: "Sure?", Options: []string{"yes", "no"}, Who: msg.Who{Senders: []string{"slack:" + r.alice.ID}, Label: "Alice"},
				Name: "bot", ExpiresAt: now + time.Hour.Milliseconds(),
			}, now)
		}
		return err
	})
	var shown fake.Message
	r.Until("the question", func() bool {
		for _, m := range p.Messages() {
			if strings.Contains(m.Text, "Sure?") {
				shown = m
			}
		}
		return shown.TS != ""
	})
	return a, shown
}

// A press is stored before it is acknowledged. A user whose press does not count reads that alone.
func TestInbound_Presses(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		r.readUp(1)
		a, shown := r.question(r.team)
		press := func(by fake.User, option int) {
			t.Helper()
			data := msg.ButtonData(a.ID, option)
			r.team.PressButton(by, shown.TS, data, data)
			r.confirmed()
		}
		press(r.bob, 1)
		if read := r.team.Ephemeral(); len(read) != 1 || read[0].Text != "Only Alice may answer this." {
			t.Errorf("Bob reads %+v", read)
		}
		press(r.alice, 2)
		if read := r.team.Ephemeral(); len(read) != 1 {
			t.Errorf("Alice reads %+v", read[1:])
		}
		var got []string
		for _, m := range r.messages(r.team) {
			if m.Verb == msg.VerbAnswer && m.TargetID == shown.TS {
				got = append(got, m.Sender+" "+m.Content)
			}
		}
		want := "slack:" + r.bob.ID + ` {"ask":1,"option":1,"text":"yes"}, slack:` + r.alice.ID + ` {"ask":1,"option":2,"text":"no"}`
		if strings.Join(got, ", ") != want {
			t.Errorf("rows %q, want %s", got, want)
		}
	})
}
