package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
)

// Texts of the gateway's answers.
const (
	textOperatorsOnly = "Only operators can do that."
	textNoGroup       = "This chat is not connected to a group yet."
	textPending       = "This chat is not connected to a group yet. It waits for an operator to approve request %s."
	textApproved      = "This chat is not connected to a group yet. Request %s is approved: the chat is connected as " +
		"soon as routing (routd) answers."
	textRejected = "This chat is not connected to a group: an operator rejected request %s. " +
		"What you write is not kept. You can ask again in %d h."
	textStoppedOwn = "stopped what you asked for; only %s can stop what others asked for"
	textFileUnread = ". The file that came with it was not read: send it again if it matters."
	textReserved   = "Topics of d and a number, such as #d9, are for delegated work: choose another name. " +
		"Nothing has changed."
	textRefused = "Routing (routd) cannot say which group this chat belongs to. The reason is in routd's log."
)

// command answers a command at once: it waits neither for the gate, nor for the
// rows before it, nor for a running turn. Only /new waits for routd's answer, which says
// whose session it ends, and /status does while routd is slow.
func (w *step) command(r *Row) bool {
	name := r.Command.Name
	switch {
	case r.ignored():
		w.ignore(r)
		return true
	case r.Command.Audience == msg.ForRouted && !r.admitted(r.Home):
		w.refuse(r)
		return true
	case w.overCommands(r):
		return true
	case r.Foreign && !r.Known:
		return false // routd says whether the chat's group admits its sender
	case serviceOf(name) == Gated && name != msg.CommandWhy && !r.Known:
		return false // they are about the chat's group
	case name == msg.CommandNew && (w.f.Routd != RoutdAnswers || !r.Known):
		return false // the text before it belongs to the session that it ends, too
	case undoes(name) && !r.Known:
		return false // it is about the group's topic
	case r.Command.Audience == msg.ForOperators && !r.Operator:
		w.answer(r, textOperatorsOnly)
		return true
	case name == msg.CommandStatus && !r.Known && w.f.Routd == RoutdSlow:
		return false
	}
	if problem := r.withoutGroup(); problem != "" && (name != msg.CommandStop || r.Foreign) {
		w.answerUnconnected(r, problem)
		return true
	}
	switch name {
	case msg.CommandPing:
		w.answer(r, "pong")
	case msg.CommandChatID:
		w.answer(r, r.addresses())
	case msg.CommandHelp:
		w.answer(r, layers.HelpText(r.ChatJID, r.Operator))
	case msg.CommandOperator:
		w.operator(r)
	case msg.CommandNew:
		if r.Command.Reserved {
			w.answer(r, textReserved)
		} else if until, waits := r.awaitsGroup(w.f.Now); waits {
			w.blocked, w.due = ForGroup, earliest(w.due, until)
			w.wait(r, ForGroup)
		} else {
			w.newSession(r, r.Answer.Home)
		}
	case msg.CommandUndo, msg.CommandRedo:
		w.undo(r, r.Answer.Home)
	case msg.CommandStop:
		w.stop(r) // whatever the chat's group: its route may be gone while its turns run
	default:
		w.calls = append(w.calls, r.ID)
		ask := AskService{Row: r.ID, Service: serviceOf(name), Operator: r.operates()}
		if name == msg.CommandRules { // who operates a group may not answer its questions
			ask.Operator = r.Operator
		}
		if r.Known {
			ask.Folder = r.Answer.Home
		}
		w.add(ask)
	}
	return true
}

func undoes(command string) bool { return command == msg.CommandUndo || command == msg.CommandRedo }

// undoRest is the word after /undo that leaves out files which have changed since.
const undoRest = "rest"

// undo takes back the last turn of the topic, or does it again. Messages that wait in the gate are not of it.
func (w *step) undo(r *Row, folder string) {
	rest := strings.EqualFold(r.Command.Args, undoRest)
	if r.Command.Args != "" && !rest {
		w.answer(r, fmt.Sprintf("%s takes no other word than %q, which leaves out files "+
			"that have changed since.", msg.CommandIn(r.ChatJID, r.Command.Name), undoRest))
		return
	}
	w.decide(r, msg.Command, msg.ReasonCommand, folder)
	w.add(UndoTurn{Row: r.ID, Folder: folder, Topic: w.topicOf(r, folder, r.Topic), Rest: rest,
		Redo: r.Command.Name == msg.CommandRedo, Turn: r.UndoesTurn, By: r.Sender, Operator: r.Operator})
	w.ended = true
}

// addresses is the chat's address and, where that is another, its sender's.
func (r *Row) addresses() string {
	if r.Sender == r.ChatJID || msg.AddressedFolder(r.ChatJID) != "" {
		return r.ChatJID
	}
	return r.ChatJID + "\nyou are " + r.Sender
}

// answer decides a command's row and replies.
func (w *step) answer(r *Row, text string) {
	w.decide(r, msg.Command, msg.ReasonCommand, "")
	w.reply(r, msg.SourceCommand, text)
}

// answerUnconnected answers a command that needs the chat's group. If the chat waits for
// an approval, it says so.
func (w *step) answerUnconnected(r *Row, problem string) {
	if problem == textNoGroup {
		if w.requestUnread() {
			return
		}
		problem = w.withoutGroupYet()
	}
	w.answer(r, problem)
}

// withoutGroupYet words how far the request of a chat without a group is.
func (w *step) withoutGroupYet() string {
	q := &w.f.Request
	again := q.DecidedAt + onboardapi.RejectedFor.Milliseconds() - w.f.Now
	switch {
	case q.State == RequestPending && q.Noted:
		return fmt.Sprintf(textApproved, q.Code)
	case q.State == RequestPending:
		return fmt.Sprintf(textPending, q.Code)
	case q.State == RequestRejected && again > 0 && again <= onboardapi.RejectedFor.Milliseconds():
		return fmt.Sprintf(textRejected, q.Code, (again+time.Hour.Milliseconds()-1)/time.Hour.Milliseconds())
	}
	return textNoGroup
}

// withoutGroup returns the reply to a command that needs the chat's group where
// routd knows of none. Without routd's answer it is "": dashd, which /status is for,
// looks for itself.
func (r *Row) withoutGroup() string {
	switch {
	case r.Command.Audience != msg.ForRouted || !r.Known:
		return ""
	case r.Answer.Error != "":
		return textRefused
	case r.Answer.Home == "":
		return textNoGroup
	}
	return ""
}

// asks reports whether a /new asks something in the new session: by the text after it, by its files, or about a post.
func asks(c *layers.Command, m *msg.Message) bool {
	return !c.Reserved && (c.Rest != "" || hasFiles(m) || refers(m))
}

// newSession drops the session of a topic and makes a turn there of the text after the
// command, and of the other rows of its group. Rows before it are released first.
func (w *step) newSession(r *Row, folder string) {
	if !w.releaseBefore(r) {
		return
	}
	topic, ack := r.Command.Topic, "new session in "+r.Command.Topic
	if topic == "" {
		topic, ack = w.topicOf(r, folder, r.Topic), "new session"
	}
	w.ended = true
	var asked *entry
	if asks(r.Command, r.Message) {
		if asked = w.newSessionEntry(r, r.Command, folder, topic); w.overRate(asked) {
			return
		}
	}
	w.decide(r, msg.Command, msg.ReasonCommand, folder)
	w.add(ResetSession{Row: r.ID, Folder: folder, Topic: topic})
	if asked == nil {
		w.reply(r, msg.SourceCommand, ack)
		return
	}
	w.turns.add(asked)
	for i := range w.f.Rows {
		other := &w.f.Rows[i]
		if other.Kind == KindText && other.follows(r) && !w.decided[other.ID] && other.admitted(r.Home, other.Group) {
			waits := Wait{Row: other.ID, For: ForRoutd}
			w.effects = slices.DeleteFunc(w.effects, func(e Effect) bool { return e == waits })
			w.decide(other, msg.Command, msg.ReasonGrouped, folder)
			w.turns.add(w.newSessionEntry(other, r.Command, folder, topic))
		}
	}
}

// newSessionEntry is the entry for the text after /new, or for another row of its group.
func (w *step) newSessionEntry(r *Row, c *layers.Command, folder, topic string) *entry {
	own, text := cmp.Or(c.Topic, r.Topic), c.Rest
	if r.followsCommandRow() {
		text = r.Content
	}
	e := newEntry(r, msg.ReasonReset, folder, msg.Place(r.ThreadID, own))
	e.derive, e.turn.Topic = Derive{Text: text, Topic: own, Source: msg.SourceCommand}, topic
	if r.Post != "" && msg.OpensThread(r.ChatJID, w.f.Chat.Kind, r.verb(), r.ThreadID) {
		w.openThread(e, r.Post)
	}
	surface := msg.SurfaceOf(r.ChatJID, w.f.Chat.Kind, e.turn.ThreadID)
	e.turn.Surface, e.turn.Ceiling = surface.Name, surface.Ceiling
	return e
}

// noSender is the sender of no row. A foreign adapter may leave the sender of a /stop empty, which would stand for all.
const noSender = "?"

// stop cancels the turns of the conversation in which it is written, and drops the rows that it holds. In the web chat
// that is a topic, elsewhere a thread, or everything outside of threads. Other turns of the chat, and those of the
// group's other chats, go on. In a chat without a group, where any stranger may write the command, the messages of
// others go on waiting, unless an operator writes it. The button under an answer ends that turn alone. Where a group
// says who operates it, other users end only what they have asked for, unless the chat is theirs alone.
func (w *step) stop(r *Row) {
	text, only := "stopped", r.Home != nil && r.Home.Roles.Operate != nil && !r.operates() &&
		w.f.Chat.Kind != msg.ChatDM
	if only {
		text = fmt.Sprintf(textStoppedOwn, msg.EscapeLine(r.Home.Roles.Operate.Words(msg.WhoOperate, nil)))
	}
	if r.StopsTurn != 0 {
		w.add(StopTurn{Row: r.ID, Turn: r.StopsTurn, Sender: r.Sender, Own: only})
		w.answer(r, text)
		w.ended = true
		return
	}
	e := StopChat{
		Row: r.ID, By: r.Sender, ThreadID: r.ThreadID, Own: only,
		Except: append(slices.Concat(w.f.InCall, w.calls), r.ID), // services decide these
	}
	own := cmp.Or(r.Sender, noSender)
	if r.Operator {
		own = ""
	}
	folder := ""
	if r.Known && r.Answer.Error == "" {
		if folder = r.Answer.Home; folder == "" || only {
			e.Only = own
		}
	}
	if platform, _ := msg.SplitJID(r.ChatJID); platform == msg.PlatformWeb { // where nothing is parked
		e.Topic, e.OneTopic = w.topicOf(r, folder, r.Topic), true
		w.add(e)
	} else {
		w.add(e)
		w.add(StopParked{Row: r.ID, ThreadID: r.ThreadID, Sender: own})
	}
	if hasFiles(r.Message) {
		text += textFileUnread
	}
	w.answer(r, text)
	w.ended = true
}

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
	textWrongCode    = "That code does not work: it is wrong, used or too old. Make a new one on the dashboard, " +
		"under Access."
	textCodeWritten = "A code for operators was in that message, so it is worthless now. " +
		"Make a new one on the dashboard, under Access."
	textCodeInGroup = "Codes count in a direct chat with the bot alone, and one that was written here is " +
		"worthless now. Make a new one on the dashboard, under Access, and write it to the bot."
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
