package pages

// Choice is one of several links of which one is current, such as a filter.
type Choice struct {
	Link
	Current bool
}

// TurnsPage is a list of turns, the newest first.
type TurnsPage struct {
	Choices []Choice
	Of      string // what the list is about in words, "" for all turns
	Lines   []TurnRow
	Older   string // address of what follows, "" for nothing
	Now     int64
}

// TurnRow is one turn. Times are unix ms, 0 for never.
type TurnRow struct {
	ID, Rows                     int64
	Folder, Chat, Title, Topic   string // Title is the chat's, "" if it has none
	State, Reason, Error         string // Reason in words
	CreatedAt, StartedAt, Ended  int64
	Attempts                     int
	CanRetry, CanCancel, Waiting bool // Waiting: queued for a later time, see Waits
	Waits                        string
	NotBefore                    int64
}

// ChatName is the chat's title, else its address.
func (t TurnRow) ChatName() string { return title(t.Title, t.Chat) }

// Seconds is how long the turn has been worked on, in ms.
func (t TurnRow) Took() int64 {
	if t.StartedAt == 0 || t.Ended == 0 {
		return 0
	}
	return t.Ended - t.StartedAt
}

// TurnPage is one turn: what it was given, what came of it, and how it ran.
type TurnPage struct {
	Turn     TurnRow
	Thread   string
	Surface  string
	Parent   int64   // the turn that delegated it, 0 for none
	With     int64   // the turn whose answer is for this one too, 0 for none
	TookIn   []int64 // turns that were answered with this one
	Asks     []Question
	Messages []TurnMessage
	Answers  []TurnMessage
	Work     *Work  // what the agent says of its work, nil if nothing
	Used     string // tokens and dollars in words, "" if the agent does not say
	Tools    []ToolLine
	Runs     []RunLine
	Log      string // the end of the last run's log
	LogRun   int64  // that run, 0 if there is no log
	LogCut   bool   // the log is longer
	Now      int64
}

// Asking reports whether a question is open.
func (p TurnPage) Asking() bool {
	for _, q := range p.Asks {
		if q.Open {
			return true
		}
	}
	return false
}

// Question is a question of an agent, or of gated, to users. Times are unix ms.
type Question struct {
	ID, Turn, Message int64  // Message is the row that shows it, 0 if it was deleted
	Kind              string // in words, what it asks for
	Text              string // one line
	Detail            string // what stands below it, "" for nothing
	Options           []Option
	For               string // who may answer, in words
	Hash              string // of a permission, shortened
	Open              bool
	End               string // how it has ended, in words
	Bad               bool   // without an answer
	AskedAt, ExpiresAt,
	EndedAt int64
	// Stands says what it means that an operator answers, "" if it is for operators.
	Stands string
}

// Work is what an agent says of its work on a turn.
type Work struct {
	State string // in words
	Text  string // the answer so far
	Plan  []WorkLine
	Calls []WorkLine
	At    int64 // when it said so last, unix ms
}

// WorkLine is a step of a plan, or a call of a tool.
type WorkLine struct {
	Text, State string
	Bad         bool
}

// TurnMessage is a message of a turn, or an answer of it.
type TurnMessage struct {
	ID, At     int64
	From, Text string
	State      string // of an answer: what became of it
	Bad        bool   // the answer was not delivered
	Files      int
}

// ToolLine is a call of a tool that acted.
type ToolLine struct {
	Name, Result string
	At           int64
}

// RunLine is one agent process that worked on the turn.
type RunLine struct {
	ID                     int64
	Runtime, Result, Error string
	StartedAt, EndedAt     int64
}

// PromptPage is what an agent was given.
type PromptPage struct {
	Prompt, Problem string
}
