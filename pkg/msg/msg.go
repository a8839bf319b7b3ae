// Package msg holds the nouns every daemon shares: messages, chats, turns,
// runs, and the closed sets of words their columns may hold. It does no I/O.
package msg

import (
	"cmp"
	"encoding/json"
)

// Message is one row of the messages table. Times are unix milliseconds UTC;
// an empty string stands for SQL NULL in PlatformID, ReplyToID, TargetID,
// RoutedTo, Disposition, Reason and OutState, a zero for NULL in DerivedFrom,
// DecidedAt, DecisionSeq and TurnID. An outbound edit, reaction or deletion that is
// about another outbound row has that row in DerivedFrom.
type Message struct {
	ID            int64
	ChatJID       string
	PlatformID    string
	Direction     Direction
	Kind          Kind
	Sender        string
	SenderName    string
	IsBot         bool
	Verb          string
	Content       string
	Attachments   []Attachment
	Topic         string
	ThreadID      string
	ReplyToID     string
	TargetID      string
	Addressed     bool
	PendingFiles  int
	FilesWanted   bool   // the attachments are to be downloaded
	GroupKey      string // rows of one key become one turn, "" for none
	Quote         string // the selected part of the post that is answered
	Error         string // why deciding the row failed
	Timestamp     int64
	ReceivedAt    int64
	Source        string
	DerivedFrom   int64
	ForwardedFrom *ReturnAddress
	OnBehalfOf    string // the sender whose request an agent worked on when it wrote the row, "" where Sender is that
	RoutedTo      string
	Disposition   Disposition
	Reason        Reason
	DecidedAt     int64
	DecisionSeq   int64
	TurnID        int64
	OutState      OutState
	Target        *Target // of an outbound row about another one, while it is delivered
	Ask           *Ask    // of an outbound row that shows a question, while it is delivered
	UndoUntil     int64   // until when an answer has an Undo button, unix ms, while it is delivered; 0 for none
}

// Attachment is one entry of messages.attachments. Path is relative to the
// data folder as the adapter wrote it, e.g. "media/202611/1f3a-cat.jpg".
// Error says why a download failed; such an entry has no path. Until it is
// downloaded an entry has a Ref in place of a path.
type Attachment struct {
	Path  string `json:"path"`
	Name  string `json:"name"`
	MIME  string `json:"mime"`
	Size  int64  `json:"size"`
	Error string `json:"error,omitempty"`
	Ref   string `json:"ref,omitempty"` // the platform's id of the file

	Duration int64 `json:"duration,omitempty"` // of a voice note, audio or video in whole seconds, 0 if unknown
	Voice    bool  `json:"voice,omitempty"`    // recorded as a message: there is speech in it, whatever its type

	Transcript *Transcript `json:"-"` // of an audio file, kept in a table of its own; nil for none
}

// Thread is one row of platform_threads: a thread as its platform has it.
type Thread struct {
	ChatJID string
	ID      string
	Kind    string // the platform's own word, such as "forum_topic"
	Title   string
	Author  string // sender of the message the thread was started from, "" if unknown
}

// FilesFor reports whether the files of an inbound row are for a group: it got the row, or the row is a post that came
// along with another message of the chat.
func (m *Message) FilesFor(folder string) bool {
	if m.Direction != In || m.Disposition != Routed && m.Disposition != Observed {
		return false
	}
	return m.RoutedTo == folder || m.Reason == ReasonQuoted
}

// BetweenGroups reports whether one group sends the row to another. Such a row carries
// its address, and the layers do not apply to it.
func (m *Message) BetweenGroups() bool {
	return m.ForwardedFrom != nil && m.ForwardedFrom.Kind != Injection
}

// Payer is the sender who caused the row: its turns count against that sender's rate, and its rights are checked for
// that sender.
func (m *Message) Payer() string { return cmp.Or(m.OnBehalfOf, m.Sender) }

// ReturnAddress is messages.forwarded_from of a row that an agent wrote: which turn
// caused it and, between groups, where the answer goes.
type ReturnAddress struct {
	Kind       ReturnKind `json:"kind"`
	TurnID     int64      `json:"turn_id"`
	RootTurnID int64      `json:"root_turn_id"`
	Depth      int        `json:"depth"`
	Folder     string     `json:"folder"`
	ChatJID    string     `json:"chat_jid"`
	Topic      string     `json:"topic"`
	ThreadID   string     `json:"thread_id"`
	Place      string     `json:"place"`
	ReplyTo    string     `json:"reply_to,omitempty"`
	Surface    string     `json:"surface"`
	Ceiling    int        `json:"ceiling"`
	Claims     bool       `json:"claims"`
}

// JSON is the address as stored in the column.
func (a *ReturnAddress) JSON() string { return toJSON(a) }

// Limits of agents' requests to groups, by delegations, escalations and injected messages:
// a loop ends at this depth, and one user's request may cause so many.
const (
	MaxDelegationDepth = 8
	MaxDelegations     = 16
)

// ReturnKind says why an agent wrote a row.
type ReturnKind string

// A delegation goes to a child, whose answer goes straight to the origin's
// chat; an escalation goes to the parent, whose answer comes back to the
// asker; an answer is that answer on its way back. An injection is for a chat, and has
// no address of its own: it is decided like a user's message.
const (
	Delegation ReturnKind = "delegate"
	Escalation ReturnKind = "escalate"
	Answer     ReturnKind = "answer"
	Injection  ReturnKind = "inject"
)

// Direction of a message, as seen by arizuko.
type Direction string

// The two directions.
const (
	In  Direction = "in"
	Out Direction = "out"
)

// Kind of an outbound message: the adapter's action.
type Kind string

// Kinds of outbound messages; inbound rows are all KindMessage.
const (
	KindMessage  Kind = "message"
	KindFile     Kind = "file"
	KindReaction Kind = "reaction"
	KindEdit     Kind = "edit"
	KindDelete   Kind = "delete"
	KindPoll     Kind = "poll"
)

// Changes reports whether a row of this kind changes another message, and shows none.
func (k Kind) Changes() bool { return k == KindEdit || k == KindReaction || k == KindDelete }

// Decorates reports whether an outbound row only changes a message that was delivered before it: a reaction, an edit, a
// deletion or the end of a poll. All other rows are answers, which never wait for one of these.
func (m *Message) Decorates() bool { return m.Kind.Changes() || m.Kind == KindPoll && m.TargetID != "" }

// Verbs of inbound messages. The set is open: routes may name others. An empty
// verb counts as VerbMessage.
const (
	VerbMessage  = "message"
	VerbMention  = "mention"
	VerbReply    = "reply"
	VerbReaction = "reaction"
	VerbEdit     = "edit"
	VerbDelete   = "delete"
	VerbJoin     = "join"
	VerbLeave    = "leave"
	VerbTyping   = "typing"
	VerbVote     = "vote"     // in a poll of the bot; the content is a Vote
	VerbPollEnd  = "poll_end" // the platform has closed a poll of the bot; the content is a PollEnd
	// a user has pressed a button of a question, or one that stops a turn; the content is a Press
	VerbAnswer = "answer"
)

// Wordless reports whether an event of a verb says nothing to the bot: a user has left a chat or, in a direct one, has
// blocked or unblocked the bot.
func Wordless(verb string, kind ChatKind) bool {
	return verb == VerbLeave || verb == VerbJoin && kind == ChatDM
}

// Sources of messages: the writer of the row. Inbound rows of adapters carry the
// adapter's name.
const (
	SourceAgent    = "agent"
	SourceTool     = "tool"
	SourceNotice   = "notice"
	SourceCommand  = "command"
	SourceDelegate = "delegate"
	SourcePrefix   = "prefix"
	SourceReplay   = "replay"
	SourceWaiting  = "waiting" // the reaction that shows a message's state

	SourceReminder  = "reminder"
	SourceBroadcast = "broadcast"
)

// OutState is the state of an outbound row.
type OutState string

// States of an outbound row.
const (
	OutQueued    OutState = "queued"
	OutSending   OutState = "sending"
	OutSent      OutState = "sent"
	OutAmbiguous OutState = "ambiguous"
	OutFailed    OutState = "failed"
	OutCancelled OutState = "cancelled"
)

// ErrorClass is the kind of failure that kept a part from being delivered.
type ErrorClass string

// Classes of failures. Transient and rate errors pass by themselves, auth errors
// once an operator fixes the credentials, permanent errors never. After an
// ambiguous error the part may have been delivered. An expired part could not be
// delivered in time.
const (
	Permanent ErrorClass = "permanent"
	Transient ErrorClass = "transient"
	Rate      ErrorClass = "rate"
	Auth      ErrorClass = "auth"
	Ambiguous ErrorClass = "ambiguous"
	Expired   ErrorClass = "expired"
)

// Known reports whether c is one of the classes.
func (c ErrorClass) Known() bool {
	switch c {
	case Permanent, Transient, Rate, Auth, Ambiguous, Expired:
		return true
	}
	return false
}

// Chat is one row of the chats table. Empty strings stand for NULL.
type Chat struct {
	JID         string
	Kind        ChatKind
	Title       string
	StickyTopic string
	StickyGroup string
	StickyAt    int64
}

// Group is one row of registered_groups.
type Group struct {
	Folder    string          `json:"folder"`
	Name      string          `json:"name"`
	CreatedAt int64           `json:"created_at"`
	Config    json.RawMessage `json:"config"`
}

// Route is one row of routes. Impulse is nil for NULL.
type Route struct {
	ID      int64           `json:"id"`
	Seq     int64           `json:"seq"`
	Match   string          `json:"match"`
	Target  string          `json:"target"`
	Impulse json.RawMessage `json:"impulse_config,omitempty"`
}
