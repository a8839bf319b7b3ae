package msg

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
	ObservedUpto     int64     `json:"observed_upto"`
	Frames           int       `json:"frames"`
	Depth            int       `json:"depth"`
	RootTurnID       int64     `json:"root_turn_id,omitempty"`
	Error            string    `json:"error,omitempty"`
	CreatedAt        int64     `json:"created_at"`
	StartedAt        int64     `json:"started_at,omitempty"`
	EndedAt          int64     `json:"ended_at,omitempty"`
}

// Root is the turn whose limit this one's delegations count against: the first
// of the chain, or the turn itself.
func (t *Turn) Root() int64 {
	if t.RootTurnID != 0 {
		return t.RootTurnID
	}
	return t.ID
}

// TurnKind is what started a turn.
type TurnKind string

// Kinds of turns. Only conversations open or extend engagement.
const (
	Conversation TurnKind = "conversation"
	Broadcast    TurnKind = "broadcast"
	Delegated    TurnKind = "delegated"
)

// TurnState is the state of a turn.
type TurnState string

// States of a turn. Offered and running turns belong to a run; offered ones
// wait there for an earlier turn.
const (
	TurnQueued    TurnState = "queued"
	TurnOffered   TurnState = "offered"
	TurnRunning   TurnState = "running"
	TurnDone      TurnState = "done"
	TurnFailed    TurnState = "failed"
	TurnCancelled TurnState = "cancelled"
)

// Run is one row of runs: one agent process, bound to one address.
type Run struct {
	ID        int64
	Folder    string
	Topic     string
	ChatJID   string
	ThreadID  string
	Runtime   string
	PID       int
	PIDStart  int64
	Label     string
	StartedAt int64
	ClosedAt  int64
	EndedAt   int64
}
