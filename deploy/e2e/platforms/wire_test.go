package platforms

import (
	"fmt"
	"strconv"
	"strings"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/fakes/discord"
)

// wireCalls are the calls by which the bot wrote into chats, in the order in which the platform got them: what was done,
// to which message, and the text or emoji. The bot's sign that it is working is left out.
func (f *fixture) wireCalls() []string {
	switch p := f.Platform.(type) {
	case *chatsim.Telegram:
		return telegramCalls(p)
	case *chatsim.Discord:
		return discordCalls(p)
	case *chatsim.Slack:
		return slackCalls(p)
	}
	f.T.Fatalf("unknown platform %T", f.Platform)
	return nil
}

func telegramCalls(p *chatsim.Telegram) (all []string) {
	for _, c := range p.Sent() {
		id := strconv.Itoa(c.MessageID)
		switch c.Method {
		case "sendMessage":
			all = append(all, "text "+c.Text)
		case "editMessageText":
			all = append(all, "edit "+id+" "+c.Text)
		case "sendDocument":
			all = append(all, fmt.Sprintf("file %s %s %s", c.Files[0].Name, c.Files[0].Data, c.Text))
		case "setMessageReaction":
			all = append(all, "reaction "+id+" "+strings.Join(c.Reactions, ""))
		case "sendPoll":
			all = append(all, fmt.Sprintf("poll %s native", c.Params["question"]))
		case "stopPoll":
			all = append(all, "end "+id)
		}
	}
	return all
}

func discordCalls(p *chatsim.Discord) (all []string) {
	for _, c := range p.Sent() {
		switch {
		case c.Repeated:
		case c.Route == discord.CreateMessage && c.Message != nil && c.Message.Poll != nil:
			all = append(all, fmt.Sprintf("poll %s native", c.Message.Poll.Question.Text))
		case c.Route == discord.CreateMessage && len(c.Files) > 0:
			all = append(all, fmt.Sprintf("file %s %s %s", c.Files[0].Name, c.Files[0].Data, c.Text))
		case c.Route == discord.CreateMessage:
			all = append(all, "text "+c.Text)
		case c.Route == discord.EditMessage:
			all = append(all, "edit "+c.MessageID+" "+c.Text)
		case c.Route == discord.CreateReaction:
			all = append(all, "reaction "+c.MessageID+" "+c.Emoji)
		case c.Route == discord.EndPoll:
			all = append(all, "end "+c.MessageID)
		}
	}
	return all
}

// slackCalls shows a reaction of a thumb as the other platforms have it.
func slackCalls(p *chatsim.Slack) (all []string) {
	for _, c := range p.Sent() {
		switch {
		case c.Method == "files.completeUploadExternal":
			all = append(all, fmt.Sprintf("file %s %s %s", c.Files[0].Name, c.Files[0].Data, c.Text))
		case c.Method == "chat.postMessage" && strings.Contains(c.Text, msg.OptionEmoji(1)):
			question, _, _ := strings.Cut(c.Text, "\n")
			all = append(all, "poll "+question+" text")
		case c.Method == "chat.postMessage":
			all = append(all, "text "+c.Text)
		case c.Method == "chat.update" && strings.Contains(c.Text, "Closed"):
			all = append(all, "end "+c.TS)
		case c.Method == "chat.update":
			all = append(all, "edit "+c.TS+" "+c.Text)
		case c.Method == "reactions.add" && c.Reaction == "+1":
			all = append(all, "reaction "+c.TS+" 👍")
		}
	}
	return all
}
