package inbound

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// click is a click on an element of a message. Of the message only what is needed is decoded: one invalid block in it
// is no reason to lose the click.
type click struct {
	Type    string `json:"type"`
	Trigger string `json:"trigger_id"` // the same each time it is sent
	User    struct {
		ID string `json:"id"`
	} `json:"user"`
	Container struct {
		Channel  string `json:"channel_id"`
		TS       string `json:"message_ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"container"`
	Message struct {
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		Value string `json:"value"`
		Time  string `json:"action_ts"`
	} `json:"actions"`
}

// Press converts the payload of an interaction, if that is the press of a button of a question. Other interactions make
// no row.
func Press(payload []byte, me Self, names Names) (in adapter.Inbound, err error) {
	var c click
	if err := json.Unmarshal(payload, &c); err != nil {
		return in, fmt.Errorf("invalid interaction: %w", err)
	}
	if c.Type != "block_actions" || len(c.Actions) == 0 {
		return in, nil
	}
	pressed, ours := msg.ParseButtonData(c.Actions[0].Value)
	thread := cmp.Or(c.Container.ThreadTS, c.Message.ThreadTS)
	if thread == c.Container.TS { // the question begins it
		thread = ""
	}
	switch {
	case !ours:
		return in, nil
	case c.Container.Channel == "" || c.User.ID == "" || c.Trigger == "" || !isTS(c.Container.TS) ||
		thread != "" && !isTS(thread):
		return in, errors.New("a press without a channel, a message, a user or a trigger")
	}
	who := me.userActor(c.User.ID, names)
	in.Messages = []*msg.Message{{
		ChatJID: me.jid(c.Container.Channel), PlatformID: "press:" + c.Trigger, TargetID: c.Container.TS,
		ThreadID: thread, Topic: thread,
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbAnswer, Content: pressed.JSON(), Timestamp: millis(c.Actions[0].Time),
	}}
	in.Admins = Admins(in.Messages, names)
	return in, nil
}
