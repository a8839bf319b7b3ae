package inbound

import (
	"fmt"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// option is the only option of each command: its argument.
const option = "text"

// Commands are gated's commands, as Discord registers them.
func Commands() (all []discordapi.Command) {
	for _, c := range msg.GatewayCommands() {
		offered := discordapi.Command{Name: c.Name, Description: c.Help, Options: []discordapi.Option{}}
		if c.Usage != "" {
			offered.Options = append(offered.Options, discordapi.Option{Type: discordapi.OptionText, Name: option, Description: c.Usage})
		}
		all = append(all, offered)
	}
	return all
}

// command converts a slash command, which addresses the bot like a mention.
func command(i *discordapi.Interaction, known *Guilds) (adapter.Inbound, error) {
	if i.Type != discordapi.InteractionCommand {
		return adapter.Inbound{}, nil
	}
	p, err := placeOf(i.GuildID, i.ChannelID, known)
	if err != nil {
		return adapter.Inbound{}, err
	}
	user := i.User
	if i.Member != nil && i.Member.User != nil {
		user = i.Member.User
	}
	switch {
	case !discordapi.IsID(i.ID), i.Data.Name == "":
		return adapter.Inbound{}, fmt.Errorf("a command in %s without an id or a name", p.chat.JID)
	case user == nil || !discordapi.IsID(user.ID):
		return adapter.Inbound{}, fmt.Errorf("command %s in %s without a user", i.ID, p.chat.JID)
	}
	content := "/" + i.Data.Name
	if text := i.Option(option); text != "" {
		content += " " + text
	}
	from := actor(user, i.Member)
	row := &msg.Message{
		PlatformID: "i:" + i.ID, Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Verb: msg.VerbMention, Content: content, Addressed: true, Timestamp: adapter.UnixMilli(discordapi.SnowflakeTime(i.ID)),
	}
	p.with(row)
	return p.of(row), nil
}
