package inbound

import (
	"fmt"

	"arizuko/discd/internal/restapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// option is the one option of each of our commands: what is written behind its name.
const option = "text"

// Commands are the gateway's, as Discord wants them to offer them.
func Commands() (all []restapi.Command) {
	for _, c := range msg.GatewayCommands() {
		offered := restapi.Command{Name: c.Name, Description: c.Help, Options: []restapi.Option{}}
		if c.Usage != "" {
			offered.Options = append(offered.Options, restapi.Option{Type: restapi.OptionText, Name: option, Description: c.Usage})
		}
		all = append(all, offered)
	}
	return all
}

// command reads a slash command, which calls us as much as a mention does.
func command(i *restapi.Interaction, known *Guilds) (adapter.Inbound, error) {
	if i.Type != restapi.InteractionCommand {
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
	case !restapi.IsID(i.ID), i.Data.Name == "":
		return adapter.Inbound{}, fmt.Errorf("a command in %s without an id or a name", p.chat.JID)
	case user == nil || !restapi.IsID(user.ID):
		return adapter.Inbound{}, fmt.Errorf("command %s in %s by nobody", i.ID, p.chat.JID)
	}
	content := "/" + i.Data.Name
	if text := i.Option(option); text != "" {
		content += " " + text
	}
	from := party(user, i.Member)
	row := &msg.Message{
		PlatformID: "i:" + i.ID, Sender: from.jid, SenderName: from.name, IsBot: from.bot,
		Verb: msg.VerbMention, Content: content, Addressed: true, Timestamp: millis(restapi.SnowflakeTime(i.ID)),
	}
	p.with(row)
	return p.of(row), nil
}
