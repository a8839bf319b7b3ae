package decide

import (
	"arizuko/pkg/layers"
	"arizuko/pkg/msg"
)

// GroupSummary has the facts that one row of a group settles for all of them. The rows of a group have one key and one
// sender: the pictures of an album, or the pieces of a text that the platform has split.
type GroupSummary struct {
	CommandRow *msg.Message    // the first with text, nil for none: its command or prefix is that of all
	Command    *layers.Command // of CommandRow
	MentionRow *msg.Message    // the first that mentions the bot or replies to it, nil for none: all do
	First      int64           // when the first row was received, unix ms
	Last       int64           // and the last
}

// Summarize returns the summary of a row's group, of which rows are all that are stored, oldest first; nil for a
// row that is in none. The caller parses Command.
func Summarize(m *msg.Message, rows []*msg.Message) *GroupSummary {
	if m.GroupKey == "" || KindOf(m) != KindText {
		return nil
	}
	var l *GroupSummary
	for _, other := range rows {
		if other.Sender != m.Sender || KindOf(other) != KindText {
			continue
		}
		if l == nil {
			l = &GroupSummary{First: other.ReceivedAt, Last: other.ReceivedAt}
		}
		l.First, l.Last = min(l.First, other.ReceivedAt), max(l.Last, other.ReceivedAt)
		if l.CommandRow == nil && other.Content != "" {
			l.CommandRow = other
		}
		if l.MentionRow == nil && calls(other.Verb) {
			l.MentionRow = other
		}
	}
	return l
}

// Join makes the row one of a group. Its own text is no command.
func (r *Row) Join(l *GroupSummary) {
	if r.Summary = l; l == nil {
		return
	}
	if r.followsCommandRow() {
		r.noCommand()
	}
	if l.MentionRow != nil && l.MentionRow.PlatformID != "" {
		r.Post = l.MentionRow.PlatformID
	}
}

// followsCommandRow reports whether another row says where the row's text goes.
func (r *Row) followsCommandRow() bool {
	return r.Summary != nil && r.Summary.CommandRow != nil && r.Summary.CommandRow.ID != r.ID
}

// follows reports whether another row is the head of the row's group.
func (r *Row) follows(head *Row) bool {
	return r.followsCommandRow() && r.Summary.CommandRow.ID == head.ID
}

// incomplete reports whether the row's group may still get rows, and until when.
func (r *Row) incomplete(now int64) (until int64, yes bool) {
	if r.Summary == nil {
		return 0, false
	}
	until = groupUntil(min(r.Summary.First, now), min(r.Summary.Last, now))
	return until, until > now
}

// awaitsGroup reports whether the row is a /new that asks something together with rows of its group that may
// still come, and until when.
func (r *Row) awaitsGroup(now int64) (until int64, yes bool) {
	if r.Command == nil || r.Command.Name != msg.CommandNew || !asks(r.Command, r.Message) {
		return 0, false
	}
	return r.incomplete(now)
}

// following ends a row whose group is a command. Those of a /new that asks something are asked with it, see newSession.
// Whom a group ignores or does not admit, it does so here too: the text of these rows is kept from searches by that.
func (w *step) following(r *Row) bool {
	if !r.Known || r.ignored() || !r.admitted(r.Home, r.Group) {
		return false
	}
	if !r.followsCommandRow() || r.Summary.Command == nil ||
		r.Summary.Command.Name == msg.CommandNew && asks(r.Summary.Command, r.Summary.CommandRow) {
		return false
	}
	w.decide(r, msg.Command, msg.ReasonGrouped, "")
	return true
}
