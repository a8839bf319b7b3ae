package inbound

import (
	"errors"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// Command reads a slash command. One that is named like a command of the gateway is that; any
// other stands for us, and the command is its text: "/arizuko new hello" is "/new hello". It
// stands in no thread, and the trigger of it is the only thing that tells it from another one.
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
	who := userParty(c.UserID, names)
	r := of(c.ChannelID, names)
	r.Messages = []*msg.Message{{
		ChatJID: jid(c.ChannelID), PlatformID: "slash:" + c.TriggerID,
		Sender: who.jid, SenderName: who.name, IsBot: who.bot,
		Verb: msg.VerbMessage, Content: "/" + strings.TrimPrefix(text, "/"), Addressed: true,
	}}
	return r, nil
}
