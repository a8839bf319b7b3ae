package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/msg"
)

// maxRevived bounds the turns that are queued again when a day's budget is raised.
const maxRevived = 1000

// micros is how many of the units of router_state and of a question's id are a US dollar.
const micros = 1_000_000

// BudgetScope is what a budget is for: a turn, or a group on a day.
type BudgetScope struct {
	Turn   int64  // 0: a day
	Folder string // of a day
	Day    string // YYYY-MM-DD
}

// askPrefix begins the ids of the questions whether the budget is raised; the amount in micros follows.
func (b BudgetScope) askPrefix() string {
	if b.Turn != 0 {
		return msg.AskBudget + "-turn-"
	}
	return msg.AskBudget + "-day-" + b.Day + "-"
}

// AskID is the id of the question whether the budget is raised by an amount, in US dollars.
func (b BudgetScope) AskID(usd float64) string {
	return b.askPrefix() + strconv.FormatInt(int64(math.Round(usd*micros)), 10)
}

// Asks reports whether a question is whether this budget is raised, by whatever amount.
func (b BudgetScope) Asks(a *msg.Ask) bool { return strings.HasPrefix(a.AskID, b.askPrefix()) }

// key is where router_state has what the budget was raised by.
func (b BudgetScope) key() string {
	if b.Turn != 0 {
		return "raised turn " + strconv.FormatInt(b.Turn, 10)
	}
	return "raised " + b.Day + " " + b.Folder
}

// problem begins the error of the turns that were ended since the budget was used up.
func (b BudgetScope) problem() string {
	if b.Turn != 0 {
		return "the budget of the turn is used up: "
	}
	return "the budget of the group for " + b.Day + " is used up: "
}

// Ended reports whether a turn was ended since the budget was used up.
func (b BudgetScope) Ended(t *msg.Turn) bool {
	return t.Reason == msg.ReasonOverBudget && strings.HasPrefix(t.Error, b.problem())
}

// scopeOf is the budget that a question is about, and by how many micros its first option raises it.
func scopeOf(a *msg.Ask, t *msg.Turn) (b BudgetScope, by int64, err error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(a.AskID, msg.AskBudget+"-"), againMark)
	of, amount := id, ""
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		of, amount = id[:i], id[i+1:]
	}
	if by, err = strconv.ParseInt(amount, 10, 64); err != nil {
		return b, 0, fmt.Errorf("question %d about a budget has the id %q: %w", a.ID, a.AskID, err)
	}
	if day, ok := strings.CutPrefix(of, "day-"); ok {
		return BudgetScope{Folder: t.Folder, Day: day}, by, nil
	}
	return BudgetScope{Turn: t.ID}, by, nil
}

// Raised returns by how many US dollars a budget was raised.
func (r Reader) Raised(ctx context.Context, b BudgetScope) (usd float64, err error) {
	by, err := r.state(ctx, b.key())
	return float64(by) / micros, err
}

// EndOverBudget ends an open turn since a budget is used up: it is queued again if an operator raises that. used and
// budget are in US dollars. It returns ErrStale if the turn has ended.
func (tx *Tx) EndOverBudget(t *msg.Turn, b BudgetScope, used, budget float64, now int64) error {
	tx.pokeTyping(t)
	problem := fmt.Sprintf("%s$%.2f of $%.2f", b.problem(), used, budget)
	if err := tx.endTurn(t, ending{state: msg.TurnCancelled, reason: msg.ReasonOverBudget, problem: problem},
		now); err != nil {
		return err
	}
	return tx.Unmark(t.ID, now)
}

// raiseBudget raises the budget that a question is about, queues the turns again that were ended for it, and ends the
// questions of other chats about it: what was asked is done.
func (tx *Tx) raiseBudget(a *msg.Ask, sender string, now int64) error {
	t, err := tx.Turn(uncancelled(), a.TurnID)
	if err != nil || t == nil {
		return err
	}
	b, by, err := scopeOf(a, t)
	if err != nil {
		return err
	}
	if err := tx.exec(addState, b.key(), by); err != nil {
		return err
	}
	detail, ended := fmt.Sprintf("turn %d of group %s", t.ID, t.Folder), []int64{t.ID}
	if b.Turn == 0 {
		detail = fmt.Sprintf("group %s on %s", b.Folder, b.Day)
		if ended, err = collect(uncancelled(), tx.Reader, one[int64], queryOverBudget, b.Folder, b.problem(),
			maxRevived); err != nil {
			return err
		}
	}
	if err := tx.PutAudit(sender, "raise budget", fmt.Sprintf("%s by $%.2f", detail, float64(by)/micros),
		now); err != nil {
		return err
	}
	for _, id := range ended {
		if err := tx.reviveOverBudget(id, b); err != nil {
			return err
		}
	}
	return tx.endBudgetAsks(a, b, now)
}

func (tx *Tx) reviveOverBudget(id int64, b BudgetScope) error {
	t, err := tx.Turn(uncancelled(), id)
	if err != nil || t == nil || t.State != msg.TurnCancelled || !b.Ended(t) {
		return err
	}
	if err = tx.ReviveTurn(id); errors.Is(err, ErrStale) {
		return nil
	}
	return err
}

// endBudgetAsks ends the open questions whether a budget is raised, but for the answered one.
func (tx *Tx) endBudgetAsks(answered *msg.Ask, b BudgetScope, now int64) error {
	open, err := tx.asks(uncancelled(), queryTurnAsks, answered.TurnID)
	if b.Turn == 0 {
		open, err = tx.asks(uncancelled(), queryFolderOpenAsks, b.Folder)
	}
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(a *msg.Ask) bool {
		return a.ID == answered.ID || a.State != msg.AskOpen ||
			!b.Asks(a)
	})
	for _, a := range open {
		if err := tx.ExpireAsk(a.ID, now); err != nil {
			return err
		}
	}
	return nil
}
