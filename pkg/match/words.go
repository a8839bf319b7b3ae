package match

import (
	"strings"

	"arizuko/pkg/msg"
)

// Words describes e's matches, e.g. "mentions of the bot in telegram:-100". chat names the chat of an
// address; nil is the address itself. A room is called by the name of its chat, if chat has one.
func (e Expr) Words(chat func(jid string) string) string {
	if chat == nil {
		chat = func(jid string) string { return jid }
	}
	words := []string{"everything"}
	if p := e.pair(verb); p != nil {
		words[0] = p.verbWords()
	}
	named := e.roomName(chat)
	for _, k := range [...]key{sender, senderName, chatJID, room, platform, account} {
		p := e.pair(k)
		switch {
		case p == nil:
		case named != "" && k == room:
			words = append(words, "in "+named)
		case named == "" || k != platform && k != account: // the name of a room says those
			words = append(words, p.words(chat))
		}
	}
	return strings.Join(words, " ")
}

// roomName is the name of the chat that e's room is, "" if it has none. Without a platform, that of the first platform
// where it has one.
func (e Expr) roomName(chat func(jid string) string) string {
	value := map[key]string{}
	for _, k := range [...]key{room, platform, account} {
		if p := e.pair(k); p != nil {
			value[k] = p.glob.head
			if p.glob.kind != exact {
				return ""
			}
		}
	}
	platforms := adapterPlatforms()
	if e.pair(platform) != nil {
		platforms = []string{value[platform]}
	}
	for _, each := range platforms {
		if value[room] == "" || e.pair(chatJID) != nil {
			break
		}
		jid := msg.JID(msg.WithAccount(each, value[account]), value[room])
		if name := chat(jid); name != jid {
			return name
		}
	}
	return ""
}

func (e Expr) pair(k key) *pair {
	for i := range e.pairs {
		if e.pairs[i].key == k {
			return &e.pairs[i]
		}
	}
	return nil
}

func (p *pair) verbWords() string {
	if p.glob.kind != exact {
		return "what has a verb like " + p.glob.pattern
	}
	switch value := p.glob.head; value {
	case "message":
		return "plain messages"
	case "mention":
		return "mentions of the bot"
	case "reply":
		return "replies to the bot"
	case "reaction":
		return "reactions"
	case "join":
		return "joins"
	case "leave":
		return "leaves"
	case "":
		return "nothing (no message has an empty verb)"
	default:
		return "what has the verb " + value
	}
}

// words are those of any pair but a verb.
func (p *pair) words(chat func(jid string) string) string {
	value, one := p.glob.head, p.glob.kind == exact
	like := func(what string) string { return what + " like " + p.glob.pattern }
	switch {
	case p.key == account && one && value == "":
		return "by the first account"
	case p.key == account && one:
		return "by the account " + value
	case p.key == account:
		return "by " + like("accounts")
	case p.key == platform && one:
		return "on " + platformName(value)
	case p.key == platform:
		return "on " + like("platforms")
	case p.key == chatJID && one:
		return "in " + chat(value)
	case p.key == chatJID:
		return "in " + like("chats")
	case p.key == room && one:
		return "in the room " + value
	case p.key == room:
		return "in " + like("rooms")
	case one && value == "":
		return "without a " + strings.ReplaceAll(p.key.String(), "_", "'s ")
	case p.key == sender && one:
		return "from " + value
	case p.key == sender:
		return "from " + like("senders")
	case one:
		return "from users who are shown as " + value
	default:
		return "from users who are shown as names like " + p.glob.pattern
	}
}

func platformName(platform string) string {
	switch platform {
	case "telegram":
		return "Telegram"
	case "discord":
		return "Discord"
	case "slack":
		return "Slack"
	case "web":
		return "the web chat"
	case "hook":
		return "webhooks"
	default:
		return "the platform " + platform
	}
}
