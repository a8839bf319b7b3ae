package discord

// Intent is a set of what a client of the gateway wants to be told.
type Intent uint64

// The intents.
const (
	Guilds                 Intent = 1 << 0
	GuildMembers           Intent = 1 << 1 // privileged
	GuildPresences         Intent = 1 << 8 // privileged
	GuildMessages          Intent = 1 << 9
	GuildMessageReactions  Intent = 1 << 10
	DirectMessages         Intent = 1 << 12
	DirectMessageReactions Intent = 1 << 13
	MessageContent         Intent = 1 << 15 // privileged
	GuildMessagePolls      Intent = 1 << 24
	DirectMessagePolls     Intent = 1 << 25

	// allIntents are those that there are: 17 to 19, 22 and 23 are no intents.
	allIntents Intent = 1<<17 - 1 | 1<<20 | 1<<21 | GuildMessagePolls | DirectMessagePolls
	privileged        = GuildMembers | GuildPresences | MessageContent
)

// intent picks the one for what happens in a channel.
func (ch *channel) intent(inGuild, direct Intent) Intent {
	if ch.guild == nil {
		return direct
	}
	return inGuild
}

// visible is a message as a client with these intents gets it: without MessageContent, what
// others say in guilds without mentioning the bot is empty.
func (s *Server) visible(m Message, inGuild bool, intents Intent) Message {
	if !inGuild || intents&MessageContent != 0 || m.Author.ID == s.me.ID || mentions(m, s.me.ID) {
		return m
	}
	m.Content, m.Embeds, m.Attachments, m.Poll, m.Snapshots = "", []Embed{}, []Attachment{}, nil, nil
	return m
}

func mentions(m Message, user string) bool {
	for _, who := range m.Mentions {
		if who.ID == user {
			return true
		}
	}
	return false
}
