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
func Command(c *slack.SlashCommand, names Names) (adapter.Inbound, error) {
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
	who := userActor(c.UserID, names)
	r := of(c.ChannelID, names)
	r.Messages = []*msg.Message{{
		ChatJID: jid(c.ChannelID), PlatformID: "slash:" + c.TriggerID,
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbMessage, Content: "/" + strings.TrimPrefix(text, "/"), Addressed: true,
	}}
	return r, nil
}
