package rows_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestUsage_IsAdded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := gatedtest.Queued(t, s)
	for _, u := range []agentproto.Usage{{Input: 5, Output: 1, ContextUsed: 6, ContextSize: 100, CostUSD: 0.25}, {Input: 1, CostUSD: 0.5}, {ContextUsed: 7}} {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.AddUsage(tx, turn.ID, u, "2026-11-23") })
	}
	got, err := factrows.Usage(t.Context(), s.Reader, turn.ID)
	if want := (agentproto.Usage{Input: 6, Output: 1, ContextUsed: 7, ContextSize: 100, CostUSD: 0.75}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestSpend_ChatMoves_IsAddedToItsNextAddress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, jid := range []string{"telegram:-5", "telegram:-1005"} {
		turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
		storetest.Write(t, s, func(tx *store.Tx) error {
			return rows.AddUsage(tx, turn.ID, agentproto.Usage{CostUSD: 0.5}, "2026-11-23")
		})
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, "telegram:-5", "telegram:-1005", 1000) })
	got := storetest.Must(factrows.ListSpend(t.Context(), s.Reader, factrows.ByChat, factrows.SpendList{From: "2026-11-23", To: "2026-11-23", Limit: 9}))(t)
	if want := []factrows.SpendRow{{Name: "telegram:-1005", Spend: factrows.Spend{Turns: 2, CostUSD: 1}}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// budgets is a store with turns that were ended since a budget is used up.
type budgets struct {
	*testing.T
	*store.Store
}

var someDay = rows.BudgetScope{Folder: "acme", Day: "2026-11-23"}

// over is a turn of a group that was ended for a budget, that of the turn if none is given.
func (b budgets) over(folder string, scope rows.BudgetScope) *msg.Turn {
	b.Helper()
	turn := gatedtest.Queued(b.T, b.Store, func(turn *msg.Turn) { turn.Folder = folder })
	if scope.Day == "" {
		scope.Turn = turn.ID
	}
	storetest.Write(b.T, b.Store, func(tx *store.Tx) error { return rows.EndOverBudget(tx, turn, scope, 1.25, 1, 300) })
	return turn
}

func (b budgets) ask(turn *msg.Turn, scope rows.BudgetScope, usd float64) (a *msg.Ask) {
	b.Helper()
	storetest.Write(b.T, b.Store, func(tx *store.Tx) (err error) {
		a, err = rows.PutAsk(tx, turn, &rows.Question{AskID: scope.AskID(usd), Question: "on?", Options: []string{"Raise it", "No"},
			Who: msg.Who{Everyone: true}, Source: msg.SourceNotice, ExpiresAt: 1000}, 400)
		return err
	})
	return a
}

func (b budgets) answer(a *msg.Ask, option int) error {
	return b.Write(b.Context(), func(tx *store.Tx) error { return rows.AnswerAsk(tx, a.ID, option, "telegram:7", "", 500, 500) })
}

func (b budgets) want(raised map[rows.BudgetScope]float64, states map[*msg.Turn]msg.TurnState) {
	b.Helper()
	for scope, want := range raised {
		if got := storetest.Must(rows.Raised(b.Context(), b.Reader, scope))(b.T); got != want {
			b.Errorf("%+v was raised by %v, want %v", scope, got, want)
		}
	}
	for t, want := range states {
		if got := storetest.Turn(b.T, b.Store, t.ID); got.State != want {
			b.Errorf("turn %d is %s, want %s", got.ID, got.State, want)
		}
	}
}

func TestBudget_DayIsRaised_ItsTurnsAreQueuedAgainAndItsQuestionsEnd(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	dayBefore := rows.BudgetScope{Folder: "acme", Day: "2026-11-22"}
	first, second, other := b.over("acme", someDay), b.over("acme", someDay), b.over("other", rows.BudgetScope{Folder: "other", Day: someDay.Day})
	before, own := b.over("acme", dayBefore), b.over("acme", rows.BudgetScope{})
	byHand := gatedtest.Queued(t, b.Store, func(turn *msg.Turn) { turn.Folder = "acme" })
	storetest.Write(t, b.Store, func(tx *store.Tx) error { return rows.CancelTurn(tx, byHand.ID, msg.ReasonCancelled, 300) })
	here, elsewhere := b.ask(first, someDay, 1.5), b.ask(second, someDay, 1.5)
	ofTurn, ofOther, ofBefore := b.ask(own, rows.BudgetScope{Turn: own.ID}, 1), b.ask(other, someDay, 1.5), b.ask(before, dayBefore, 1.5)
	if err := b.answer(here, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.answer(here, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("answered twice: %v", err)
	}
	if err := b.answer(elsewhere, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("the same question in another chat: %v", err)
	}
	b.want(map[rows.BudgetScope]float64{someDay: 1.5, dayBefore: 0, {Turn: own.ID}: 0, {Folder: "other", Day: someDay.Day}: 0},
		map[*msg.Turn]msg.TurnState{first: msg.TurnQueued, second: msg.TurnQueued, other: msg.TurnCancelled, before: msg.TurnCancelled, own: msg.TurnCancelled, byHand: msg.TurnCancelled})
	for _, a := range []*msg.Ask{ofTurn, ofOther, ofBefore} {
		if got := storetest.Must(b.Ask(t.Context(), a.ID))(t); got.State != msg.AskOpen {
			t.Errorf("another question is %s", got.State)
		}
	}
	if rows := storetest.Must(factrows.Audit(t.Context(), b.Reader, factrows.AuditQuery{What: "raise budget", Limit: 9}))(t); len(rows) != 1 ||
		rows[0].Who != "telegram:7" || rows[0].Detail != "group acme on 2026-11-23 by $1.50" {
		t.Errorf("audit %+v", rows)
	}
}

func TestBudget_TurnIsRaised_IsQueuedAgain(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn, other := b.over("acme", rows.BudgetScope{}), b.over("acme", rows.BudgetScope{})
	scope := rows.BudgetScope{Turn: turn.ID}
	if err := b.answer(b.ask(turn, scope, 0.5), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.5, {Turn: other.ID}: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued, other: msg.TurnCancelled})
	storetest.Write(t, b.Store, func(tx *store.Tx) error { return rows.EndOverBudget(tx, turn, scope, 2, 1.5, 600) })
	if err := b.answer(b.ask(turn, scope, 0.25), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.75}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}

// A turn that an operator retries is asked about again, and one whose question is open is not.
func TestBudget_NoIsAnswered_NextQuestionIsANewOne(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn := b.over("acme", rows.BudgetScope{})
	scope := rows.BudgetScope{Turn: turn.ID}
	first := b.ask(turn, scope, 0.5)
	if again := b.ask(turn, scope, 0.5); again.ID != first.ID {
		t.Error("an open question is asked again")
	}
	if err := b.answer(first, 2); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnCancelled})
	second := b.ask(turn, scope, 0.5)
	if second.ID == first.ID || second.State != msg.AskOpen {
		t.Errorf("the next question is %+v", second)
	}
	if err := b.answer(second, 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[rows.BudgetScope]float64{scope: 0.5}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}
