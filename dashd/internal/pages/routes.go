package pages

import (
	"fmt"
	"strings"

	"arizuko/dashd/internal/rows"
	factrows "arizuko/pkg/facts/rows"
)

// Routes is the page of the routing table: where the messages of which chats go.
type Routes struct {
	Rows   []RouteLine
	Count  int    // of all rows, 0 for none
	Query  string // only rows with this text are shown
	Before string // address of the page before this one, "" for none
	After  string // address of the next page, "" for none
}

// RouteLine is a row of the table.
type RouteLine struct {
	ID       int64
	Place    int    // 1 is tried first
	Match    string // the expression, "" for everything
	Words    string // the expression in words
	Target   string
	Folder   string // the group that the target names, "" for none
	Does     string // to a message that matches, in words
	Waits    string // its impulse settings in words, "" for those of the instance
	Problem  string // why it matches nothing, "" if it is valid
	Warnings []string
}

// RouteEditor is the page on which a copy of the table is edited, checked and saved.
type RouteEditor struct {
	Digest   string // of the stored table that the copy began with
	Rows     []DraftRow
	Targets  []string        // that a row may have
	Chats    []rows.SeenChat // that a message may be tested in
	Problems int             // rows that cannot be saved
	Changes  []string        // that saving would make, in words
	More     int             // further changes
	Conflict bool            // another editor has saved since the copy was made
	Refused  bool            // because of that: saving again replaces the other's changes
	Verbs    []Option        // of a message to test
	Test     TestMessage
	Tested   *TestedMessage // nil if no message was tested
	Replay   *Replay        // nil if none were
	Now      int64          // unix ms
	Checked  bool           // an answer about the copy was asked for
	NextKey  string         // of the row that is added next
	TooLarge string         // why the page cannot hold the table, "" if it can
}

// DraftRow is a row of the copy.
type DraftRow struct {
	RouteLine        // ID is 0 for a row that is not stored
	Key       string // names the row on the page
	Impulse   string // how long messages wait, as JSON on one line
	New       bool
	Changed   bool
	Open      bool // its fields are shown
}

// Title is how the page names the row, apart from all others.
func (r DraftRow) Title() string {
	if r.New {
		return fmt.Sprintf("New route at place %d", r.Place)
	}
	return fmt.Sprintf("Route %d", r.ID)
}

// Wrong is the name of the field that the problem is about, "" without a problem.
func (r DraftRow) Wrong() string {
	switch {
	case r.Problem == "":
		return ""
	case strings.HasPrefix(r.Problem, "match"):
		return "match"
	case strings.HasPrefix(r.Problem, "impulse_config"):
		return "impulse"
	}
	return "target"
}

// TestMessage is a message to test, as typed.
type TestMessage struct {
	Chat, Sender, SenderName, Thread, Verb string
}

// TestedMessage is the result of a test.
type TestedMessage struct {
	Decision string   // by the copy, in words
	Now      string   // by the stored table, in words
	Why      []string // the steps to the decision
	Problem  string   // why it cannot be tested, "" if it was
}

// Replay is the difference that the copy would have made to recent messages.
type Replay struct {
	Messages int // replayed
	Skipped  int // that no table decides on: edits, votes, messages between groups
	Changed  int
	Kinds    []ReplayKind
	Rows     []ReplayRow
	Problem  string // why they cannot be replayed, "" if they were
}

// ReplayKind is a number of messages that would have gone another way.
type ReplayKind struct {
	Was, Would string
	Count      int
}

// ReplayRow is a message that would have gone another way, for the reason Why.
type ReplayRow struct {
	*rows.Inbound
	Was, Would, Why string
}

// Unlisted is how many changed messages are not in Rows.
func (r *Replay) Unlisted() int { return r.Changed - len(r.Rows) }

// Audit is the page of the changes.
type Audit struct {
	Lines     []factrows.AuditRow
	Who, What string // the filter, "" for all
	Whats     []string
	Next      string // address of the next page, "" for none
	Filtered  bool
	Since     int64 // when the oldest change was made that is kept, in unix ms
	Deleted   bool  // older ones were deleted
	Max       int   // how many are kept at most, 0 if there is none
	Now       int64 // unix ms
}
