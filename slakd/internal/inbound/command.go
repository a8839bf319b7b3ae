package inbound

import (
	"errors"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Command converts a slash command. One named like a command of gated is that command; any other names
// the bot, and the command is its text: "/arizuko new hello" is "/new hello". It is in no thread, and
// only its trigger id tells it from another one.
func Command(c *slack.SlashCommand, me Self, names Names) (adapter.Inbound, error) {
	if c.ChannelID == "" || c.UserID == "" || c.TriggerID == "" {
		return adapter.Inbound{}, errors.New("a slash command without a channel, a user or a trigger")
	}
	text, _ := plain(strings.TrimSpace(c.Text), Self{}, names)
	name := strings.TrimPrefix(c.Command, "/")
	switch {
	case slices.ContainsFunc(msg.GatewayCommands(), func(g msg.GatewayCommand) bool { return g.Name == name }):
		text = strings.TrimSpace(name + " " + text)
	case text == "":
		text = msg.CommandHelp
	}
	who := me.userActor(c.UserID, names)
	r := me.of(c.ChannelID, names)
	r.Messages = []*msg.Message{{
		ChatJID: me.jid(c.ChannelID), PlatformID: "slash:" + c.TriggerID,
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbMessage, Content: "/" + strings.TrimPrefix(text, "/"), Addressed: true,
	}}
	r.Admins = Admins(r.Messages, names)
	return r, nil
}

// stopped converts a click on the button that stops the agent: it is the command, by that user in that thread.
func stopped(e *Stopped, me Self, names Names) (adapter.Inbound, error) {
	if e.Channel == "" || e.User == "" || !isTS(e.EventTS) || e.Thread != "" && !isTS(e.Thread) {
		return adapter.Inbound{}, errors.New("a stopped session without a channel, a user, a thread or a time")
	}
	who := me.userActor(e.User, names)
	r := me.of(e.Channel, names)
	r.Messages = []*msg.Message{{
		ChatJID: me.jid(e.Channel), PlatformID: "stop:" + e.User + ":" + e.EventTS, Sender: who.JID,
		SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbMessage, Content: "/" + msg.CommandStop, Addressed: true, Topic: e.Thread, ThreadID: e.Thread,
		Timestamp: millis(e.EventTS),
	}}
	return r, nil
}
