package msg

// Disposition says how an inbound row was decided; each row gets exactly one.
type Disposition string

// Dispositions. Onboarding is the one parked state, all others are final.
const (
	Sticky     Disposition = "sticky"
	Command    Disposition = "command"
	Prefix     Disposition = "prefix"
	Routed     Disposition = "routed"
	Observed   Disposition = "observed"
	Dropped    Disposition = "dropped"
	Onboarding Disposition = "onboarding"
)

// Reason is the code for why a row got its disposition or a turn its state.
// The set is closed; Reasons documents each code.
type Reason string

// Meaning explains the code, "" if it is unknown.
func (r Reason) Meaning() string { return known(r).Meaning }

// Shown tells how the sender of a message learns about the code.
func (r Reason) Shown() Shown { return known(r).Shown }

func known(r Reason) (none Documented) {
	for _, d := range Reasons {
		if d.Code == r {
			return d
		}
	}
	return none
}

// Reasons of dispositions.
const (
	ReasonStickyGroup      Reason = "sticky_group"
	ReasonStickyTopic      Reason = "sticky_topic"
	ReasonStickyReset      Reason = "sticky_reset"
	ReasonCommand          Reason = "command"
	ReasonPrefixGroup      Reason = "prefix_group"
	ReasonPrefixTopic      Reason = "prefix_topic"
	ReasonRoute            Reason = "route"
	ReasonRouteObserve     Reason = "route_observe"
	ReasonEngaged          Reason = "engaged"
	ReasonToSticky         Reason = "sticky_target"
	ReasonAddress          Reason = "address"
	ReasonDelegated        Reason = "delegated"
	ReasonAnswer           Reason = "answer"
	ReasonReset            Reason = "reset_text"
	ReasonGrouped          Reason = "grouped"
	ReasonReminder         Reason = "reminder"
	ReasonBuiltinPing      Reason = "builtin_ping"
	ReasonBuiltinDrop      Reason = "builtin_drop"
	ReasonDaemon           Reason = "daemon"
	ReasonDaemonFailed     Reason = "daemon_failed"
	ReasonNoRoute          Reason = "no_route"
	ReasonNoGroup          Reason = "no_group"
	ReasonNoAccess         Reason = "no_access"
	ReasonRateLimit        Reason = "rate_limit"
	ReasonCommandLimit     Reason = "command_limit"
	ReasonPinDenied        Reason = "pin_denied"
	ReasonStale            Reason = "stale"
	ReasonQuoted           Reason = "quoted"
	ReasonBotLoop          Reason = "bot_loop"
	ReasonHookFilter       Reason = "hook_filter"
	ReasonHookLoop         Reason = "hook_loop"
	ReasonEditApplied      Reason = "edit_applied"
	ReasonEditNote         Reason = "edit_note"
	ReasonEditSuperseded   Reason = "edit_superseded"
	ReasonEditSame         Reason = "edit_same"
	ReasonEditOrphan       Reason = "edit_orphan"
	ReasonEditUntaken      Reason = "edit_untaken"
	ReasonEditAddressed    Reason = "edit_addressed"
	ReasonDeleted          Reason = "deleted"
	ReasonStopped          Reason = "stopped"
	ReasonReactionOnly     Reason = "reaction_only"
	ReasonReactionOverflow Reason = "reaction_overflow"
	ReasonVote             Reason = "vote"
	ReasonPollEnd          Reason = "poll_end"
	ReasonPollClosed       Reason = "poll_closed"
	ReasonPollUnknown      Reason = "poll_unknown"
	ReasonChosen           Reason = "chosen"
	ReasonChoiceDenied     Reason = "choice_denied"
	ReasonChoiceLate       Reason = "choice_late"
	ReasonChoiceUnknown    Reason = "choice_unknown"
	ReasonStopLate         Reason = "stop_late"
	ReasonUndoLate         Reason = "undo_late"
	ReasonDuplicate        Reason = "duplicate"
	ReasonBadRow           Reason = "bad_row"
	ReasonFanOut           Reason = "fan_out"
	ReasonAwaitingApproval Reason = "awaiting_approval"
	ReasonRejected         Reason = "rejected"
	ReasonExpired          Reason = "expired"
	ReasonOnboardingFull   Reason = "onboarding_full"
	ReasonOnboardingLimit  Reason = "onboarding_limit"
)

// Reasons of turns.
const (
	ReasonAnswered    Reason = "answered"
	ReasonSilent      Reason = "silent"
	ReasonFolded      Reason = "folded"
	ReasonPartial     Reason = "partial"
	ReasonInterrupted Reason = "interrupted"
	ReasonAgentError  Reason = "agent_error"
	ReasonAlreadyTold Reason = "already_told"
	ReasonCancelled   Reason = "cancelled"
	ReasonOverBudget  Reason = "over_budget"
)

// Documented is a code with its meaning.
type Documented struct {
	Code    Reason
	Meaning string
	Shown   Shown
}

// Reasons lists every code, in the order of the life of a message.
var Reasons = []Documented{
	{ReasonStickyGroup, "the row was a bare @name: the chat is pinned to that group", acknowledged},
	{ReasonStickyTopic, "the row was a bare #name: the chat is pinned to that topic", acknowledged},
	{ReasonStickyReset, "the row was a bare @ or #: the pin was cleared", acknowledged},
	{ReasonCommand, "the row was a command and was answered by the gateway", acknowledged},
	{ReasonPrefixGroup, "the row began with @name: a derived row carries it to that group", answeredByTurn},
	{ReasonPrefixTopic, "the row began with #name: a derived row carries it to that topic", answeredByTurn},
	{ReasonRoute, "a route named the group", answeredByTurn},
	{ReasonRouteObserve, "a route says the group only observes this chat", Shown{Mark: MarkRead}},
	{ReasonEngaged, "the group is engaged in this place", answeredByTurn},
	{ReasonToSticky, "the chat is pinned to the group", answeredByTurn},
	{ReasonAddress, "the chat's own address names the group", answeredByTurn},
	{ReasonDelegated, "another group delegated the row", notAddressed},
	{ReasonAnswer, "the parent group's answer to an escalation", notAddressed},
	{ReasonReset, "the text after /new, asked in the new session", answeredByTurn},
	{ReasonGrouped, "the row is part of an album or of a split text, whose first text is a command or " +
		"names a group or topic: that holds for the row too", answeredByTurn},
	{ReasonReminder, "a reminder of the group was due: the row is its prompt", notAddressed},
	{ReasonBuiltinPing, "a route says the gateway answers pong", acknowledged},
	{ReasonBuiltinDrop, "a route says to ignore the row", Shown{Mark: MarkUnanswered}},
	{ReasonDaemon, "a route sent the row to another daemon, which accepted it",
		Shown{Words: "what that daemon writes"}},
	{ReasonDaemonFailed, "a route names a daemon that did not accept the row in three tries",
		Shown{Mark: MarkUnanswered}},
	{ReasonAwaitingApproval, "the chat has no group yet: the row is parked until an operator decides the " +
		"chat's request", Shown{Mark: MarkRead, Words: "once, that an operator must approve the chat"}},
	{ReasonRejected, "an operator has rejected the chat's request, or did within the day before",
		Shown{Mark: MarkUnanswered, Words: "once, what the operator decided"}},
	{ReasonExpired, "no operator has decided the chat's request in time", Shown{Mark: MarkUnanswered}},
	{ReasonOnboardingFull, "the chat has no group yet, and as many parked rows as are kept",
		Shown{Mark: MarkUnanswered}},
	{ReasonOnboardingLimit, "the chat has no group, and too many requests were made lately",
		Shown{Mark: MarkUnanswered}},
	{ReasonNoRoute, "no route matches, and the row does not ask for a group to be connected: it does not address the " +
		"bot, another bot wrote it, or the chat has a group for other messages", Shown{Mark: MarkUnanswered}},
	{ReasonNoGroup, "the address names a group that is not registered", Shown{Mark: MarkUnanswered}},
	{ReasonNoAccess, "the group's role ask does not admit the sender", Shown{Mark: MarkUnanswered}},
	{ReasonRateLimit, "the sender has had as many turns of the group within the hour as its rate allows",
		Shown{Mark: MarkUnanswered, Words: "once an hour, how long to wait"}},
	{ReasonCommandLimit, "the sender, who is no operator, had been answered 20 commands and pins in this chat " +
		"within the minute", Shown{Mark: MarkUnanswered, Words: "once an hour, the limit"}},
	{ReasonPinDenied, "the row was a bare token, and only operators may pin the chat",
		Shown{Words: "a reply: only operators may pin the chat"}},
	{ReasonStale, "the row was already older than MAX_AGE when it arrived: `gated replay MESSAGE` answers it",
		Shown{Mark: MarkUnanswered, Words: "once per `MAX_AGE`, that the bot was offline"}},
	{ReasonQuoted, "the platform sent the post along with a message that answers, quotes or forwards it", notAddressed},
	{ReasonBotLoop, "another bot was answered here too often in a short time", Shown{Mark: MarkUnanswered}},
	{ReasonHookFilter, "the settings of the hook leave such deliveries to be read later: `gated replay MESSAGE` " +
		"hands one to the agent", notAddressed},
	{ReasonHookLoop, "deliveries of the hook have started 20 turns of this topic within ten minutes", notAddressed},
	{ReasonEditApplied, "the edit or deletion was applied to its target before an agent had begun with that", changes},
	{ReasonEditNote, "an agent had begun with the target, or only observes it: the change is a note in the next prompt",
		changes},
	{ReasonEditSuperseded, "a newer edit or deletion of the same message came before the next prompt", changes},
	{ReasonEditSame, "the edit changed neither words nor files", changes},
	{ReasonEditUntaken, "the edit or deletion names a message that was routed to no group, or of a turn taken back",
		changes},
	{ReasonEditOrphan, "the edit or deletion names a message that is not stored", changes},
	{ReasonEditAddressed, "an edit that addresses the bot where the original did not", answeredByTurn},
	{ReasonDeleted, "the message was deleted before an agent had answered it", changes},
	{ReasonStopped, "the row was undecided or parked when /stop came", Shown{Mark: MarkUnanswered}},
	{ReasonReactionOnly, "reactions alone start a turn only where a route says so", notAddressed},
	{ReasonReactionOverflow, "more reactions were released together than fit into one turn", notAddressed},
	{ReasonVote, "a vote in a poll of the group: it is counted", Shown{Words: "the platform shows the vote"}},
	{ReasonPollEnd, "the platform has closed a poll of the group", Shown{Words: "the platform shows the vote"}},
	{ReasonPollClosed, "a vote in a poll that was closed before, or the end of one",
		Shown{Words: "the platform shows the vote"}},
	{ReasonPollUnknown, "a vote in a poll that is not stored, or for an option that it does not have",
		Shown{Words: "the platform shows the vote"}},
	{ReasonChosen, "the answer to a question of an agent: it has got it",
		Shown{Words: "the question shows the answer"}},
	{ReasonChoiceDenied, "an answer to a question of an agent, by a user who may not answer it",
		Shown{Words: "a reply that says who may answer"}},
	{ReasonChoiceLate, "an answer to a question of an agent that was answered before, or had expired",
		Shown{Words: "a reply: the question is closed"}},
	{ReasonChoiceUnknown, "a press or a typed answer that matches no question of this chat, or more than one",
		Shown{Words: "a reply: how to answer, or that the question is closed"}},
	{ReasonStopLate, "the press of a Stop button whose turn had ended", Shown{Words: "a reply: the turn has ended"}},
	{ReasonUndoLate, "the press of an Undo button more than ten minutes after its turn, or of a forged one",
		Shown{Words: "a reply: the button is too old"}},
	{ReasonDuplicate, "the message is stored in another row: the chat has a new address, or the post itself " +
		"came after a message that quotes it", Shown{Words: "what the other row has"}},
	{ReasonBadRow, "the row cannot be handled; its error column says why", Shown{Mark: MarkUnanswered}},
	{ReasonFanOut, "the delegation went deeper or wider than allowed", notAddressed},
	{ReasonAnswered, "the agent answered", Shown{Words: "the answer"}},
	{ReasonSilent, "the agent chose to say nothing", Shown{Words: "nothing more: the agent decided so"}},
	{ReasonFolded, "the agent took the turn in while it worked on another one: that one's answer is for both",
		Shown{Words: "the answer of the other turn"}},
	{ReasonPartial, "the agent failed after it had answered in part", inPart},
	{ReasonInterrupted, "gated stopped after part of the answer was stored", inPart},
	{ReasonAgentError, "the agent failed", Shown{Words: "a notice that it failed"}},
	{ReasonAlreadyTold, "the agent failed as it had in this chat or thread within the hour: there was a notice then",
		Shown{Mark: MarkUnanswered}},
	{ReasonCancelled, "cancelled by /stop or an operator", stoppedTurn},
	{ReasonOverBudget, "a budget of the group is used up: the turn is asked again if an operator raises it",
		Shown{Mark: MarkUnanswered, Words: "once an hour, that the budget is used up"}},
}

// OutStateOf is the initial state of a chat's outbound rows. Where no user reads them, nothing is delivered: a row is
// sent once it is written.
func OutStateOf(chatJID string) OutState {
	if NoUsers(chatJID) {
		return OutSent
	}
	return OutQueued
}
