package decide

import (
	"fmt"

	"arizuko/pkg/msg"
)

// Code has the facts about the code of an /operator, or about the open one in another text.
type Code struct {
	Hash  string // "" if there is none in the command
	Open  bool   // one is open that the sender may try
	Right bool   // it is this one

	Without string // of a KindLeak: the text without the open code
}

// AddOperator makes the sender of a row an operator, by the code with a hash.
type AddOperator struct {
	Row  int64
	Hash string
}

// NoteWrongCode counts a wrong code of a row's sender.
type NoteWrongCode struct{ Row int64 }

// EndCode makes the code that is open worthless.
type EndCode struct{ Row int64 }

// Answers to /operator. Those to a code that does not work are the same, whatever is wrong with it; %s is the command.
const (
	textIsOperator   = "You are an operator already."
	textNowOperator  = "You are an operator now, as %s. %s lists what operators may write."
	textOperatorCode = "Create a code on the dashboard, under Access, then send %s and the code here."
	textWrongCode    = "That code does not work: it is wrong, used or too old. Make a new one on the dashboard, under Access."
	textCodeWritten  = "A code for operators was in that message, so it is worthless now. Make a new one on the dashboard, under Access."
	textCodeInGroup  = "Codes count in a direct chat with the bot alone, and one that was written here is worthless now. Make a new one on the dashboard, " +
		"under Access, and write it to the bot."
)

// leak ends a code that stands in a text that is no /operator, and takes it out of the text: agents read it.
// The row is decided by the next step.
func (w *step) leak(r *Row) {
	w.add(ReplaceContent{Row: r.ID, Target: r.ID, Content: r.Code.Without, Addressed: r.Addressed, Verb: r.Verb})
	w.add(EndCode{r.ID})
	w.ended = true
	if !r.IsBot && !r.byAgent() {
		w.reply(r, msg.SourceCommand, textCodeWritten)
	}
}

// operator makes a user an operator who writes the code that the dashboard shows. The stored message has no code:
// agents can read it.
func (w *step) operator(r *Row) {
	w.add(ReplaceContent{Row: r.ID, Target: r.ID, Content: msg.CommandIn(r.ChatJID, msg.CommandOperator),
		Addressed: r.Addressed, Verb: r.Verb})
	w.ended = true // the rows after it may be an operator's
	direct := w.f.Chat.Kind == msg.ChatDM
	switch c := r.Code; {
	case r.Operator:
		w.answer(r, textIsOperator)
	case c == nil, r.byAgent():
		w.answer(r, textWrongCode)
	case c.Hash == "":
		w.answer(r, fmt.Sprintf(textOperatorCode, msg.CommandIn(r.ChatJID, msg.CommandOperator)))
	case !direct:
		if c.Right {
			w.add(EndCode{r.ID})
		}
		w.answer(r, textCodeInGroup)
	case c.Right:
		w.add(AddOperator{r.ID, c.Hash})
		w.answer(r, fmt.Sprintf(textNowOperator, r.Sender, msg.CommandIn(r.ChatJID, msg.CommandHelp)))
	default:
		if c.Open {
			w.add(NoteWrongCode{r.ID})
		}
		w.answer(r, textWrongCode)
	}
}

// OperatorCommand returns the code of a row that is /operator, and reports whether it is to be looked at: not of an
// operator, and not of an agent.
func (r *Row) OperatorCommand() (code string, is bool) {
	if r.Command == nil || r.Command.Name != msg.CommandOperator || r.Operator || r.byAgent() {
		return "", false
	}
	return r.Command.Args, true
}
