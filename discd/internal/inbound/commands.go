package inbound

import (
	"cmp"
	"fmt"
	"slices"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
)

// option is the only option of each command: its argument.
const option = "text"

// Commands are gated's commands, as Discord registers them.
func Commands() (all []discordapi.Command) {
	for _, c := range msg.GatewayCommands() {
		offered := discordapi.Command{Name: c.Name, Description: c.Help, Options: []discordapi.Option{}}
		if c.Usage != "" {
			offered.Options = append(offered.Options, discordapi.Option{Type: discordapi.OptionText, Name: option,
				Description: c.Usage})
		}
		all = append(all, offered)
	}
	return all
}

// interaction converts a slash command or the press of a button; other kinds make no row.
func interaction(i *discordapi.Interaction, me Self, known *Guilds) (in adapter.Inbound, err error) {
	pressed, ours := msg.ParseButtonData(i.Data.CustomID)
	isPress := i.Type == discordapi.InteractionPress && ours
	if i.Type != discordapi.InteractionCommand && !isPress {
		return in, nil
	}
	p, err := placeOf(i.GuildID, i.ChannelID, me, known)
	if err != nil {
		return in, err
	}
	user := i.User
	if i.Member != nil && i.Member.User != nil {
		user = i.Member.User
	}
	switch {
	case !discordapi.IsID(i.ID), i.Data.Name == "" && !isPress:
		return in, fmt.Errorf("a command in %s without an id or a name", p.chat.JID)
	case user == nil || !discordapi.IsID(user.ID):
		return in, fmt.Errorf("interaction %s in %s without a user", i.ID, p.chat.JID)
	case isPress && (i.Message == nil || !discordapi.IsID(i.Message.ID)):
		return in, fmt.Errorf("press %s in %s without a message", i.ID, p.chat.JID)
	}
	from := me.actor(user, i.Member)
	row := &msg.Message{
		PlatformID: "i:" + i.ID, Sender: from.JID, SenderName: from.Name, IsBot: from.Bot,
		Timestamp: adapter.UnixMilli(discordapi.SnowflakeTime(i.ID)),
	}
	if isPress {
		row.Verb, row.Content, row.TargetID = msg.VerbAnswer, pressed.JSON(), i.Message.ID
	} else {
		// a command addresses the bot like a mention
		row.Verb, row.Content, row.Addressed = msg.VerbMention, commandText(i), true
	}
	p.with(row)
	in = p.of(row)
	in.Admins = known.admins(p.guild, row, i.Member)
	return in, nil
}

// commandText is a slash command as it is written elsewhere. Other commands of the application have arguments with
// names.
func commandText(i *discordapi.Interaction) string {
	text := "/" + i.Data.Name
	if !slices.ContainsFunc(msg.GatewayCommands(),
		func(ours msg.GatewayCommand) bool { return ours.Name == i.Data.Name }) {
		return text + given(i.Data.Options, maxNested)
	}
	if argument := i.Option(option); argument != "" {
		text += " " + argument
	}
	return text
}

// maxNested is how deep commands stand below others: in a group of a command.
const maxNested = 3

// given are arguments as Discord shows them: " rain:7 where:Paris".
func given(arguments []discordapi.Given, depth int) (text string) {
	for i := range arguments {
		a := &arguments[i]
		text += " " + plaintext.Line(a.Name)
		if len(a.Value) > 0 {
			text += ":" + cmp.Or(a.Text(), plaintext.Line(string(a.Value)))
		}
		if depth > 1 {
			text += given(a.Options, depth-1)
		}
	}
	return text
}
