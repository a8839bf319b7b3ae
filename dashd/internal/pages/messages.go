package pages

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/why"
)

// Messages is a list of messages, the newest first. Times are unix ms.
type Messages struct {
	Filter MessageFilter
	Lines  []*msg.Message
	Titles Titles
	// Ends are the ends of turns that were taken back or failed, in words, by the ids of their messages.
	Ends   map[int64]string
	Newest string // address of the first page, "" on it
	Next   string // address of the next page, "" on the last one
	// Through is when the last message was stored that this page looked at, if it ends because it looked at as many as
	// it may.
	Through int64
	Problem string         // why there is no list
	Wrong   string         // the field that it is about: text, since, until, or ""
	Lag     rows.SearchLag // of a search
	About   bool           // the lag's number of rows is not exact
	Groups  []msg.Group    // to choose from
	Now     int64
}

// MessageFilter is the state of the list's form. Times are as fields of a form have them, in UTC.
type MessageFilter struct {
	Text, Chat, Group, Sender                string
	Since, Until                             string
	Signs                                    bool
	Directions, Dispositions, Reasons, State []Option
	Active                                   string // the names of the filters that are set, "" for none
}

// Option is a value that a field may have.
type Option struct {
	Value, Text string
	Selected    bool
}

// undelivered reports whether a message was not delivered, as far as its state tells; received ones have none.
func undelivered(state msg.OutState) bool { return state == msg.OutFailed || state == msg.OutAmbiguous }

// Content is the text of a message; of a poll its question and options, of a pressed button its text.
func Content(m *msg.Message) string {
	if m.Direction == msg.In && m.Verb == msg.VerbAnswer {
		press, _ := msg.ParsePress(m.Content)
		return cmp.Or(press.Text, m.Content)
	}
	if m.Direction == msg.Out && m.Kind == msg.KindReaction {
		if gone, removed := strings.CutPrefix(m.Content, "-"); removed {
			return gone + " removed"
		}
	}
	if m.Direction != msg.Out || m.Kind != msg.KindPoll {
		return m.Content
	}
	p, err := msg.ParsePoll(m.Content)
	if err != nil {
		return m.Content
	}
	return p.Question + " " + strings.Join(p.Options, " / ")
}

// FormOf names the kind of a message, "" for an ordinary one.
func FormOf(m *msg.Message) string {
	form := string(m.Kind)
	if m.Direction == msg.In {
		form = m.Verb
	}
	if form == string(msg.KindMessage) || form == msg.VerbMessage {
		return ""
	}
	return Line(form)
}

// outWords are the states of delivery in words.
var outWords = map[msg.OutState]string{
	"": "stored", msg.OutQueued: "waits to be sent", msg.OutSending: "is being sent", msg.OutSent: "sent",
	msg.OutFailed: "not delivered", msg.OutAmbiguous: "may have arrived", msg.OutCancelled: "withdrawn",
}

// delivery words a state of delivery.
func delivery(state msg.OutState) string { return cmp.Or(outWords[state], string(state)) }

// StateOf words the present state of a message.
func StateOf(m *msg.Message) string {
	if m.Direction == msg.Out {
		return delivery(m.OutState)
	}
	return m.Outcome()
}

// Why is the path of one message.
type Why struct {
	Path   *why.Path
	Titles Titles
	Change *factrows.Change // its last one, nil for none
	Steps  []why.Step       // the last ones
	Took   time.Duration    // from the first step to the last part, 0 if nothing was delivered
	Open   []why.Open
	Near   []NearMessage // other messages of its path
	Replay bool          // it can be replayed
	Copy   int64         // its copy that was made before, 0 for none
	Now    int64
}

// NearMessage is a message that belongs to another one.
type NearMessage struct {
	*msg.Message
	Relation string
}

// whyDay and whyTime are layouts of times, in the zone of dashd.
const (
	whyDay  = "2006-01-02 MST"
	whyTime = "15:04:05.000"
)

func dayOf(at int64) string { return time.UnixMilli(at).Format(whyDay) }

func timeOf(at int64) string { return time.UnixMilli(at).Format(whyTime) }

// linksOf lead to the messages and turns of a step, without the message self, and to the list that has its origin.
func linksOf(self, row, turn int64, from *why.Origin) (all []Link) {
	if row != 0 && row != self {
		all = append(all, Link{Path: fmt.Sprintf("/messages/%d", row), Text: fmt.Sprintf("message %d", row)})
	}
	if from == nil {
		from = &why.Origin{}
	}
	if turn = cmp.Or(turn, from.Turn); turn != 0 {
		all = append(all, Link{Path: fmt.Sprintf("/turns/%d", turn), Text: fmt.Sprintf("turn %d", turn)})
	}
	switch {
	case from.Reminder != 0:
		all = append(all, Link{Path: "/reminders", Text: "reminders"})
	case from.Poll != 0:
		all = append(all, Link{Path: "/polls", Text: "polls"})
	}
	return all
}

// Lost is the messages that were not delivered, dropped, or wait for an operator.
type Lost struct {
	Groups  []LostGroup // that have messages
	Chosen  *LostReason // nil for none
	List    *Messages
	Copies  map[int64]int64 // of List by message, without those that have none
	Confirm *LostConfirm    // the messages to replay, in place of the list
	Now     int64
}

// LostGroup is reasons that belong together.
type LostGroup struct {
	Title   string
	Reasons []LostReason
}

// LostReason is why messages are lost: the state of those that did not arrive or the class of their error, the reason
// of those that were dropped.
type LostReason struct {
	Key         string // in addresses
	Title, Text string
	Count       int // at most MaxLostCount
	Filter      rows.MessageFilter
	Replay      bool // a copy may have another end
}

// MaxLostCount bounds the count of messages of one reason.
const MaxLostCount = 10_000

// Counted words the count.
func (l LostReason) Counted() string {
	if l.Count >= MaxLostCount {
		return fmt.Sprintf("%d or more", MaxLostCount)
	}
	return strconv.Itoa(l.Count)
}

// Path is the list of its messages.
func (l LostReason) Path() string { return LostPath(l.Key) }

// LostPath is the list of the messages of a reason.
func LostPath(key string) string { return "/lost?" + url.Values{"reason": {key}}.Encode() }

// ConfirmPath is the page that asks before messages of a reason are replayed: those before a message, 0 for all.
func (l LostReason) ConfirmPath(before int64) string {
	query := url.Values{"reason": {l.Key}}
	if before != 0 {
		query.Set("before", strconv.FormatInt(before, 10))
	}
	return "/lost/confirm?" + query.Encode()
}

// Verb words the replay of its messages.
func (l LostReason) Verb() string {
	if l.Filter.State != "" {
		return "Send again"
	}
	return "Decide again"
}

// LostConfirm describes the messages that will be replayed.
type LostConfirm struct {
	Batch
	Before int64 // only messages that are older than this one, 0 for all
	Next   int64 // the message before which there are older ones that were not looked at, 0 for none
	Titles Titles
}

// Batch is rows that one form changes, and how many of them each chat has.
type Batch struct {
	IDs   []int64
	Chats map[string]int // by address
}
