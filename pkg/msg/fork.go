package msg

import (
	"strconv"
	"strings"
)

// Fork is a topic with a session of its own that a group has begun at a message, to
// correct it for example. Its name is never used again in its chat. Times are unix ms.
type Fork struct {
	ChatJID   string
	Topic     string // the parent's, "#" and a name: "#fix", "<thread>#fix", "#deploy#fix"
	Folder    string // the group
	ThreadID  string // where its messages are
	OwnThread bool   // the thread begins at the message, and its messages run in the fork
	MessageID int64  // the row of the message
	CreatedAt int64
	EndedAt   int64 // 0 while open
}

// Parent is the topic that a fork was begun in.
func (f *Fork) Parent() string { return f.Topic[:max(strings.LastIndex(f.Topic, TopicSigil), 0)] }

// ParentThread is the thread that a fork was begun in.
func (f *Fork) ParentThread() string {
	if f.OwnThread {
		return ""
	}
	return f.ThreadID
}

// RunsIn is the topic in which messages to a fork run: the parent, once the fork has ended.
func (f *Fork) RunsIn() string {
	if f.EndedAt != 0 {
		return f.Parent()
	}
	return f.Topic
}

// Place is the topic of a message to a fork: its own thread, or, in a place that it
// shares, its name.
func (f *Fork) Place() string {
	if f.OwnThread {
		return f.ThreadID
	}
	return f.Topic
}

// CorrectionTopic is the nth topic, counted from 1, for a correction in a topic: of ""
// it is #fix, of a thread <thread>#fix; the second is #fix2.
func CorrectionTopic(topic string, n int) string {
	topic += TopicSigil + "fix"
	if n > 1 {
		topic += strconv.Itoa(n)
	}
	return topic
}

// ForkName returns the name of a fork of a topic, without the sigil; ok is false if topic
// is not a fork of parent.
func ForkName(parent, topic string) (name string, ok bool) {
	name, ok = strings.CutPrefix(topic, parent+TopicSigil)
	return name, ok && ValidTopicName(name)
}

// ForkThread is the thread that begins at a message outside of threads, by the message's
// platform id; "" where the platform has no such threads, or the chat is a private one
// without them.
func ForkThread(chatJID string, kind ChatKind, platformID string) string {
	switch platform := FamilyOf(chatJID); {
	case platform == "slack", platform == "discord" && kind != ChatDM:
		return platformID
	}
	return ""
}

// LinksReplies reports whether a reply says which message of its thread it answers.
func LinksReplies(chatJID, threadID string) bool {
	return FamilyOf(chatJID) != "slack" || threadID == ""
}
