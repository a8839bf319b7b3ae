package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestSpend_Usage_IsSummedByDayGroupAndChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(folder, jid string) *msg.Turn {
		return queued(t, s, func(turn *msg.Turn) { turn.Folder, turn.ChatJID = folder, jid })
	}
	use := func(turn *msg.Turn, day string, cost float64) {
		write(t, s, func(tx *store.Tx) error {
			return tx.AddUsage(turn.ID, agentproto.Usage{Input: 10, Output: 1, CostUSD: cost}, day)
		})
	}
	over := in("acme", "telegram:1")
	use(over, "2026-11-22", 1)
	use(over, "2026-11-23", 2) // a turn that goes on past midnight
	use(in("acme", "telegram:1"), "2026-11-23", 4)
	use(in("acme", "telegram:2"), "2026-11-23", 8)
	use(in("other", "telegram:2"), "2026-11-24", 16)
	write(t, s, func(tx *store.Tx) error {
		return tx.AddUsage(over.ID, agentproto.Usage{ContextUsed: 5}, "2026-11-30") // nothing was used
	})
	row := func(name string, turns int64, events int64, cost float64) store.SpendRow {
		return store.SpendRow{Name: name, Spend: store.Spend{Turns: turns, Input: 10 * events, Output: events, CostUSD: cost}}
	}
	all := store.SpendList{From: "2026-11-01", To: "2026-11-30", Limit: 10}
	acme, day := all, all
	acme.Folder, day.From, day.To, day.Limit = "acme", "2026-11-23", "2026-11-23", 1
	for name, c := range map[string]struct {
		read func() ([]store.SpendRow, error)
		want []store.SpendRow
	}{
		"days": {func() ([]store.SpendRow, error) { return s.SpendDays(t.Context(), all) },
			[]store.SpendRow{row("2026-11-22", 1, 1, 1), row("2026-11-23", 2, 3, 14), row("2026-11-24", 1, 1, 16)}},
		"days of a group": {func() ([]store.SpendRow, error) { return s.SpendDays(t.Context(), acme) },
			[]store.SpendRow{row("2026-11-22", 1, 1, 1), row("2026-11-23", 2, 3, 14)}},
		"groups": {func() ([]store.SpendRow, error) { return s.SpendGroups(t.Context(), all) },
			[]store.SpendRow{row("other", 1, 1, 16), row("acme", 3, 4, 15)}},
		"chats": {func() ([]store.SpendRow, error) { return s.SpendChats(t.Context(), all) },
			[]store.SpendRow{row("telegram:2", 2, 2, 24), row("telegram:1", 2, 3, 7)}},
		"chats of a group": {func() ([]store.SpendRow, error) { return s.SpendChats(t.Context(), acme) },
			[]store.SpendRow{row("telegram:2", 1, 1, 8), row("telegram:1", 2, 3, 7)}},
		"the first chat of a day": {func() ([]store.SpendRow, error) { return s.SpendChats(t.Context(), day) },
			[]store.SpendRow{row("telegram:2", 1, 1, 8)}},
	} {
		if got := must(c.read())(t); !cmp.Equal(got, c.want) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
		}
	}
	if got := must(s.FolderSpend(t.Context(), "acme", "2026-11-23", "2026-11-23"))(t); got.CostUSD != 14 {
		t.Errorf("of the group on a day: %+v", got)
	}
	if got := must(s.ChatSpend(t.Context(), "telegram:2", "2026-11-01", "2026-11-30"))(t); got.CostUSD != 24 {
		t.Errorf("of the chat: %+v", got)
	}
	if got := must(s.ChatSpend(t.Context(), "telegram:9", "2026-11-01", "2026-11-30"))(t); got != (store.Spend{}) {
		t.Errorf("of an unknown chat: %+v", got)
	}
}

func TestSpend_ChatMoves_IsAddedToItsNextAddress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, jid := range []string{"telegram:-5", "telegram:-1005"} {
		turn := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
		write(t, s, func(tx *store.Tx) error { return tx.AddUsage(turn.ID, agentproto.Usage{CostUSD: 0.5}, "2026-11-23") })
	}
	write(t, s, func(tx *store.Tx) error { return tx.MoveChat("telegram:-5", "telegram:-1005", 1000) })
	got := must(s.SpendChats(t.Context(), store.SpendList{From: "2026-11-23", To: "2026-11-23", Limit: 9}))(t)
	if want := []store.SpendRow{{Name: "telegram:-1005", Spend: store.Spend{Turns: 2, CostUSD: 1}}}; !cmp.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// budgets is a store with turns that were ended since a budget is used up.
type budgets struct {
	*testing.T
	*store.Store
}

var someDay = store.BudgetScope{Folder: "acme", Day: "2026-11-23"}

// over is a turn of a group that was ended for a budget, that of the turn if none is given.
func (b budgets) over(folder string, scope store.BudgetScope) *msg.Turn {
	b.Helper()
	turn := queued(b.T, b.Store, func(turn *msg.Turn) { turn.Folder = folder })
	if scope.Day == "" {
		scope.Turn = turn.ID
	}
	write(b.T, b.Store, func(tx *store.Tx) error { return tx.EndOverBudget(turn, scope, 1.25, 1, 300) })
	return turn
}

func (b budgets) ask(turn *msg.Turn, scope store.BudgetScope, usd float64) (a *msg.Ask) {
	b.Helper()
	write(b.T, b.Store, func(tx *store.Tx) (err error) {
		a, err = tx.PutAsk(turn, &store.Question{AskID: scope.AskID(usd), Question: "on?", Options: []string{"Raise it", "No"},
			Who: msg.Who{Everyone: true}, Source: msg.SourceNotice, ExpiresAt: 1000}, 400)
		return err
	})
	return a
}

func (b budgets) answer(a *msg.Ask, option int) error {
	return b.Write(b.Context(), func(tx *store.Tx) error { return tx.AnswerAsk(a.ID, option, "telegram:7", "", 500, 500) })
}

func (b budgets) want(raised map[store.BudgetScope]float64, states map[*msg.Turn]msg.TurnState) {
	b.Helper()
	for scope, want := range raised {
		if got := must(b.Raised(b.Context(), scope))(b.T); got != want {
			b.Errorf("%+v was raised by %v, want %v", scope, got, want)
		}
	}
	for t, want := range states {
		if got := turn(b.T, b.Store, t.ID); got.State != want {
			b.Errorf("turn %d is %s, want %s", got.ID, got.State, want)
		}
	}
}

func TestBudget_DayIsRaised_ItsTurnsAreQueuedAgainAndItsQuestionsEnd(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	dayBefore := store.BudgetScope{Folder: "acme", Day: "2026-11-22"}
	first, second, other := b.over("acme", someDay), b.over("acme", someDay), b.over("other", store.BudgetScope{Folder: "other", Day: someDay.Day})
	before, own := b.over("acme", dayBefore), b.over("acme", store.BudgetScope{})
	byHand := queued(t, b.Store, func(turn *msg.Turn) { turn.Folder = "acme" })
	write(t, b.Store, func(tx *store.Tx) error { return tx.CancelTurn(byHand.ID, msg.ReasonCancelled, 300) })
	here, elsewhere := b.ask(first, someDay, 1.5), b.ask(second, someDay, 1.5)
	ofTurn, ofOther, ofBefore := b.ask(own, store.BudgetScope{Turn: own.ID}, 1), b.ask(other, someDay, 1.5), b.ask(before, dayBefore, 1.5)
	if err := b.answer(here, 1); err != nil {
		t.Fatal(err)
	}
	if err := b.answer(here, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("answered twice: %v", err)
	}
	if err := b.answer(elsewhere, 1); !errors.Is(err, store.ErrStale) {
		t.Errorf("the same question in another chat: %v", err)
	}
	b.want(map[store.BudgetScope]float64{someDay: 1.5, dayBefore: 0, {Turn: own.ID}: 0, {Folder: "other", Day: someDay.Day}: 0},
		map[*msg.Turn]msg.TurnState{first: msg.TurnQueued, second: msg.TurnQueued, other: msg.TurnCancelled, before: msg.TurnCancelled, own: msg.TurnCancelled, byHand: msg.TurnCancelled})
	for _, a := range []*msg.Ask{ofTurn, ofOther, ofBefore} {
		if got := must(b.Ask(t.Context(), a.ID))(t); got.State != msg.AskOpen {
			t.Errorf("another question is %s", got.State)
		}
	}
	if rows := must(b.Audit(t.Context(), store.AuditQuery{What: "raise budget", Limit: 9}))(t); len(rows) != 1 ||
		rows[0].Who != "telegram:7" || rows[0].Detail != "group acme on 2026-11-23 by $1.50" {
		t.Errorf("audit %+v", rows)
	}
}

func TestBudget_TurnIsRaised_IsQueuedAgain(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn, other := b.over("acme", store.BudgetScope{}), b.over("acme", store.BudgetScope{})
	scope := store.BudgetScope{Turn: turn.ID}
	if err := b.answer(b.ask(turn, scope, 0.5), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[store.BudgetScope]float64{scope: 0.5, {Turn: other.ID}: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued, other: msg.TurnCancelled})
	write(t, b.Store, func(tx *store.Tx) error { return tx.EndOverBudget(turn, scope, 2, 1.5, 600) })
	if err := b.answer(b.ask(turn, scope, 0.25), 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[store.BudgetScope]float64{scope: 0.75}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}

// A turn that an operator retries is asked about again, and one whose question is open is not.
func TestBudget_NoIsAnswered_NextQuestionIsANewOne(t *testing.T) {
	t.Parallel()
	b := budgets{t, storetest.Open(t)}
	turn := b.over("acme", store.BudgetScope{})
	scope := store.BudgetScope{Turn: turn.ID}
	first := b.ask(turn, scope, 0.5)
	if again := b.ask(turn, scope, 0.5); again.ID != first.ID {
		t.Error("an open question is asked again")
	}
	if err := b.answer(first, 2); err != nil {
		t.Fatal(err)
	}
	b.want(map[store.BudgetScope]float64{scope: 0}, map[*msg.Turn]msg.TurnState{turn: msg.TurnCancelled})
	second := b.ask(turn, scope, 0.5)
	if second.ID == first.ID || second.State != msg.AskOpen {
		t.Errorf("the next question is %+v", second)
	}
	if err := b.answer(second, 1); err != nil {
		t.Fatal(err)
	}
	b.want(map[store.BudgetScope]float64{scope: 0.5}, map[*msg.Turn]msg.TurnState{turn: msg.TurnQueued})
}
