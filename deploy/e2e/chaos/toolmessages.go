package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/msg"
)

// Groups whose agents call the tools that messages name.
const (
	toolsGroup = "tools"
	toolsChild = "tools/eng"
	// provokedTools answers only provocations.
	provokedTools = "provokedtools"
)

// Rooms of the foreign platform begin with these.
const (
	toolsRoom         = "tool-"
	toolsChildRoom    = "eng-"
	provokedToolsRoom = "q"
)

// sharedFile is the file that agents of toolsGroup send, relative to their folder.
const sharedFile = "notes.txt"

// reminderDelay is how far ahead reminders are made: a turn may be retried meanwhile. It is shorter than the outage at
// the end of a run.
const reminderDelay = 20 * time.Second

// toolMessage is a message that makes an agent call tools, with the effects that must follow exactly once however often
// its turn is retried.
type toolMessage struct {
	chat, content string
	effects       []effect
	// late: reminder_create refuses the call if it is handled when the time has passed. Then nothing follows.
	late bool
	// refuses are tools that refuse some of their calls.
	refuses []string
}

// effect is a count of rows.
type effect struct {
	query string
	args  []any
	want  int
}

// sentRows are outbound rows of a chat with a text.
func sentRows(c chatsim.Conversation, source string, kind msg.Kind, content string, want int) effect {
	return effect{`SELECT count(*) FROM messages WHERE direction = 'out' AND chat_jid = ? AND thread_id = ? AND source = ? AND kind = ? AND content = ?`,
		[]any{c.Chat, c.Thread, source, kind, content}, want}
}

// answerLine is a line of one answer in a chat.
func answerLine(c chatsim.Conversation, line string) effect {
	return effect{`SELECT count(*) FROM messages WHERE direction = 'out' AND source = 'agent' AND chat_jid = ? AND thread_id = ?
		AND instr(? || content || ?, ?) > 0`, []any{c.Chat, c.Thread, "\n", "\n", "\n" + line + "\n"}, 1}
}

// limitNotices are the notices of a chat that its agents have passed a request on too often.
func limitNotices(c chatsim.Conversation, content string) effect {
	return effect{`SELECT count(*) FROM messages n JOIN messages q ON q.turn_id = n.turn_id AND q.direction = 'in' WHERE n.chat_jid = ?
		AND n.thread_id = ? AND n.source = 'notice' AND instr(n.content, 'passed this request on') > 0 AND q.content = ?`,
		[]any{c.Chat, c.Thread, content}, 1}
}

// inJSON is a text as a JSON string.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string cannot fail
	return string(quoted)
}

// toolMessageKinds make the messages of random load.
func toolMessageKinds() []func(g *generator, c chatsim.Conversation, text string) toolMessage {
	return []func(*generator, chatsim.Conversation, string) toolMessage{
		sendTwice, sendFile, editSent, reactToIt, remind, remindToAnswer, announce, closePoll, injectElsewhere,
		delegateWork, delegateAndAsk,
	}
}

// sendTwice makes the same call twice: both act.
func sendTwice(_ *generator, c chatsim.Conversation, text string) toolMessage {
	line := fmt.Sprintf(`call send_message {"text":%q}`, text)
	return toolMessage{content: line + "\n" + line, effects: []effect{sentRows(c, msg.SourceTool, msg.KindMessage, text,
		2)}}
}

func sendFile(_ *generator, c chatsim.Conversation, text string) toolMessage {
	return toolMessage{
		content: fmt.Sprintf(`call send_file {"path":%q,"caption":%q}`, sharedFile, text),
		effects: []effect{sentRows(c, msg.SourceTool, msg.KindFile, text, 1)},
	}
}

func editSent(_ *generator, c chatsim.Conversation, text string) toolMessage {
	return toolMessage{
		content: fmt.Sprintf("call send_message {\"text\":%q}\ncall edit_message {\"message_id\":$message_id,\"text\":%q}", text, text+" edited"),
		effects: []effect{
			sentRows(c, msg.SourceTool, msg.KindMessage, text, 1),
			sentRows(c, msg.SourceTool, msg.KindEdit, text+" edited", 1),
		},
	}
}

func reactToIt(_ *generator, c chatsim.Conversation, text string) toolMessage {
	content := fmt.Sprintf("call react {\"message_id\":$this,\"emoji\":\"👍\"}\nsay %s", text)
	return toolMessage{content: content, effects: []effect{answerLine(c, text), {
		`SELECT count(*) FROM messages r JOIN messages q ON q.platform_id = r.target_id AND q.chat_jid = r.chat_jid
			WHERE r.direction = 'out' AND r.kind = 'reaction' AND q.chat_jid = ? AND q.content = ?`, []any{c.Chat, content}, 1,
	}}}
}

// dueAt is when a reminder fires that a message asks for now.
func dueAt() string { return time.Now().Add(reminderDelay).UTC().Format(time.RFC3339) }

func remind(_ *generator, c chatsim.Conversation, text string) toolMessage {
	return reminderMessage(fmt.Sprintf(`call reminder_create {"kind":"text","body":%q,"due_at":%q}`, text, dueAt()),
		text,
		sentRows(c, msg.SourceReminder, msg.KindMessage, text, 1))
}

func remindToAnswer(_ *generator, c chatsim.Conversation, text string) toolMessage {
	body := "say " + text
	return reminderMessage(fmt.Sprintf(`call reminder_create {"kind":"prompt","body":%q,"due_at":%q}`, body, dueAt()),
		body,
		answerLine(c, text))
}

// reminderMessage asks for a reminder, which is sent where it was made. Its first effect is the reminder itself.
func reminderMessage(content, body string, fired effect) toolMessage {
	return toolMessage{content: content, late: true, effects: []effect{
		{`SELECT count(*) FROM reminders WHERE body = ? AND state = 'done'`, []any{body}, 1}, fired,
	}}
}

// maxAnnouncements is how often the agents of a group may broadcast within an hour.
const maxAnnouncements = 10

// announce broadcasts, or does something else once the group has no broadcast left.
func announce(g *generator, c chatsim.Conversation, text string) toolMessage {
	if g.announced == maxAnnouncements {
		return remind(g, c, text)
	}
	g.announced++
	chats := []string{c.Chat}
	if other := g.otherToolChat(c); other.Chat != c.Chat {
		chats = append(chats, other.Chat)
	}
	list, _ := json.Marshal(chats) // strings cannot fail
	e := toolMessage{content: fmt.Sprintf(`call broadcast {"text":%q,"chats":%s}`, text, list)}
	for _, chat := range chats {
		e.effects = append(e.effects, sentRows(chatsim.Conversation{Chat: chat}, msg.SourceBroadcast, msg.KindMessage,
			text, 1))
	}
	return e
}

// closePoll opens and closes a poll.
func closePoll(_ *generator, c chatsim.Conversation, text string) toolMessage {
	return toolMessage{
		content: fmt.Sprintf("call poll_create {\"question\":%q,\"options\":[\"yes\",\"no\"]}\ncall poll_close {\"poll_id\":$poll_id}", text),
		effects: []effect{
			{`SELECT count(*) FROM polls WHERE question = ? AND state = 'closed' AND end_pending = 0`, []any{text}, 1},
			{`SELECT count(*) FROM messages WHERE direction = 'out' AND kind = 'poll' AND chat_jid = ? AND thread_id = ?
				AND content ->> 'question' = ?`, []any{c.Chat, c.Thread, text}, 2},
		},
	}
}

func injectElsewhere(g *generator, c chatsim.Conversation, text string) toolMessage {
	other := g.otherToolChat(c)
	other.Thread, other.Topic = "", ""
	return toolMessage{
		content: fmt.Sprintf(`call inject_message {"chat_jid":%q,"content":%q}`, other.Chat, "say "+text),
		effects: []effect{answerLine(other, text), {
			`SELECT count(*) FROM messages WHERE direction = 'in' AND chat_jid = ? AND content = ?`,
			[]any{other.Chat, "say " + text}, 1,
		}},
	}
}

// delegateWork has a child group send a message and answer, both in the chat of the request.
func delegateWork(_ *generator, c chatsim.Conversation, text string) toolMessage {
	prompt := fmt.Sprintf("call send_message {\"text\":%q}\nsay %s", text+" begun", text)
	return toolMessage{
		content: fmt.Sprintf(`call delegate {"folder":%q,"prompt":%s}`, toolsChild, inJSON(prompt)),
		effects: []effect{answerLine(c, text), sentRows(c, msg.SourceTool, msg.KindMessage, text+" begun", 1)},
	}
}

// delegateAndAsk has a child group ask its parent, and answer with the parent's answer.
func delegateAndAsk(_ *generator, c chatsim.Conversation, text string) toolMessage {
	prompt := fmt.Sprintf(`call escalate {"prompt":%q}`, "say say "+text)
	return toolMessage{
		content: fmt.Sprintf(`call delegate {"folder":%q,"prompt":%s}`, toolsChild, inJSON(prompt)),
		effects: []effect{answerLine(c, text)},
	}
}

// escalateQuestion is for the chats of the child group, which asks its parent.
func escalateQuestion(c chatsim.Conversation, text string) toolMessage {
	return toolMessage{content: fmt.Sprintf(`call escalate {"prompt":%q}`, "say say "+text),
		effects: []effect{answerLine(c, text)}}
}

// delegationStorm delegates more often than a request may be passed on.
func delegationStorm(c chatsim.Conversation, text string) toolMessage {
	e := toolMessage{refuses: []string{"delegate"}}
	var lines []string
	for i := range msg.MaxDelegations + 4 {
		line := fmt.Sprintf("%s-%d", text, i)
		lines = append(lines, fmt.Sprintf(`call delegate {"folder":%q,"prompt":%q}`, toolsChild, "say "+line))
		if i < msg.MaxDelegations {
			e.effects = append(e.effects, answerLine(c, line))
		}
	}
	e.content = strings.Join(lines, "\n")
	e.effects = append(e.effects, limitNotices(c, e.content))
	return e
}

// delegationLoop is passed on between a group and its child until it is too deep.
func delegationLoop(c chatsim.Conversation, text string) toolMessage {
	content := fmt.Sprintf("call delegate {\"folder\":%q,\"prompt\":\"$text\"}\ncall escalate {\"prompt\":\"$text\"}\n%s", toolsChild, text)
	return toolMessage{content: content, refuses: []string{"delegate", "escalate"}, effects: []effect{
		{`SELECT count(*) FROM messages WHERE direction = 'in' AND source = 'delegate' AND content = ?`, []any{content},
			msg.MaxDelegationDepth},
		limitNotices(c, content),
	}}
}

// newToolChats are the chats of toolsGroup: some without a platform, and one on each.
func newToolChats(platforms []chatsim.Platform) []chatsim.Conversation {
	all := []chatsim.Conversation{
		{Chat: "matrix:" + toolsRoom + "1"}, {Chat: "matrix:" + toolsRoom + "2", Thread: "t1", Topic: "t1"},
		{Chat: "web:" + toolsGroup},
	}
	for _, p := range platforms {
		all = append(all, p.NewDM("Toolsmith"))
	}
	return all
}

// toolRoutes lead the chats of the groups that call tools to them.
func toolRoutes(chats []chatsim.Conversation) (all []msg.Route) {
	for _, c := range chats {
		all = append(all, msg.Route{Match: "chat_jid=" + c.Chat, Target: toolsGroup})
	}
	return append(all, msg.Route{Match: "platform=matrix room=" + toolsRoom + "*", Target: toolsGroup},
		msg.Route{Match: "platform=matrix room=" + toolsChildRoom + "*", Target: toolsChild},
		msg.Route{Match: "platform=matrix room=" + provokedToolsRoom + "*", Target: provokedTools})
}

func (g *generator) otherToolChat(c chatsim.Conversation) chatsim.Conversation {
	for {
		if other := g.toolChats[g.random.IntN(len(g.toolChats))]; other.Chat != c.Chat || len(g.toolChats) == 1 {
			return other
		}
	}
}

// callTools sends a random toolMessage.
func (g *generator) callTools(ctx context.Context) {
	kinds := toolMessageKinds()
	n := g.random.IntN(len(kinds) + 1)
	if n == len(kinds) && g.foreign == nil {
		n = 0
	}
	if n == len(kinds) {
		c := chatsim.Conversation{Chat: "matrix:" + toolsChildRoom + "1"}
		g.sendToolMessage(ctx, c, escalateQuestion(c, g.plainText()))
		return
	}
	c := g.toolChats[g.random.IntN(len(g.toolChats))]
	g.sendToolMessage(ctx, c, kinds[n](g, c, g.plainText()))
}

// sendToolMessage sends an toolMessage in a chat.
func (g *generator) sendToolMessage(ctx context.Context, c chatsim.Conversation, e toolMessage) {
	e.chat = c.Chat
	g.toolMessages = append(g.toolMessages, e)
	g.post(ctx, c, e.content, nil, msg.VerbMessage)
}

// passOnTooOften makes agents pass requests on to each other in a storm and in a loop, while daemons are killed.
func (g *generator) passOnTooOften(ctx context.Context) {
	storm, loop := chatsim.Conversation{Chat: "matrix:" + toolsRoom + "storm"},
		chatsim.Conversation{Chat: "matrix:" + toolsRoom + "loop", Thread: "t1", Topic: "t1"}
	g.sendToolMessage(ctx, storm, delegationStorm(storm, g.plainText()))
	g.sendToolMessage(ctx, loop, delegationLoop(loop, g.plainText()))
}
