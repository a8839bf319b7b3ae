package msg

// Mark is a reaction on a message that shows its state to its sender. Telegram has all of them in its fixed
// set.
type Mark string

// The marks.
const (
	MarkRead       Mark = "👀" // it was read, and waits or gets no answer here
	MarkUnanswered Mark = "🤷" // it gets no answer
	MarkAsleep     Mark = "😴" // nothing has decided about it yet
)

// SeenWithin is how many seconds it takes at most, once gated looks at a message, until its sender sees something.
const SeenWithin = 5

// AsleepAfter is after how many seconds an adapter marks a message that addresses the bot and that gated has not looked
// at: it does not run, it hangs, or it waits for another daemon.
const AsleepAfter = 60

// Shown tells how the sender of a message learns its state. If the message doesn't address the bot, only Words count.
type Shown struct {
	Mark  Mark   // on the message, "" for none
	Words string // anything else, in words
	// None: there is nothing to see, since no message of this kind is addressed to the bot.
	None bool
}

// Values that several codes share.
var (
	acknowledged   = Shown{Words: "a reply"}
	answeredByTurn = Shown{Words: "what its turn shows"}
	changes        = Shown{Words: "the answer to the changed message"}
	notAddressed   = Shown{None: true}
	inPart         = Shown{Words: "the part of the answer that there is"}
	stoppedTurn    = Shown{Mark: MarkUnanswered, Words: "a reply to the /stop, whose sender gets no mark"}
)

// String words it for a table.
func (s Shown) String() string {
	switch {
	case s.None:
		return "–"
	case s.Mark == "":
		return s.Words
	case s.Words == "":
		return string(s.Mark)
	}
	return string(s.Mark) + "; " + s.Words
}

// Waiting is something that an answer may wait for.
type Waiting struct {
	For     WaitsFor // of a queued turn, "" for any other wait
	Meaning string   // for operators
	Shown   Shown
	Within  int // seconds until the sender sees it
}

// Waits lists what an answer may wait for. With WAIT_MARK=0, and where a group's config has progress off, a queued turn
// has no mark.
var Waits = []Waiting{
	{"", "gated, routd or onbod does not run or hangs: the message is undecided", Shown{Mark: MarkAsleep}, AsleepAfter +
		15},
	{"", "a free agent: `MAX_AGENTS` work, or an older turn of the conversation", queued, SeenWithin},
	{WaitsFiles, "its attachments are being downloaded or transcribed", queued, SeenWithin},
	{WaitsRetry, "it is retried", queued, SeenWithin},
	{WaitsMachine, "this machine could not start an agent", queued, SeenWithin},
	{WaitsProbe, "the group's turns fail alike, one a minute is tried", queued, SeenWithin},
	{"", "the agent works", Shown{Words: "that the bot types; then a line that says what the agent does"}, 10},
	{"", "the model does not answer", Shown{Words: "a line that says there is no sign of it"}, 70},
	{"", "a user answers a question", Shown{Words: "the question; a line, and `/status`, name who may answer it"}, 10},
}

var queued = Shown{Mark: MarkRead, Words: "`/status` says what for"}
