package harness

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"arizuko/deploy/e2e/invariants"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
)

// Queries for unfinished work. Between two of them a turn that has written a row may end, and a row may become a turn,
// so that one query must look at everything. The lines of openTurns and outboundQueued are not ids.
const (
	undecidedRows  = `SELECT '' || id FROM messages WHERE direction = 'in' AND disposition IS NULL`
	openTurns      = `SELECT 'turn ' || id FROM turns WHERE ended_at IS NULL`
	outboundQueued = `SELECT 'outbound ' || id FROM messages WHERE direction = 'out' AND out_state IN ('queued', 'sending')`

	unfinished              = undecidedRows + ` UNION ALL ` + openTurns
	unfinishedOrUndelivered = unfinished + ` UNION ALL ` + outboundQueued
)

// Query returns the rows of a query, columns joined by blanks.
func (f *Fixture) Query(query string, args ...any) []string {
	f.T.Helper()
	all, err := invariants.Lines(f.DB, query, args...)
	if err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
	return all
}

// Value returns the only value of a query, "" if it finds none.
func (f *Fixture) Value(query string, args ...any) (value string) {
	f.T.Helper()
	var found sql.NullString
	if err := f.DB.QueryRow(query, args...).Scan(&found); err != nil && !errors.Is(err, sql.ErrNoRows) {
		f.T.Fatalf("%s: %v", query, err)
	}
	return found.String
}

// Exec changes the database.
func (f *Fixture) Exec(query string, args ...any) {
	f.T.Helper()
	if _, err := f.DB.Exec(query, args...); err != nil {
		f.T.Fatalf("%s: %v", query, err)
	}
}

// Row is a row as it is now.
func (f *Fixture) Row(id int64) *msg.Message {
	f.T.Helper()
	m, err := f.Store.Message(f.T.Context(), id)
	if err != nil || m == nil {
		f.T.Fatalf("row %d: %v, %v", id, m, err)
	}
	return m
}

// WaitDecided waits until a row is decided.
func (f *Fixture) WaitDecided(id int64) (m *msg.Message) {
	f.T.Helper()
	f.Until(fmt.Sprintf("row %d to be decided", id), func() bool {
		m = f.Row(id)
		return m.Disposition != ""
	})
	return m
}

// WantDecision waits until a row is decided and fails the test unless it is decided like that.
func (f *Fixture) WantDecision(id int64, disposition msg.Disposition, reason msg.Reason) *msg.Message {
	f.T.Helper()
	m := f.WaitDecided(id)
	if m.Disposition != disposition || m.Reason != reason {
		f.T.Errorf("row %d %.40q is %s/%s, want %s/%s", id, m.Content, m.Disposition, m.Reason, disposition, reason)
	}
	return m
}

// AllowUndecided lets rows be undecided at the end of the test.
func (f *Fixture) AllowUndecided(ids ...int64) {
	for _, id := range ids {
		f.undecided[id] = true
	}
}

func (f *Fixture) mayBeUndecided(ids []string) bool {
	return !slices.ContainsFunc(ids, func(line string) bool {
		id, err := strconv.ParseInt(line, 10, 64)
		return err != nil || !f.undecided[id]
	})
}

// Turn is the turn of a row; the test fails if it has none.
func (f *Fixture) Turn(row int64) *msg.Turn {
	f.T.Helper()
	t, err := f.Store.Turn(f.T.Context(), f.WaitDecided(row).TurnID)
	if err != nil || t == nil {
		f.T.Fatalf("turn of row %d: %v, %v", row, t, err)
	}
	return t
}

// WaitRunning waits until an agent works on the turn of a row.
func (f *Fixture) WaitRunning(row int64) (t *msg.Turn) {
	f.T.Helper()
	f.Until(fmt.Sprintf("the turn of row %d to run", row), func() bool {
		t = f.Turn(row)
		return t.State == msg.TurnRunning
	})
	return t
}

// WaitEnded waits until the turn of a row has ended.
func (f *Fixture) WaitEnded(row int64) (t *msg.Turn) {
	f.T.Helper()
	f.Until(fmt.Sprintf("the turn of row %d to end", row), func() bool {
		t = f.Turn(row)
		return t.EndedAt != 0
	})
	return t
}

// Answer waits until the turn of a row has ended and returns the texts of its answers, one a line.
func (f *Fixture) Answer(row int64) string {
	f.T.Helper()
	replies, err := factrows.TurnReplies(f.T.Context(), f.Store.Reader, f.WaitEnded(row).ID)
	f.OK(err)
	texts := make([]string, len(replies))
	for i, m := range replies {
		texts[i] = m.Content
	}
	return strings.Join(texts, "\n")
}

// TurnCount is the number of a chat's turns.
func (f *Fixture) TurnCount(chat string) int {
	f.T.Helper()
	return len(f.Query(`SELECT id FROM turns WHERE chat_jid = ?`, chat))
}

// Outbound lists the outbound rows of a chat, oldest first, without the reactions that mark its messages.
func (f *Fixture) Outbound(chat string) []*msg.Message {
	f.T.Helper()
	var out []*msg.Message
	const query = `SELECT id FROM messages WHERE chat_jid = ? AND direction = 'out' AND source <> ? ORDER BY id`
	for _, line := range f.Query(query, chat, msg.SourceWaiting) {
		id, err := strconv.ParseInt(line, 10, 64)
		f.OK(err)
		out = append(out, f.Row(id))
	}
	return out
}

// Reply waits for an outbound row that replies to a row and belongs to no turn, as replies of
// commands do.
func (f *Fixture) Reply(row int64) (reply *msg.Message) {
	f.T.Helper()
	m := f.Row(row)
	f.Until(fmt.Sprintf("a reply to row %d %.40q", row, m.Content), func() bool {
		for _, out := range f.Outbound(m.ChatJID) {
			if out.ReplyToID == m.PlatformID && out.TurnID == 0 {
				reply = out
			}
		}
		return reply != nil
	})
	return reply
}

// WantReply waits for the Reply to a row and fails the test unless it has that text.
func (f *Fixture) WantReply(row int64, text string) {
	f.T.Helper()
	if got := f.Reply(row).Content; got != text {
		f.T.Errorf("%q is replied to with %q, want %q", f.Row(row).Content, got, text)
	}
}

// Echoes are the texts that the demo agent has echoed in a chat, in their order.
func (f *Fixture) Echoes(chat string) (texts []string) {
	f.T.Helper()
	for _, m := range f.Outbound(chat) {
		for line := range strings.Lines(m.Content) {
			if text, ok := strings.CutPrefix(line, "You said: "); ok && m.Source == msg.SourceAgent {
				texts = append(texts, strings.TrimSuffix(text, "\n"))
			}
		}
	}
	return texts
}

// WantEchoes waits until the instance is idle and fails the test unless the demo agent has echoed
// exactly these texts in a chat.
func (f *Fixture) WantEchoes(chat string, texts ...string) {
	f.T.Helper()
	f.WaitIdle()
	if got := f.Echoes(chat); !slices.Equal(got, texts) {
		f.T.Errorf("%s: the agent has echoed\n%q, want\n%q", chat, got, texts)
	}
}

// WaitIdle waits until no row is undecided but those that may be, and no turn is open. Where real
// adapters deliver, it also waits until no outbound row is queued.
func (f *Fixture) WaitIdle() {
	f.T.Helper()
	query := unfinished
	if f.options.Delivers {
		query = unfinishedOrUndelivered
	}
	f.Until("the instance to be idle", func() bool { return f.mayBeUndecided(f.Query(query)) })
}
