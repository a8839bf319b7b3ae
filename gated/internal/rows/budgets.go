package rows

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// maxRevived bounds the turns that are queued again when a day's budget is raised.
const maxRevived = 1000

// micros is how many of the units of router_state and of a question's id are a US dollar.
const micros = 1_000_000

// BudgetScope is the turn, or the group and the day, that a budget is for.
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

// key is the key in router_state of the amount by which the budget was raised.
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
func Raised(ctx context.Context, r store.Reader, b BudgetScope) (usd float64, err error) {
	by, err := state(ctx, r, b.key())
	return float64(by) / micros, err
}

// EndOverBudget ends an open turn since a budget is used up: it is queued again if an operator raises that. used and
// budget are in US dollars. It returns ErrStale if the turn has ended.
func EndOverBudget(tx *store.Tx, t *msg.Turn, b BudgetScope, used, budget float64, now int64) error {
	pokeTyping(tx, t)
	problem := fmt.Sprintf("%s$%.2f of $%.2f", b.problem(), used, budget)
	if _, err := endTurn(tx, t, ending{state: msg.TurnCancelled, reason: msg.ReasonOverBudget, problem: problem},
		now); err != nil {
		return err
	}
	return tx.Unmark(t.ID, now)
}

// raiseBudget raises the budget that a question is about, queues the turns again that were ended for it, and ends the
// questions of other chats about it.
func raiseBudget(tx *store.Tx, a *msg.Ask, sender string, now int64) error {
	const addState = `INSERT INTO router_state (key, value) VALUES (?,?) ON CONFLICT (key) DO UPDATE SET value = router_state.value + excluded.value`
	// The turns of a group that were ended since a budget was used up, by the beginning of their error, and not asked
	// again: of all that were cancelled, when an operator raises it.
	const queryOverBudget = `SELECT id FROM turns t INDEXED BY turns_state WHERE t.state IN ('failed', 'cancelled') AND t.state = 'cancelled'
	AND t.reason = 'over_budget' AND t.folder = ?1 AND substr(t.error, 1, length(?2)) = ?2 ORDER BY id LIMIT ?3+0`
	t, err := tx.Turn(store.Uncancelled(), a.TurnID)
	if err != nil || t == nil {
		return err
	}
	b, by, err := scopeOf(a, t)
	if err != nil {
		return err
	}
	if err := tx.Exec(addState, b.key(), by); err != nil {
		return err
	}
	detail, ended := fmt.Sprintf("turn %d of group %s", t.ID, t.Folder), []int64{t.ID}
	if b.Turn == 0 {
		detail = fmt.Sprintf("group %s on %s", b.Folder, b.Day)
		if ended, err = store.All(store.Uncancelled(), tx.Reader, store.One[int64], queryOverBudget, b.Folder,
			b.problem(),
			maxRevived); err != nil {
			return err
		}
	}
	if err := tx.PutAudit(sender, "raise budget", fmt.Sprintf("%s by $%.2f", detail, float64(by)/micros),
		now); err != nil {
		return err
	}
	for _, id := range ended {
		if err := reviveOverBudget(tx, id, b); err != nil {
			return err
		}
	}
	return endBudgetAsks(tx, a, b, now)
}

func reviveOverBudget(tx *store.Tx, id int64, b BudgetScope) error {
	t, err := tx.Turn(store.Uncancelled(), id)
	if err != nil || t == nil || t.State != msg.TurnCancelled || !b.Ended(t) {
		return err
	}
	if err = ReviveTurn(tx, id); errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// endBudgetAsks ends the open questions whether a budget is raised, but for the answered one.
func endBudgetAsks(tx *store.Tx, answered *msg.Ask, b BudgetScope, now int64) error {
	const query = `SELECT ` + store.AskColumns +
		` FROM asks a INDEXED BY asks_open CROSS JOIN turns t ON t.id = a.turn_id
		WHERE a.state = 'open' AND t.folder = ? ORDER BY a.id`
	open, err := tx.ReadAsks(store.Uncancelled(), store.QueryTurnAsks, answered.TurnID)
	if b.Turn == 0 {
		open, err = tx.ReadAsks(store.Uncancelled(), query, b.Folder)
	}
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(a *msg.Ask) bool {
		return a.ID == answered.ID || a.State != msg.AskOpen ||
			!b.Asks(a)
	})
	for _, a := range open {
		if err := ExpireAsk(tx, a.ID, now); err != nil {
			return err
		}
	}
	return nil
}

// AddUsage adds to the usage of a turn, and to that of its group in its chat on a day, YYYY-MM-DD, and stores
// how full the turn's conversation is. The turn may have ended.
func AddUsage(tx *store.Tx, turnID int64, u agentproto.Usage, day string) error {
	// A turn counts on the day on which its first usage is said.
	const upsertSpend = `INSERT INTO spend (day, folder, chat_jid, turns, input_tokens, output_tokens, cost_usd)
		SELECT ?2, folder, chat_jid, CASE WHEN input_tokens IS NULL THEN 1 ELSE 0 END, ?3, ?4, ?5 FROM turns WHERE id = ?1
		ON CONFLICT (day, folder, chat_jid) DO UPDATE SET turns = spend.turns + excluded.turns, input_tokens = spend.input_tokens + excluded.input_tokens,
		output_tokens = spend.output_tokens + excluded.output_tokens, cost_usd = spend.cost_usd + excluded.cost_usd`
	const updateUsage = `UPDATE turns SET input_tokens = ifnull(input_tokens, 0) + ?, output_tokens = ifnull(output_tokens, 0) + ?,
		cost_usd = ifnull(cost_usd, 0) + ?, context_used = coalesce(nullif(?, 0), context_used), context_size = coalesce(nullif(?, 0), context_size)
		WHERE id = ?`
	if u.Input != 0 || u.Output != 0 || u.CostUSD != 0 {
		if err := tx.Exec(upsertSpend, turnID, day, u.Input, u.Output, u.CostUSD); err != nil {
			return err
		}
	}
	_, err := tx.Change(updateUsage, u.Input, u.Output, u.CostUSD, u.ContextUsed, u.ContextSize, turnID)
	return err
}
