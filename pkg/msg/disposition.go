package msg

// Disposition is what became of an inbound row; exactly one per row.
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
func (r Reason) Meaning() string {
	for _, known := range Reasons {
		if known.Code == r {
			return known.Meaning
		}
	}
	return ""
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

// Reasons lists every code with its meaning, in the order of the life of a
// message.
var Reasons = []struct {
	Code    Reason
	Meaning string
}{
	{ReasonStickyGroup, "the row was a bare @name: the chat is pinned to that group"},
	{ReasonStickyTopic, "the row was a bare #name: the chat is pinned to that topic"},
	{ReasonStickyReset, "the row was a bare @ or #: the pin was cleared"},
	{ReasonCommand, "the row was a command and was answered by the gateway"},
	{ReasonPrefixGroup, "the row began with @name: a derived row carries it to that group"},
	{ReasonPrefixTopic, "the row began with #name: a derived row carries it to that topic"},
	{ReasonRoute, "a route named the group"},
	{ReasonRouteObserve, "a route says the group only observes this chat"},
	{ReasonEngaged, "the group is engaged in this place"},
	{ReasonToSticky, "the chat is pinned to the group"},
	{ReasonAddress, "the chat's own address names the group"},
	{ReasonDelegated, "another group delegated the row"},
	{ReasonAnswer, "the parent group's answer to an escalation"},
	{ReasonReset, "the text after /new, asked in the new session"},
	{ReasonGrouped, "the row is part of an album or of a split text, whose first text is a command or names a group or topic: that holds for the row too"},
	{ReasonReminder, "a reminder of the group was due: the row is its prompt"},
	{ReasonBuiltinPing, "a route says the gateway answers pong"},
	{ReasonBuiltinDrop, "a route says to ignore the row"},
	{ReasonDaemon, "a route sent the row to another daemon, which accepted it"},
	{ReasonDaemonFailed, "a route names a daemon that did not accept the row in three tries"},
	{ReasonAwaitingApproval,
		"the chat has no group yet: the row is parked until an operator decides the chat's request"},
	{ReasonRejected, "an operator has rejected the chat's request, or did within the day before"},
	{ReasonExpired, "no operator has decided the chat's request in time"},
	{ReasonOnboardingFull, "the chat has no group yet, and as many parked rows as are kept"},
	{ReasonOnboardingLimit, "the chat has no group, and too many requests were made lately"},
	{ReasonNoRoute, "no route matches, and the row asks for no group: the bot was not addressed, or another bot wrote it"},
	{ReasonNoGroup, "the address names a group that is not registered"},
	{ReasonNoAccess, "the group's access does not admit the sender"},
	{ReasonRateLimit, "the sender has had as many turns of the group within the hour as its rate allows"},
	{ReasonCommandLimit,
		"the sender, who is no operator, had been answered 20 commands and pins in this chat within the minute"},
	{ReasonPinDenied, "the row was a bare token, and only operators may pin the chat"},
	{ReasonStale, "the row was already older than MAX_AGE when it arrived"},
	{ReasonQuoted, "the platform sent the post along with a message that answers, quotes or forwards it"},
	{ReasonBotLoop, "another bot was answered here too often in a short time"},
	{ReasonEditApplied, "the edit or deletion was applied to its target before that was decided"},
	{ReasonEditNote, "the target had been decided: the change is a note in the next prompt"},
	{ReasonEditSuperseded, "a newer edit or deletion of the same message came before the next prompt"},
	{ReasonEditSame, "the edit changed neither words nor files"},
	{ReasonEditUntaken, "the edit or deletion names a message that was routed to no group"},
	{ReasonEditOrphan, "the edit or deletion names a message that is not stored"},
	{ReasonEditAddressed, "an edit that addresses the bot where the original did not"},
	{ReasonDeleted, "the message was deleted before it was decided"},
	{ReasonStopped, "the row was undecided or parked when /stop came"},
	{ReasonReactionOnly, "reactions alone start a turn only where a route says so"},
	{ReasonReactionOverflow, "more reactions were released together than fit into one turn"},
	{ReasonVote, "a vote in a poll of the group: it is counted"},
	{ReasonPollEnd, "the platform has closed a poll of the group"},
	{ReasonPollClosed, "a vote in a poll that was closed before, or the end of one"},
	{ReasonPollUnknown, "a vote in a poll that is not stored, or for an option that it does not have"},
	{ReasonChosen, "the answer to a question of an agent: it has got it"},
	{ReasonChoiceDenied, "an answer to a question of an agent, by a user who may not answer it"},
	{ReasonChoiceLate, "an answer to a question of an agent that was answered before, or had expired"},
	{ReasonChoiceUnknown, "a button of no question of this chat, or of an option that the question does not have"},
	{ReasonStopLate, "the press of a Stop button whose turn had ended"},
	{ReasonDuplicate, "the message is stored in another row: the chat has a new address, or the post itself came after a message that quotes it"},
	{ReasonBadRow, "the row cannot be handled; its error column says why"},
	{ReasonFanOut, "the delegation went deeper or wider than allowed"},
	{ReasonAnswered, "the agent answered"},
	{ReasonSilent, "the agent chose to say nothing"},
	{ReasonFolded, "the agent took the turn in while it worked on another one: that one's answer is for both"},
	{ReasonPartial, "the agent failed after it had answered in part"},
	{ReasonInterrupted, "gated stopped after part of the answer was stored"},
	{ReasonAgentError, "the agent failed"},
	{ReasonAlreadyTold, "the agent failed as it had in this chat within the hour: the chat got a notice then"},
	{ReasonCancelled, "cancelled by /stop or an operator"},
	{ReasonOverBudget, "a budget of the group is used up: the turn is asked again if an operator raises it"},
}
