package decide

import (
	"arizuko/pkg/msg"
)

// Effect is one thing that a step has decided. The set is closed: the types of this
// package. All effects of a step are stored together or not at all.
type Effect interface {
	Of() int64 // the row that the effect is of, 0 for the chat or several rows
}

// Decide gives an undecided row its disposition.
type Decide struct {
	Row         int64
	Disposition msg.Disposition
	Reason      msg.Reason
	RoutedTo    string // the group or daemon, "" for none
	Topic       string // the row's topic and thread afterwards
	ThreadID    string
	Error       string // why the row could not be handled, or which setting has decided
}

// Reply writes the gateway's own answer to a row into its chat and thread.
type Reply struct {
	Row    int64
	Source string
	Text   string
}

// StoreTurn stores a turn for rows, or adds them to one that takes them in.
type StoreTurn struct {
	Turn    msg.Turn // without TriggerMessageID, which is known once derived rows are stored
	Entries []Entry
	Trigger int // index of the entry that the turn answers
}

// Entry is a row on its way into a turn.
type Entry struct {
	Row      int64
	Derive   Derive // the row that takes its place, zero for none
	Reason   msg.Reason
	Topic    string // of the row in the turn, afterwards
	ThreadID string
	Files    bool // the row has attachments that are still to be downloaded
}

// Derive inserts a row made from another: the same sender's text in a topic.
type Derive struct {
	Text   string
	Topic  string
	Source string
}

// EnsureChat inserts the chat's row.
type EnsureChat struct{ Chat string }

// BindThread binds a thread of a chat to a topic.
type BindThread struct {
	Row      int64
	Chat     string
	ThreadID string
	Topic    string
}

// PinTopic pins the chat to a topic, "" clears the pin.
type PinTopic struct {
	Row   int64
	Topic string
}

// PinGroup pins the chat to a group from a time on, "" clears the pin.
type PinGroup struct {
	Row    int64
	Folder string
	At     int64
}

// ResetSession drops the session of a topic and lets its run finish.
type ResetSession struct {
	Row    int64
	Folder string
	Topic  string
}

// UndoTurn takes back the last turn of a topic that has ended, or with Redo does it again.
type UndoTurn struct {
	Row           int64
	Folder, Topic string
	Redo          bool
	Rest          bool  // files that have changed since stay as they are
	Turn          int64 // the turn under whose answer the button is, 0 for the last one
	By            string
	Operator      bool // By operates the group
}

// StopChat drops the undecided rows before Row of one conversation of a chat, and cancels its open turns: in the web
// chat those of a topic, elsewhere those of a thread.
type StopChat struct {
	Row      int64
	By       string
	ThreadID string // "" for rows outside of threads
	Topic    string // with OneTopic
	OneTopic bool   // of a web chat: only Topic is stopped, in any thread
	Only     string // of the undecided rows those of this sender alone are dropped, "" for all
	Except   []int64
	Own      bool // only the turns that By has asked for
}

// StopParked drops the parked rows before Row of a thread of the chat: those of a sender, "" for all.
type StopParked struct {
	Row      int64
	ThreadID string
	Sender   string
}

// StopTurn cancels one turn, and the work of groups for it.
type StopTurn struct {
	Row, Turn int64
	Sender    string
	Own       bool // only if Sender has asked for it
}

// ReplaceContent applies an edit to its undecided target.
type ReplaceContent struct {
	Row, Target int64
	Content     string
	Addressed   bool
	Verb        string
}

// ReplaceFiles gives an undecided message the files of its edit, which is the row.
type ReplaceFiles struct{ Row, Target int64 }

// SupersedeNotes discards the notes about a message that no prompt has shown.
type SupersedeNotes struct {
	Row    int64
	Target string // its platform id
}

// TakeBack applies an edit or a deletion to a message whose turn is open.
type TakeBack struct {
	Row int64
	msg.Takeback
}

// EndObjects ends the context objects that come from messages which were deleted, and the questions that these show.
type EndObjects struct {
	Row      int64
	Messages []int64
}

// AskService lets a service decide a row: a command, or one whose route names a daemon.
type AskService struct {
	Row      int64
	Service  string // one of those below, or daemon:NAME
	RouteID  int64  // of a daemon
	Folder   string // the chat's group, for commands about it
	Operator bool   // one who operates that group wrote the command
}

// Services that answer commands. gated itself answers those that take many reads.
const (
	Dashd = "dashd"
	Onbod = "onbod"
	Gated = "gated"
)

func serviceOf(command string) string {
	switch command {
	case msg.CommandStatus, msg.CommandAlerts:
		return Dashd
	case msg.CommandWhy, msg.CommandWho, msg.CommandAgent, msg.CommandModel, msg.CommandHooks, msg.CommandSpend,
		msg.CommandRules:
		return Gated
	}
	return Onbod
}

// OpenRequest asks onbod to open a request for the chat, about a row. The row stays
// undecided.
type OpenRequest struct{ Row int64 }

// TakeUpParked makes the chat's parked rows undecided again.
type TakeUpParked struct{}

// TakeUpRow makes one parked row undecided again.
type TakeUpRow struct{ Row int64 }

// DropParked drops the chat's parked rows.
type DropParked struct{ Reason msg.Reason }

// Hold says that a row stays in the gate. It stores nothing.
type Hold struct {
	Row   int64
	Until int64 // unix ms
}

// Wait says why an undecided row waits. It stores nothing.
type Wait struct {
	Row int64
	For string
}

// Things that a row waits for.
const (
	ForRoutd   = "routd"
	ForRequest = "request" // onbod's answer
	ForGroup   = "group"   // further rows of its group, such as pictures of an album
)

func (e Decide) Of() int64         { return e.Row }
func (e Reply) Of() int64          { return e.Row }
func (StoreTurn) Of() int64        { return 0 }
func (EnsureChat) Of() int64       { return 0 }
func (e BindThread) Of() int64     { return e.Row }
func (e PinTopic) Of() int64       { return e.Row }
func (e PinGroup) Of() int64       { return e.Row }
func (e ResetSession) Of() int64   { return e.Row }
func (e UndoTurn) Of() int64       { return e.Row }
func (e StopChat) Of() int64       { return e.Row }
func (e StopParked) Of() int64     { return e.Row }
func (e StopTurn) Of() int64       { return e.Row }
func (e ReplaceContent) Of() int64 { return e.Row }
func (e ReplaceFiles) Of() int64   { return e.Row }
func (e SupersedeNotes) Of() int64 { return e.Row }
func (e TakeBack) Of() int64       { return e.Row }
func (e EndObjects) Of() int64     { return e.Row }
func (e AskService) Of() int64     { return e.Row }
func (e OpenRequest) Of() int64    { return e.Row }
func (TakeUpParked) Of() int64     { return 0 }
func (e TakeUpRow) Of() int64      { return e.Row }
func (DropParked) Of() int64       { return 0 }
func (e Hold) Of() int64           { return e.Row }
func (e Wait) Of() int64           { return e.Row }
func (e CountVote) Of() int64      { return e.Row }
func (e EndPoll) Of() int64        { return e.Row }
func (e AnswerAsk) Of() int64      { return e.Row }
func (e AddOperator) Of() int64    { return e.Row }
func (e NoteWrongCode) Of() int64  { return e.Row }
func (e EndCode) Of() int64        { return e.Row }
