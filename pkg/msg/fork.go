package msg

import "strconv"

// Fork is a topic with a session of its own that a group has begun at a message, to
// correct it for example.
type Fork struct {
	ChatJID   string
	Topic     string // "#fix", "<thread>#fix", "#deploy#fix"
	Folder    string // the group
	ThreadID  string // where its messages are
	OwnThread bool   // the thread begins at the message, and is bound to the topic
	MessageID int64  // the row of the message
	CreatedAt int64  // unix ms
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

// ForkThread is the thread that begins at a message outside of threads, by the message's
// platform id; "" where the platform has no such threads, or the chat is a private one
// without them.
func ForkThread(chatJID string, kind ChatKind, platformID string) string {
	switch platform, _ := SplitJID(chatJID); {
	case platform == "slack", platform == "discord" && kind != ChatDM:
		return platformID
	}
	return ""
}

// LinksReplies reports whether a reply says which message of its thread it answers.
func LinksReplies(chatJID, threadID string) bool {
	platform, _ := SplitJID(chatJID)
	return platform != "slack" || threadID == ""
}
