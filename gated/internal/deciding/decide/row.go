package decide

import (
	"slices"
	"strings"

	"arizuko/gated/internal/authority"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
)

// Row is an undecided row with its facts.
type Row struct {
	*msg.Message
	Kind        Kind
	Summary     *GroupSummary   // of its group of rows, nil for none
	Command     *layers.Command // of a KindCommand
	Change      *Change         // of a KindChange or KindMention
	Ballot      *Ballot         // of a KindBallot
	Choice      *Choice         // of a KindAnswer
	StopsTurn   int64           // of the press of a Stop button, which is a /stop of that turn alone; else 0
	UndoesTurn  int64           // of the press of an Undo button, which is an /undo of that turn; else 0
	Code        *Code           // of an /operator of a user who is none yet, and of a KindLeak
	Post        string          // platform id of the post it is about, "" if there is none
	Old         bool            // it was older than MAX_AGE on arrival
	Operator    bool            // its sender is an operator
	ForOperator bool            // an agent wrote it on behalf of one

	Answer routeapi.Answer
	Known  bool // Answer is set

	Home  *groupconfig.Members // of the chat's group, nil for none
	Group *groupconfig.Members // of the group that gets it or, of an edit, has got its target; nil for none
	Quota Quota                // of its sender in that group
	// Commands are those of its sender in this chat; of a command or pin of a user who is no operator, else nil.
	Commands *Commands
	Foreign  bool // of a /stop or /status whose group is not known: only other senders used the chat

	Pin      *Pin        // of a bare token that may pin the chat
	Prefix   *Prefix     // of a row that names its group or topic
	Bound    string      // the named topic its thread is bound to, "" for none
	Forks    []*msg.Fork // that it may run in, of all groups; the first of a group is its own
	BotTurns int         // how many turns its sender, a bot, has started in this chat within BotTime
	Return   *Return     // of a row that an agent wrote

	Problem string // of a KindBroken: why its facts could not be read
}

// Break makes the row one whose facts cannot be read.
func (r *Row) Break(problem string) { r.Kind, r.Problem = KindBroken, problem }

// noCommand makes a command plain text.
func (r *Row) noCommand() {
	if r.Kind == KindCommand {
		r.Kind, r.Command = KindText, nil
	}
}

// Return has the facts about the return address of a row that an agent wrote. Of an
// injected one only RootExists and Elsewhere are read.
type Return struct {
	RootExists bool // the turn that began the chain is stored
	Elsewhere  bool // that turn is of another chat
	Registered bool // the group that the row is for is registered
	Fan        int  // delegations of that turn so far
}

// Change is an edit or deletion with the row it acts on.
type Change struct {
	Target  *msg.Message // nil if it is not stored
	Subject *msg.Message // the target, or the row derived from it
	Latest  *msg.Message // the newest edit of it that is a row of its own, nil for none
	Turn    *msg.Turn    // of the subject, nil for none
	Deleted bool         // an edit that comes after the deletion
}

// Limits on another bot: within BotTime, in ms, this many turns of it are answered in
// a chat; further rows are observed, since two bots could go on for ever.
const (
	maxBotTurns = 10
	BotTime     = 10 * 60_000
)

// verb is matched by routes: an edit that addresses the bot where the original did not counts as a mention, the press
// of a button that is a command as a message, and a row of a group calls the bot if any of them does.
func (r *Row) verb() string {
	switch {
	case r.Kind == KindMention:
		return msg.VerbMention
	case r.Kind == KindCommand && r.Verb == msg.VerbAnswer: // pressed, which is the same as written
		return msg.VerbMessage
	case r.Summary != nil && r.Summary.MentionRow != nil && !r.calls():
		return r.Summary.MentionRow.Verb
	}
	return r.Verb
}

// called reports whether the row, or its group, mentions the bot or replies to it.
func (r *Row) called() bool { return calls(r.verb()) }

// calls reports whether the row itself does.
func (r *Row) calls() bool { return calls(r.Verb) || r.Kind == KindMention }

func calls(verb string) bool { return verb == msg.VerbMention || verb == msg.VerbReply }

// Typed reports whether a user has written the row as a message to the chat, in time, and it is nothing but its text:
// files, and a quote of another chat, are for the agent.
func (r *Row) Typed() bool {
	return KindOf(r.Message) == KindText && !r.IsBot && !r.Old && !r.byAgent() && !hasFiles(r.Message) &&
		(r.Quote == "" || r.ReplyToID != "")
}

// byAgent reports whether an agent wrote the row. It may do the same as its origin in the chat, but for commands of
// operators, and answers no question.
func (r *Row) byAgent() bool { return r.ForwardedFrom != nil }

// elsewhere reports whether an agent wrote the row into another chat than the one in which its origin wrote: a command
// or a pin there, which concerns others, is plain text.
func (r *Row) elsewhere() bool { return r.byAgent() && r.Return != nil && r.Return.Elsewhere }

func (r *Row) place() string { return msg.Place(r.ThreadID, r.Topic) }

// NewRow classifies a row and parses its text. botNames are the bot's names after the @ of a command; one for another
// bot is plain text, even if the row mentions ours. Commands and tokens of bots, and those that arrived too late, are
// plain text.
func NewRow(m *msg.Message, maxAge int64, botNames []string, operators map[string]bool) Row {
	platform := msg.FamilyOf(m.ChatJID)
	r := Row{
		Message: m, Kind: KindOf(m), Old: m.ReceivedAt-m.Timestamp > maxAge,
		Operator:    msg.IsOperator(operators, m.ChatJID, m.Sender),
		ForOperator: authority.OriginOf(m, operators).Operator,
	}
	if r.Kind != KindText || r.IsBot || r.Old {
		return r
	}
	ours := func(name string) bool {
		return slices.ContainsFunc(botNames, func(our string) bool { return strings.EqualFold(our, name) })
	}
	if cmd, ok := layers.ParseCommand(m.Content, platform, ours); ok && (!hasFiles(m) || r.takesFiles(&cmd)) {
		r.Kind, r.Command = KindCommand, &cmd
	}
	return r
}

// takesFiles reports whether a command may come with files: /new, whose turn gets them, and those that do something
// which must not be left undone. Any other is the text to its files.
func (r *Row) takesFiles(c *layers.Command) bool {
	return c.Name == msg.CommandNew || c.Name == msg.CommandStop || c.Name == msg.CommandOperator ||
		c.Audience == msg.ForOperators && r.Operator
}

func hasFiles(m *msg.Message) bool { return len(m.Attachments) > 0 || m.PendingFiles > 0 }

// refers reports whether a row is about a post, besides its text: it quotes a part of one, or replies to one. A reply
// to the bot's own message is not: where the bot reads nothing else, that is how it is addressed.
func refers(m *msg.Message) bool {
	return m.Quote != "" || m.ReplyToID != "" && m.Verb != msg.VerbReply && msg.LinksReplies(m.ChatJID, m.ThreadID)
}

// Lookup is the question for routd about the row, nil for none.
func (r *Row) Lookup(chat *msg.Chat) *routeapi.Item {
	if !r.Kind.routed() || r.Known && r.Answer.Error != "" {
		return nil
	}
	it := routeapi.Item{
		ID: r.ID, ChatJID: r.ChatJID, Kind: chat.Kind, Topic: r.Topic, ThreadID: r.ThreadID,
		Sender: r.Sender, SenderName: r.SenderName[:min(len(r.SenderName), maxName)], Verb: r.verb(),
		PlatformID: r.Post, StickyGroup: chat.StickyGroup, ReceivedAt: r.ReceivedAt,
		HomeOnly: r.Kind == KindCommand, Stale: r.Old,
	}
	if p := r.Prefix; p != nil {
		it.Folder = p.Folder
		if p.Topic != "" {
			it.Topic = p.Topic
		}
	}
	return &it
}

// maxName bounds a sender's name in a lookup, in bytes.
const maxName = 256

// ignored reports whether a route says to ignore the row's sender.
func (r *Row) ignored() bool { return r.Known && r.Answer.Reason == msg.ReasonBuiltinDrop }

// Kind is the purpose of a row. It says which facts are read about the row, and who decides it.
type Kind uint8

// Kinds of rows. Reading its facts may show that a row is of another kind than it seems by itself, as the comments say.
const (
	KindText      Kind = iota + 1 // a user, a bot or an agent wrote it to its chat
	KindEvent                     // a reaction, or users who join or leave
	KindCommand                   // of a text, or the press of the Stop button of an open turn
	KindChange                    // an edit or a deletion, which acts on its target
	KindMention                   // an edit that addresses the bot, which the observed original did not
	KindBallot                    // a vote or the end of a poll; also a reaction that votes
	KindAnswer                    // to a question of an agent, by button or text; also the press of a late Stop button
	KindForwarded                 // one group sends it to another
	KindLeak                      // of any row that holds the open code for operators
	KindBroken                    // of any row whose facts cannot be read for a reason of its own
)

// KindOf classifies a row by itself.
func KindOf(m *msg.Message) Kind {
	if m.BetweenGroups() {
		return KindForwarded
	}
	switch m.Verb {
	case msg.VerbMessage, msg.VerbMention, msg.VerbReply:
		return KindText
	case msg.VerbEdit, msg.VerbDelete:
		return KindChange
	case msg.VerbVote, msg.VerbPollEnd:
		return KindBallot
	case msg.VerbAnswer:
		return KindAnswer
	}
	return KindEvent
}

// routed reports whether routd is asked about such rows: where they go, or which group a command is for.
func (k Kind) routed() bool {
	return k == KindText || k == KindEvent || k == KindMention || k == KindCommand
}

// Acts reports whether such rows are decided on arrival, most of them without routd. Others wait at the gate.
func (k Kind) Acts() bool { return k == KindCommand || !k.routed() && k != KindForwarded }
