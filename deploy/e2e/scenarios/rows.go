package scenarios

import (
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/msg"
)

// Group registers groups.
func (s *Suite) Group(folders ...string) {
	s.t.Helper()
	for _, folder := range folders {
		s.post("/v1/groups", map[string]any{"folder": folder}, nil)
	}
}

// Route adds a route behind those there are and returns its id.
func (s *Suite) Route(match, target string) int64 {
	s.t.Helper()
	var route msg.Route
	s.post("/v1/routes", map[string]any{"match": match, "target": target}, &route)
	return route.ID
}

// RouteWith adds a route with an impulse_config.
func (s *Suite) RouteWith(match, target string, impulse map[string]any) {
	s.t.Helper()
	s.post("/v1/routes", map[string]any{"match": match, "target": target, "impulse_config": impulse}, nil)
}

func (s *Suite) post(path string, in, out any) {
	s.t.Helper()
	if err := s.routd.Do(s.t.Context(), http.MethodPost, path, in, out); err != nil {
		s.t.Fatal(err)
	}
}

// Say writes a chat message as an adapter does, and returns its row id.
func (s *Suite) Say(chat, text string) int64 {
	s.t.Helper()
	return s.Put(msg.Message{ChatJID: chat, Content: text})[0]
}

// Put writes inbound rows in one transaction, as a foreign adapter does, and
// returns their ids. What is empty and must not be gets a value. Gated is poked.
func (s *Suite) Put(rows ...msg.Message) []int64 {
	s.t.Helper()
	ids, err := s.Adapter.Receive(s.t.Context(), rows...)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// PutSilently is Put without a poke.
func (s *Suite) PutSilently(rows ...msg.Message) []int64 {
	s.t.Helper()
	ids, err := s.Adapter.Insert(s.t.Context(), rows...)
	if err != nil {
		s.t.Fatal(err)
	}
	return ids
}

// Exec changes the database by hand.
func (s *Suite) Exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

// Row is a row as it stands.
func (s *Suite) Row(id int64) *msg.Message {
	s.t.Helper()
	m, err := s.st.Message(s.t.Context(), id)
	if err != nil || m == nil {
		s.t.Fatalf("row %d: %v, %v", id, m, err)
	}
	return m
}

// Decided waits until a row has its disposition.
func (s *Suite) Decided(id int64) (m *msg.Message) {
	s.t.Helper()
	s.Until(fmt.Sprintf("row %d is decided", id), func() bool {
		m = s.Row(id)
		return m.Disposition != ""
	})
	return m
}

// Becomes waits until a row has its disposition, which must be that one.
func (s *Suite) Becomes(id int64, disposition msg.Disposition, reason msg.Reason) *msg.Message {
	s.t.Helper()
	m := s.Decided(id)
	if m.Disposition != disposition || m.Reason != reason {
		s.t.Errorf("row %d %.40q is %s/%s, not %s/%s", id, m.Content, m.Disposition, m.Reason, disposition, reason)
	}
	return m
}

// MayWait tells that rows are to be undecided at the end.
func (s *Suite) MayWait(ids ...int64) {
	for _, id := range ids {
		s.waiting[id] = true
	}
}

// Turn is the turn that took a row, which must have one.
func (s *Suite) Turn(row int64) *msg.Turn {
	s.t.Helper()
	t, err := s.st.Turn(s.t.Context(), s.Decided(row).TurnID)
	if err != nil || t == nil {
		s.t.Fatalf("turn of row %d: %v, %v", row, t, err)
	}
	return t
}

// Runs waits until the turn of a row is with an agent.
func (s *Suite) Runs(row int64) (t *msg.Turn) {
	s.t.Helper()
	s.Until(fmt.Sprintf("row %d is being answered", row), func() bool {
		t = s.Turn(row)
		return t.State == msg.TurnRunning
	})
	return t
}

// Ended waits until the turn of a row has ended.
func (s *Suite) Ended(row int64) (t *msg.Turn) {
	s.t.Helper()
	s.Until(fmt.Sprintf("the turn of row %d has ended", row), func() bool {
		t = s.Turn(row)
		return t.EndedAt != 0
	})
	return t
}

// Answer waits until the turn of a row has ended and returns what was said.
func (s *Suite) Answer(row int64) string {
	s.t.Helper()
	replies, err := s.st.TurnReplies(s.t.Context(), s.Ended(row).ID)
	if err != nil {
		s.t.Fatal(err)
	}
	texts := make([]string, len(replies))
	for i, m := range replies {
		texts[i] = m.Content
	}
	return strings.Join(texts, "\n")
}

// Reply waits for an outbound row that is no turn's and answers a row, as
// those of commands do.
func (s *Suite) Reply(row int64) (reply *msg.Message) {
	s.t.Helper()
	m := s.Row(row)
	s.Until(fmt.Sprintf("row %d %.40q is replied to", row, m.Content), func() bool {
		for _, out := range s.Out(m.ChatJID) {
			if out.ReplyToID == m.PlatformID && out.TurnID == 0 {
				reply = out
			}
		}
		return reply != nil
	})
	return reply
}

// Replies fails unless the reply to a row is that one.
func (s *Suite) Replies(row int64, text string) {
	s.t.Helper()
	if got := s.Reply(row).Content; got != text {
		s.t.Errorf("%q is answered %q, not %q", s.Row(row).Content, got, text)
	}
}

// Out is every outbound row of a chat, oldest first.
func (s *Suite) Out(chat string) []*msg.Message {
	s.t.Helper()
	var out []*msg.Message
	for _, line := range s.lines(`SELECT id FROM messages WHERE chat_jid = ? AND direction = 'out' ORDER BY id`, chat) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		out = append(out, s.Row(id))
	}
	return out
}

// Heard is what the demo agent says it was told in a chat, in that order.
func (s *Suite) Heard(chat string) (texts []string) {
	s.t.Helper()
	for _, m := range s.Out(chat) {
		for line := range strings.Lines(m.Content) {
			if text, ok := strings.CutPrefix(line, "You said: "); ok && m.Source == msg.SourceAgent {
				texts = append(texts, strings.TrimSuffix(text, "\n"))
			}
		}
	}
	return texts
}

// HasHeard settles, and fails unless the agent was told exactly that.
func (s *Suite) HasHeard(chat string, texts ...string) {
	s.t.Helper()
	s.Settle()
	if got := s.Heard(chat); !slices.Equal(got, texts) {
		s.t.Errorf("%s: the agent was told\n%q, not\n%q", chat, got, texts)
	}
}

// Count is how many turns of a chat there are.
func (s *Suite) Count(chat string) int {
	s.t.Helper()
	return len(s.lines(`SELECT id FROM turns WHERE chat_jid = ?`, chat))
}

// Settle waits until nothing is undecided that should be, and no turn is open.
func (s *Suite) Settle() {
	s.t.Helper()
	s.Until("everything is decided and answered", func() bool {
		open := s.lines(`SELECT id FROM messages WHERE direction = 'in' AND disposition IS NULL`)
		return s.allWaiting(open) && len(s.lines(`SELECT id FROM turns WHERE ended_at IS NULL`)) == 0
	})
}

func (s *Suite) allWaiting(ids []string) bool {
	return !slices.ContainsFunc(ids, func(line string) bool {
		id, err := strconv.ParseInt(line, 10, 64)
		return err != nil || !s.waiting[id]
	})
}

// lines is the answer to a query, its columns joined by blanks.
func (s *Suite) lines(query string, args ...any) (all []string) {
	s.t.Helper()
	rows, err := s.db.Query(query, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		s.t.Fatal(err)
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			s.t.Fatal(err)
		}
		fields := make([]string, len(columns))
		for i, v := range values {
			fields[i] = v.String
		}
		all = append(all, strings.Join(fields, " "))
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return all
}
