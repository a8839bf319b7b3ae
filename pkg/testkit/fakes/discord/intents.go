package discord

// Intent is a set of kinds of events.
type Intent uint64

// The intents.
const (
	Guilds                 Intent = 1 << 0
	GuildMembers           Intent = 1 << 1 // privileged
	GuildWebhooks          Intent = 1 << 5
	GuildPresences         Intent = 1 << 8 // privileged
	GuildMessages          Intent = 1 << 9
	GuildMessageReactions  Intent = 1 << 10
	DirectMessages         Intent = 1 << 12
	DirectMessageReactions Intent = 1 << 13
	MessageContent         Intent = 1 << 15 // privileged
	GuildMessagePolls      Intent = 1 << 24
	DirectMessagePolls     Intent = 1 << 25

	// allIntents are the valid ones: bits 17 to 19, 22 and 23 are not.
	allIntents Intent = 1<<17 - 1 | 1<<20 | 1<<21 | GuildMessagePolls | DirectMessagePolls
	privileged        = GuildMembers | GuildPresences | MessageContent
)

// intent is the one for events of a channel.
func (ch *channel) intent(inGuild, direct Intent) Intent {
	if ch.guild == nil {
		return direct
	}
	return inGuild
}

// visible is a message as a client with these intents receives it. Without MessageContent, messages
// of others in guilds are empty unless they mention the bot.
func (s *Server) visible(m Message, inGuild bool, intents Intent) Message {
	if !inGuild || intents&MessageContent != 0 || m.Author.ID == s.me.ID || mentions(m, s.me.ID) {
		return m
	}
	m.Content, m.Embeds, m.Attachments, m.Poll, m.Snapshots = "", []Embed{}, []Attachment{}, nil, nil
	return m
}

func mentions(m Message, user string) bool {
	for _, mentioned := range m.Mentions {
		if mentioned.ID == user {
			return true
		}
	}
	return false
}
