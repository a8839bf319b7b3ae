package decide

import "arizuko/pkg/msg"

// Kind is the purpose of a row. It says which facts are read about the row, and who decides it.
type Kind uint8

// Kinds of rows. Reading its facts may show that a row is of another kind than it seems by itself, as the comments say.
const (
	KindText      Kind = iota + 1 // a user, a bot or an agent wrote it to its chat
	KindEvent                     // a reaction, or users who join or leave
	KindCommand                   // of a text, or the press of the Stop button of an open turn
	KindChange                    // an edit or a deletion, which acts on its target
	KindMention                   // an edit that addresses the bot, which the observed original did not
	KindBallot                    // a vote or the end of a poll; also a reaction that votes
	KindAnswer                    // to a question of an agent, by button or text; also the press of a late Stop button
	KindForwarded                 // one group sends it to another
	KindLeak                      // of any row that holds the open code for operators
	KindBroken                    // of any row whose facts cannot be read for a reason of its own
)

// KindOf classifies a row by itself.
func KindOf(m *msg.Message) Kind {
	if m.BetweenGroups() {
		return KindForwarded
	}
	switch m.Verb {
	case msg.VerbMessage, msg.VerbMention, msg.VerbReply:
		return KindText
	case msg.VerbEdit, msg.VerbDelete:
		return KindChange
	case msg.VerbVote, msg.VerbPollEnd:
		return KindBallot
	case msg.VerbAnswer:
		return KindAnswer
	}
	return KindEvent
}

// routed reports whether routd is asked about such rows: where they go, or which group a command is for.
func (k Kind) routed() bool {
	return k == KindText || k == KindEvent || k == KindMention || k == KindCommand
}

// Acts reports whether such rows are decided on arrival, most of them without routd. Others wait at the gate.
func (k Kind) Acts() bool { return k == KindCommand || !k.routed() && k != KindForwarded }
