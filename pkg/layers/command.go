package layers

import (
	"strings"

	"arizuko/pkg/msg"
)

// gatewayCommands are the commands that gated answers itself; a "/word" not among
// them is ordinary text. Help shows them in this order.
var gatewayCommands = msg.GatewayCommands()

// Command is a message that gated answers itself.
type Command struct {
	Name     string // lower case, without the slash
	Audience msg.Audience
	Args     string // everything after the name, line breaks included
	Topic    string // of "/new #topic", with its "#"
	Rest     string // Args without Topic
	Reserved bool   // Topic is one that users cannot name
}

// slack keeps "/" for its own commands, and accepts none in threads.
const slack = "slack"

// ParseCommand parses "/name", or on Slack also "!name", in any case. "/name@bot" is
// a command if ours accepts the name; "/name@other" is for another bot and ordinary
// text here.
func ParseCommand(content, platform string, ours func(bot string) bool) (Command, bool) {
	word, args := firstWord(content)
	if word == "" || word[0] != '/' && (word[0] != '!' || platform != slack) {
		return Command{}, false
	}
	name, bot, addressed := strings.Cut(word[1:], "@")
	if addressed && !ours(bot) {
		return Command{}, false
	}
	name = strings.ToLower(name)
	for _, c := range gatewayCommands {
		if c.Name == name {
			topic, rest := commandTopic(name, args)
			return Command{Name: name, Audience: c.Audience, Args: args, Topic: topic, Rest: rest,
				Reserved: ReservedTopic(topic)}, true
		}
	}
	return Command{}, false
}

func commandTopic(command, args string) (topic, rest string) {
	if command != msg.CommandNew {
		return "", args
	}
	word, rest := firstWord(args)
	sigil, name, ok := parseToken(word)
	if (!ok || sigil != TopicSigil || name == "") && !ReservedTopic(word) {
		return "", args
	}
	return string(TopicSigil) + name, rest
}

// ReservedTopic reports whether a text, such as "#d9", is alone the topic of delegated work, which is no token of
// users.
func ReservedTopic(text string) bool {
	name, ok := strings.CutPrefix(strings.TrimSpace(text), msg.TopicSigil)
	return ok && len(name) <= maxWord && msg.ReservedTopicName(name)
}

// HelpText lists the commands that a sender may use in a chat, one a line.
func HelpText(chatJID string, operator bool) string {
	var b strings.Builder
	for _, c := range gatewayCommands {
		if c.Audience == msg.ForOperators && !operator ||
			c.Name == msg.CommandOperator && (operator || msg.KindOfJID(chatJID) != msg.ChatDM) {
			continue
		}
		b.WriteString(msg.CommandIn(chatJID, c.Name))
		if c.Usage != "" {
			b.WriteString(" " + c.Usage)
		}
		b.WriteString(": " + c.Help)
		if c.Audience == msg.ForOperators {
			b.WriteString(" (operators)")
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
