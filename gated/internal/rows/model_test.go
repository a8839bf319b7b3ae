package rows_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// model has the invariants of one chat after any verbs in any order.
type model struct {
	s       *store.Store
	chat    string
	folder  string
	rows    []int64
	turns   []int64
	runs    []int64
	decided map[int64]*msg.Message // as they were when they were decided
	ended   map[int64]*msg.Turn    // as they were when they ended
	replies map[int64]int          // frames with text that were taken, by turn
	clock   int64
}

// attempt runs a verb that may return ErrStale, and reports whether it succeeded.
func (m *model) attempt(t *rapid.T, fn func(tx *store.Tx, now int64) error) bool {
	m.clock++
	err := m.s.Write(context.Background(), func(tx *store.Tx) error { return fn(tx, m.clock) })
	switch {
	case err == nil:
		return true
	case !errors.Is(err, store.ErrStale) && !errors.Is(err, store.ErrRefused):
		t.Fatal(err)
	}
	return false
}

const noID = 1 << 40

// pick draws one of the ids so far, or noID.
func pick(t *rapid.T, what string, ids []int64) int64 {
	if i := rapid.IntRange(-1, len(ids)-1).Draw(t, what); i >= 0 {
		return ids[i]
	}
	return noID
}

func (m *model) put(t *rapid.T) {
	row := &msg.Message{ChatJID: m.chat, Direction: msg.In, Content: "x"}
	m.attempt(t, func(tx *store.Tx, _ int64) error { _, _, err := tx.PutMessage(row); return err })
	m.rows = append(m.rows, row.ID)
}

func (m *model) drop(t *rapid.T) {
	id := pick(t, "row", m.rows)
	ok := m.attempt(t, func(tx *store.Tx, now int64) error {
		return tx.Decide(id, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute}, now)
	})
	m.noteDecision(t, id, ok)
}

// fire stores a turn and its row's decision in one write, as gated does.
func (m *model) fire(t *rapid.T) {
	row := pick(t, "row", m.rows)
	turn := &msg.Turn{
		Kind: msg.Conversation, Folder: m.folder, ChatJID: m.chat, TriggerMessageID: row,
		Topic: rapid.SampledFrom([]string{"", "#a"}).Draw(t, "topic"), RowCount: rapid.SampledFrom([]int{0, 1}).Draw(t, "rows"),
	}
	ok := m.attempt(t, func(tx *store.Tx, now int64) error {
		if known, err := tx.Message(t.Context(), row); err != nil || known == nil {
			return errors.Join(err, store.ErrStale)
		}
		turn.CreatedAt = now
		if _, err := rows.PutTurn(tx, turn, 3); err != nil {
			return err
		}
		return tx.Decide(row, store.Decision{
			Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: m.folder, TurnID: turn.ID, Topic: turn.Topic,
		}, now)
	})
	if ok && !slices.Contains(m.turns, turn.ID) {
		m.turns = append(m.turns, turn.ID)
	}
	m.noteDecision(t, row, ok)
}

func (m *model) noteDecision(t *rapid.T, id int64, ok bool) {
	_, before := m.decided[id]
	if ok != (!before && id != noID) {
		t.Fatalf("row %d was decided before: %v; decided now: %v", id, before, ok)
	}
	if !ok {
		return
	}
	row, err := m.s.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	m.decided[id] = row
}

func (m *model) start(t *rapid.T) {
	id := pick(t, "turn", m.turns)
	run := &msg.Run{Folder: m.folder, Topic: rapid.SampledFrom([]string{"", "#a"}).Draw(t, "topic"), ChatJID: m.chat, Runtime: "process"}
	if m.attempt(t, func(tx *store.Tx, now int64) error { return rows.StartRun(tx, run, id) }) {
		m.runs = append(m.runs, run.ID)
	}
}

func (m *model) answer(t *rapid.T) {
	r := rows.Reply{
		TurnID: pick(t, "turn", m.turns), RunID: pick(t, "run", m.runs), Final: rapid.Bool().Draw(t, "final"),
		Text: rapid.SampledFrom([]string{"", "hi"}).Draw(t, "text"), SessionID: rapid.SampledFrom([]string{"", "s"}).Draw(t, "session"),
	}
	before, err := m.s.Turn(t.Context(), r.TurnID)
	if err != nil {
		t.Fatal(err)
	}
	if before != nil && rapid.IntRange(0, 3).Draw(t, "of another run") != 0 {
		r.RunID = before.RunID
	}
	if !m.attempt(t, func(tx *store.Tx, now int64) error { return gatedtest.AnswerTurn(tx, r, now) }) {
		return
	}
	if before == nil || before.RunID != r.RunID {
		t.Fatalf("run %d answered turn %+v", r.RunID, before)
	}
	if r.Text != "" {
		m.replies[r.TurnID]++
	}
}

func (m *model) cancel(t *rapid.T) {
	id := pick(t, "turn", m.turns)
	m.attempt(t, func(tx *store.Tx, now int64) error { return rows.CancelTurn(tx, id, msg.ReasonCancelled, now) })
}

func (m *model) fail(t *rapid.T) {
	turn, err := m.s.Turn(t.Context(), pick(t, "turn", m.turns))
	if err != nil || turn == nil {
		return
	}
	m.attempt(t, func(tx *store.Tx, now int64) error {
		return rows.FinishTurn(tx, turn, msg.TurnFailed, msg.ReasonAgentError, "broke", now)
	})
}

func (m *model) requeue(t *rapid.T) {
	id := pick(t, "turn", m.turns)
	m.attempt(t, func(tx *store.Tx, now int64) error {
		return rows.RequeueTurn(tx, id, rows.Requeue{Attempt: true, Problem: "broke", NotBefore: now})
	})
}

func (m *model) revive(t *rapid.T) {
	id := pick(t, "turn", m.turns)
	if m.attempt(t, func(tx *store.Tx, _ int64) error { return rows.ReviveTurn(tx, id) }) {
		if turn := m.ended[id]; turn != nil && turn.State == msg.TurnDone {
			t.Fatalf("turn %d was done and was revived", id)
		}
		delete(m.ended, id)
	}
}

func (m *model) closeRun(t *rapid.T) {
	id := pick(t, "run", m.runs)
	m.attempt(t, func(tx *store.Tx, now int64) error { return rows.CloseRun(tx, id, now) })
}

// check compares the tables with the model after every step.
func (m *model) check(t *rapid.T) {
	m.checkRows(t)
	running := map[int64]int{}
	for _, id := range m.turns {
		turn, err := m.s.Turn(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if turn.State == msg.TurnRunning {
			if running[turn.RunID]++; running[turn.RunID] > 16 {
				t.Fatalf("run %d has %d turns", turn.RunID, running[turn.RunID])
			}
		}
		m.checkEnded(t, turn)
	}
	for _, topic := range []string{"", "#a"} {
		var live int
		query := `SELECT count(*) FROM runs WHERE folder = ? AND topic = ? AND closed_at IS NULL`
		if _, err := m.s.Get(t.Context(), []any{&live}, query, m.folder, topic); err != nil || live > 1 {
			t.Fatalf("topic %q has %d live runs (%v)", topic, live, err)
		}
	}
}

func (m *model) checkRows(t *rapid.T) {
	seqs := map[int64]int64{}
	for id := range maps.Keys(m.decided) {
		row, err := m.s.Message(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.decided[id], row); diff != "" {
			t.Fatalf("row %d was decided and changed (-before +after):\n%s", id, diff)
		}
		if other := seqs[row.DecisionSeq]; other != 0 {
			t.Fatalf("rows %d and %d are decision %d", id, other, row.DecisionSeq)
		}
		seqs[row.DecisionSeq] = id
	}
}

// checkEnded checks that an ended turn stays as it ended. Only a done one accepts
// further frames.
func (m *model) checkEnded(t *rapid.T, turn *msg.Turn) {
	if turn.EndedAt == 0 {
		if was := m.ended[turn.ID]; was != nil {
			t.Fatalf("turn %d changed from %s to %s", turn.ID, was.State, turn.State)
		}
		return
	}
	if was := m.ended[turn.ID]; was != nil {
		before, now := *was, *turn
		if before.State == msg.TurnDone {
			before.Frames, now.Frames = 0, 0
		}
		if diff := cmp.Diff(before, now); diff != "" {
			t.Fatalf("turn %d had ended and changed (-before +after):\n%s", turn.ID, diff)
		}
	}
	m.ended[turn.ID] = turn
	replies, err := factrows.TurnReplies(t.Context(), m.s.Reader, turn.ID)
	if err != nil || len(replies) != m.replies[turn.ID] {
		t.Fatalf("turn %d: %d replies to %d frames (%v)", turn.ID, len(replies), m.replies[turn.ID], err)
	}
}

func TestModel_AnyOrderOfVerbs_KeepsInvariants(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	chats := 0
	rapid.Check(t, func(t *rapid.T) {
		chats++
		m := &model{
			s: s, chat: fmt.Sprintf("telegram:-%d", chats), folder: fmt.Sprintf("f%d", chats),
			decided: map[int64]*msg.Message{}, ended: map[int64]*msg.Turn{}, replies: map[int64]int{},
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "drop": m.drop, "fire": m.fire, "fire another": m.fire, "start": m.start, "answer": m.answer,
			"answer again": m.answer, "cancel": m.cancel, "fail": m.fail, "requeue": m.requeue, "revive": m.revive,
			"close": m.closeRun, "": m.check,
		})
	})
}
