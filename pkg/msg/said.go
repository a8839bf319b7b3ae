package msg

import (
	"cmp"
	"fmt"
	"strings"
)

// agentPrefix begins the senders that are groups' agents.
const agentPrefix = "agent:"

// AgentSender is the sender of a group's agent.
func AgentSender(folder string) string { return agentPrefix + folder }

// AgentOf is the group whose agent a sender is, "" for all other senders.
func AgentOf(sender string) string {
	folder, isAgent := strings.CutPrefix(sender, agentPrefix)
	if !isAgent {
		return ""
	}
	return cmp.Or(folder, "unknown")
}

// Speaker is the name under which a message is shown. An inbound message that a group's agent
// wrote is marked as such: the agent chose the name, which may be a user's.
func (m *Message) Speaker() string {
	agent := AgentOf(m.Sender)
	switch {
	case m.Direction == Out || agent == "":
		return m.SenderName
	case m.SenderName == "" || m.SenderName == agent:
		return agent + " (agent)"
	}
	return fmt.Sprintf("%s (agent %s)", m.SenderName, agent)
}

// FromBot reports whether a bot or an agent wrote a message.
func (m *Message) FromBot() bool { return m.IsBot || AgentOf(m.Sender) != "" }

// Text is the text of a message: its content, for a poll the question and options, and
// the names of its files.
func (m *Message) Text() string { return TextOf(m.Kind, m.Content, m.Attachments) }

// TextOf is Message.Text of these fields.
func TextOf(kind Kind, content string, files []Attachment) string {
	const maxFiles = 5
	var parts []string
	if content = ContentText(kind, content); content != "" {
		parts = append(parts, content)
	}
	for i, a := range files {
		if i == maxFiles {
			parts = append(parts, fmt.Sprintf("[%d more files]", len(files)-maxFiles))
			break
		}
		parts = append(parts, fmt.Sprintf("[file: %.100s]", cmp.Or(a.Name, a.MIME, "unnamed")))
	}
	return strings.Join(parts, " ")
}

// ContentText is the content of a message as text: JSON of a poll as its question and options,
// with the counts once it is closed.
func ContentText(kind Kind, content string) string {
	if kind != KindPoll {
		return content
	}
	p, err := ParsePoll(content)
	if err != nil {
		return content
	}
	options := make([]string, len(p.Options))
	for i, o := range p.Options {
		if options[i] = o; p.Result != nil && i < len(p.Result.Counts) {
			options[i] = fmt.Sprintf("%s: %d", o, p.Result.Counts[i])
		}
	}
	what := "poll"
	if p.Result != nil {
		what = "closed poll"
	}
	return fmt.Sprintf("[%s: %s %s]", what, p.Question, strings.Join(options, " / "))
}
