package msg

import (
	"cmp"
	"strings"
)

// Words is the disposition in a word or two.
func (d Disposition) Words() string {
	return cmp.Or(map[Disposition]string{
		"": "not decided yet", Sticky: "pins the chat", Command: "a command", Prefix: "passed on",
		Routed: "starts a turn", Observed: "only read", Dropped: "not answered", Onboarding: "waits for approval",
	}[d], string(d))
}

// theGroup stands in the words of a reason for the group that a message went to.
const theGroup = "the group"

// Words says what the code means for a message or turn, as the end of a sentence that begins with it: "went to the
// group because a route leads there". An unknown code stands for itself.
func (r Reason) Words() string { return cmp.Or(reasonWords[r], string(r)) }

// Outcome says what happened to an inbound message, and why.
func (m *Message) Outcome() string {
	words := m.Reason.Words()
	if m.Disposition == "" || words == "" {
		return m.Disposition.Words()
	}
	kind := map[string]string{VerbMention: "mentions", VerbReply: "replies", VerbReaction: "reactions"}[m.Verb]
	if m.Reason == ReasonRoute && kind != "" {
		words = "went to " + theGroup + " because a route takes " + kind
	}
	if m.RoutedTo != "" && !strings.HasPrefix(m.RoutedTo, "daemon:") {
		words = strings.ReplaceAll(words, theGroup, m.RoutedTo)
	}
	return words
}

// reasonWords has words for each code of Reasons.
var reasonWords = map[Reason]string{
	ReasonStickyGroup:      "pinned the chat to a group",
	ReasonStickyTopic:      "pinned the chat to a topic",
	ReasonStickyReset:      "removed the chat's pin",
	ReasonCommand:          "was a command",
	ReasonPrefixGroup:      "went to the group that its @name names",
	ReasonPrefixTopic:      "went to the topic that its #name names",
	ReasonRoute:            "went to the group because a route leads there",
	ReasonRouteObserve:     "only read by the group, as a route says",
	ReasonEngaged:          "went to the group because it is in a conversation here",
	ReasonToSticky:         "went to the group because the chat is pinned to it",
	ReasonAddress:          "went to the group because this is its own chat",
	ReasonDelegated:        "went to the group because another group delegated it",
	ReasonAnswer:           "went to the group as the answer to its question",
	ReasonReset:            "went to the group in a new session, after /new",
	ReasonGrouped:          "goes where the beginning of its album or text went",
	ReasonReminder:         "went to the group because a reminder was due",
	ReasonBuiltinPing:      "was answered with pong, as a route says",
	ReasonBuiltinDrop:      "ignored, as a route says",
	ReasonDaemon:           "went to another daemon, as a route says",
	ReasonDaemonFailed:     "not answered: the daemon that its route names did not accept it",
	ReasonAwaitingApproval: "waits until an operator approves the chat",
	ReasonRejected:         "not answered: an operator rejected the chat",
	ReasonExpired:          "not answered: no operator approved the chat in time",
	ReasonOnboardingFull:   "not answered: too many messages wait for the chat's approval",
	ReasonOnboardingLimit:  "not answered: too many chats asked for approval",
	ReasonNoRoute:          "not answered: no route takes it",
	ReasonNoGroup:          "not answered: the group in the chat's address does not exist",
	ReasonNoAccess:         "not answered: the sender may not ask the group",
	ReasonRateLimit:        "not answered: the sender has asked too often this hour",
	ReasonCommandLimit:     "not answered: the sender has sent too many commands",
	ReasonPinDenied:        "not pinned: only operators can pin the chat",
	ReasonStale:            "not answered: it was too old when it arrived",
	ReasonQuoted:           "came along with a message that quotes it",
	ReasonBotLoop:          "not answered: two bots were answering each other",
	ReasonHookFilter:       "kept for later, as the hook's settings say",
	ReasonHookLoop:         "not answered: the hook has started too many turns",
	ReasonEditApplied:      "changed its message before the agent began",
	ReasonEditNote:         "the agent reads of the change with its next turn",
	ReasonEditSuperseded:   "replaced by a newer change of the same message",
	ReasonEditSame:         "changed nothing",
	ReasonEditOrphan:       "changes a message that is not stored",
	ReasonEditUntaken:      "changes a message that went to no group",
	ReasonEditAddressed:    "went to the group because the edit addresses the bot",
	ReasonDeleted:          "deleted before the agent answered",
	ReasonStopped:          "not answered: stopped by /stop",
	ReasonReactionOnly:     "not answered: no route takes reactions",
	ReasonReactionOverflow: "not answered: too many reactions at once",
	ReasonVote:             "counted as a vote",
	ReasonPollEnd:          "ended a poll",
	ReasonPollClosed:       "not counted: the poll was closed",
	ReasonPollUnknown:      "not counted: the poll or its option is unknown",
	ReasonChosen:           "answered the agent's question",
	ReasonChoiceDenied:     "refused: another user must answer this question",
	ReasonChoiceLate:       "refused: the question was closed",
	ReasonChoiceUnknown:    "refused: it matches no question",
	ReasonStopLate:         "came after the turn had ended",
	ReasonUndoLate:         "refused: the Undo button was too old",
	ReasonDuplicate:        "stored before, in another row",
	ReasonBadRow:           "not answered: it cannot be read",
	ReasonFanOut:           "not answered: delegated too deep or too wide",
	ReasonAnswered:         "answered",
	ReasonSilent:           "the agent chose to say nothing",
	ReasonFolded:           "answered together with another turn",
	ReasonPartial:          "failed after part of the answer",
	ReasonInterrupted:      "interrupted after part of the answer",
	ReasonAgentError:       "failed",
	ReasonAlreadyTold:      "failed again within an hour",
	ReasonCancelled:        "cancelled by /stop or an operator",
	ReasonOverBudget:       "not started: the group's budget is used up",
}
