package msg

import (
	"cmp"
	"strconv"
	"strings"
)

// EffectiveTopic is the line of work a message belongs to, which decides the session
// that runs. stickyTopic is the chat's pinned one, with its "#"; boundTopic is the
// named topic that the message's thread is bound to. "" stands for none of either,
// and for the default topic. The message's own topic wins over the thread's; the
// thread's id does not count as its own topic.
func EffectiveTopic(stickyTopic, rowTopic, threadID, boundTopic string) string {
	if rowTopic == "" || rowTopic == threadID {
		rowTopic = cmp.Or(boundTopic, rowTopic)
	}
	return cmp.Or(stickyTopic, rowTopic)
}

// Place is the key of engagement inside a chat: the message's thread, else its own
// topic, whatever the chat is pinned to.
func Place(threadID, rowTopic string) string {
	return cmp.Or(threadID, rowTopic)
}

// TopicSigil begins every named topic.
const TopicSigil = "#"

// DelegatedTopic is the topic of a delegated turn, which no other turn shares.
func DelegatedTopic(messageID int64) string {
	return TopicSigil + delegated + strconv.FormatInt(messageID, 10)
}

const delegated = "d"

// ValidTopicName reports whether users may give a topic this name, without the
// sigil: ASCII letters, digits, "_" and "-", no "-" at the start, and not the name
// of a delegated turn's topic.
func ValidTopicName(name string) bool {
	for i, c := range []byte(name) {
		word := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
		if !word && (i == 0 || c != '-') {
			return false
		}
	}
	return name != "" && !ReservedTopicName(name)
}

// ReservedTopicName reports whether a name, without the sigil, is that of a delegated turn's topic, as "d12" is.
func ReservedTopicName(name string) bool {
	digits, ok := strings.CutPrefix(name, delegated)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// TopicRule says which topics users and agents may name.
const TopicRule = "# and a name of letters, digits, - and _, but not d and a number, such as #d9, which is for " +
	"delegated work"

// ValidTopic reports whether topic is "", a named topic like "#deploy", or a
// fork of named ones like "#deploy#fix".
func ValidTopic(topic string) bool {
	if topic == "" {
		return true
	}
	names, ok := strings.CutPrefix(topic, TopicSigil)
	for name := range strings.SplitSeq(names, TopicSigil) {
		ok = ok && ValidTopicName(name)
	}
	return ok
}

// OpensThread reports whether the answer to a message starts a thread from it: it
// does where the bot is mentioned in a Slack channel, to keep the channel quiet.
func OpensThread(chatJID string, kind ChatKind, verb, threadID string) bool {
	return FamilyOf(chatJID) == "slack" && kind != ChatDM && threadID == "" &&
		(verb == VerbMention || verb == VerbReply)
}
