package layers

import "cmp"

// EffectiveTopic is the line of work a message belongs to, which decides the session
// that runs. stickyTopic is the chat's pinned one, with its "#"; boundTopic is the
// named topic that the message's thread is bound to. "" stands for none of either,
// and for the default topic. A topic of the message's own beats the thread's, but
// the thread's id is none of its own.
func EffectiveTopic(stickyTopic, rowTopic, threadID, boundTopic string) string {
	if rowTopic == "" || rowTopic == threadID {
		rowTopic = cmp.Or(boundTopic, rowTopic)
	}
	return cmp.Or(stickyTopic, rowTopic)
}

// Place is the key of engagement inside a chat: the message's thread, else its own
// topic whatever is pinned.
func Place(threadID, rowTopic string) string {
	return cmp.Or(threadID, rowTopic)
}
