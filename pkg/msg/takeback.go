package msg

// Takeback is an edit or a deletion of a message whose turn is open.
type Takeback struct {
	Turn            int64
	Queued          bool  // the turn is: else it is running
	Target, Subject int64 // the message, and the row of it that the turn has: the same, unless that was made from it
	TargetID        string
	Deletes         bool
	Again           bool   // the message leaves the turn and is decided again
	Content, Text   string // of the message and of the row after an edit
	Addressed       bool
	Verb            string
}
