package msg

import (
	"strconv"
	"strings"
)

// Limits of one turn; further rows make another turn after it.
const (
	MaxTurnRows  = 100
	MaxTurnBytes = 256 << 10
)

// MaxRunTurns bounds the unanswered turns of one run: more than a user types
// ahead, few enough that an agent that reads nothing holds little.
const MaxRunTurns = 16

// Turn is one row of turns: a batch of rows handed to an agent, with an
// immutable delivery address. An empty ReplyTo and a zero RunID or RootTurnID
// stand for NULL.
type Turn struct {
	ID               int64     `json:"id"`
	RunID            int64     `json:"run_id,omitempty"`
	Kind             TurnKind  `json:"kind"`
	Folder           string    `json:"folder"`
	ChatJID          string    `json:"chat_jid"`
	Topic            string    `json:"topic"`
	ThreadID         string    `json:"thread_id"`
	Place            string    `json:"place"`
	ReplyTo          string    `json:"reply_to,omitempty"`
	TriggerMessageID int64     `json:"trigger_message_id"`
	ClaimsEngagement bool      `json:"claims_engagement"`
	Surface          string    `json:"surface"`
	Ceiling          int       `json:"ceiling"`
	State            TurnState `json:"state"`
	Reason           Reason    `json:"reason"`
	Attempts         int       `json:"attempts"`
	NotBefore        int64     `json:"not_before"`
	WaitsFor         WaitsFor  `json:"waits_for,omitempty"`
	RowCount         int       `json:"row_count"` // 0 if it is not known
	RowBytes         int       `json:"row_bytes"`
	ObservedUpto     int64     `json:"observed_upto"`
	Frames           int       `json:"frames"`
	Depth            int       `json:"depth"`
	RootTurnID       int64     `json:"root_turn_id,omitempty"`
	AnsweredWith     int64     `json:"answered_with,omitempty"` // the turn whose answer is for this one too
	Error            string    `json:"error,omitempty"`
	ErrorKind        ErrorKind `json:"error_kind,omitempty"`
	CreatedAt        int64     `json:"created_at"`
	StartedAt        int64     `json:"started_at,omitempty"`
	EndedAt          int64     `json:"ended_at,omitempty"`
	UndoneAt         int64     `json:"undone_at,omitempty"` // when it was taken back
}

// Root is the turn whose limit this one's delegations count against: the first
// of the chain, or the turn itself.
func (t *Turn) Root() int64 {
	if t.RootTurnID != 0 {
		return t.RootTurnID
	}
	return t.ID
}

// RootOfWork is the root of the work that the turn gives to groups. For a reminder's that is the turn itself: the work
// it begins counts neither for the conversation in which the reminder was made, nor for its engagement.
func (t *Turn) RootOfWork() int64 {
	if t.Kind == Broadcast {
		return t.ID
	}
	return t.Root()
}

// Address is the process that the turn is for.
func (t *Turn) Address() Address { return Address{t.Folder, t.ChatJID, t.Topic, t.ThreadID} }

// Lane is the line in which the turn waits, see Address.Lane.
func (t *Turn) Lane() string { return t.Address().Lane(t.Kind) }

// Alone reports whether the turn shares no process with other turns: it is
// delegated, or has failed before and could fail others with it.
func (t *Turn) Alone() bool { return t.Kind == Delegated || t.Attempts > 0 }

// Folds reports whether an agent may take the turn in while it works on another one, and answer both with one message:
// both are of users of one place of a chat, whose lines go on there.
func (t *Turn) Folds(into *Turn) bool {
	return t.foldable() && into.foldable() && t.Address() == into.Address() && t.Place == into.Place
}

func (t *Turn) foldable() bool { return t.Kind == Conversation && !t.Alone() && !t.WorksForGroup() }

// Request is the id of the row by which another group asked for the turn's work, 0 if none did. Also of a turn
// that goes on with it, once a question of its own is answered: both share the request's topic, see DelegatedTopic.
func (t *Turn) Request() int64 {
	if t.Kind == Delegated {
		return t.TriggerMessageID
	}
	name, ok := strings.CutPrefix(t.Topic, TopicSigil)
	if !ok || !ReservedTopicName(name) {
		return 0
	}
	id, _ := strconv.ParseInt(strings.TrimPrefix(name, delegated), 10, 64)
	return id
}

// WorksForGroup reports whether the turn works on another group's request. Its chat is then the one that the
// request comes from, or one between groups.
func (t *Turn) WorksForGroup() bool { return t.Request() != 0 }

// TurnKind says how a turn was started.
type TurnKind string

// Kinds of turns. Only conversations open or extend engagement.
const (
	Conversation TurnKind = "conversation"
	Broadcast    TurnKind = "broadcast"
	Delegated    TurnKind = "delegated"
)

// TurnState is the state of a turn.
type TurnState string

// IsOpen reports whether the turn has not ended.
func (s TurnState) IsOpen() bool { return s == TurnQueued || s == TurnRunning }

// States of a turn. A running turn belongs to a run, which answers its turns one
// after another.
const (
	TurnQueued    TurnState = "queued"
	TurnRunning   TurnState = "running"
	TurnDone      TurnState = "done"
	TurnFailed    TurnState = "failed"
	TurnCancelled TurnState = "cancelled"
)

// WaitsFor is why a queued turn does not start before its time.
type WaitsFor string

// What a queued turn waits for. The empty value is a free agent.
const (
	WaitsFiles   WaitsFor = "files"   // the attachments of its rows are being downloaded
	WaitsRetry   WaitsFor = "retry"   // the delay before the next attempt
	WaitsMachine WaitsFor = "machine" // this machine could not start an agent
	WaitsProbe   WaitsFor = "probe"   // the group's turns fail alike: one a minute is tried
)

// Meaning says to operators what a queued turn waits for, "" for nothing.
func (w WaitsFor) Meaning() string {
	for _, known := range Waits {
		if known.For == w {
			return known.Meaning
		}
	}
	return string(w)
}

// ErrorKind tells the effect of a turn's failure on its session and its retry.
type ErrorKind string

// Kinds of failures.
const (
	ErrorSession   ErrorKind = "session"   // the session is dropped, the turn retried
	ErrorTransient ErrorKind = "transient" // the session stays, the turn is retried
	ErrorPermanent ErrorKind = "permanent" // the session stays, a retry cannot succeed
	ErrorMachine   ErrorKind = "machine"   // not the agent's: no attempt is used
)

// Run is one row of runs: one agent process, bound to one address.
type Run struct {
	ID        int64
	Folder    string
	Topic     string
	ChatJID   string
	ThreadID  string
	Runtime   string
	Agent     string // its name in AGENTS, "" for the default one; only StartRun and StoreSession use it
	PID       int
	PIDStart  int64
	Label     string
	StartedAt int64
	Owner     int64 // the process whose agents they are, 0 for the only gated there is
	Draining  bool  // it gets no more turns
	ClosedAt  int64
	EndedAt   int64
}

// PreviewMode is how much users may see of a turn before it answers. gated stores it when a run gets the turn.
type PreviewMode string

// The values of PreviewMode.
const (
	PreviewText PreviewMode = "live"   // the answer as it grows
	PreviewLine PreviewMode = "status" // one line that says what the agent does
	PreviewOff  PreviewMode = "off"
)
