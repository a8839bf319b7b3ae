package agents

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// budgetGrace is how long an agent may go on that has used up a budget: many report the usage of a turn just before
	// they answer it.
	budgetGrace = 2 * time.Second
	// budgetTimeout is how long a budget can be raised by its question.
	budgetTimeout = 24 * time.Hour
	// budgetNoticeInterval is how long a chat is not notified again of a budget that is used up.
	budgetNoticeInterval = time.Hour
	// recentTurns is how many cancelled turns of a chat are looked at for that.
	recentTurns = 50
)

// overBudget is a budget that is used up, in US dollars.
type overBudget struct {
	scope        rows.BudgetScope
	used, budget float64 // budget includes its raises
	by           float64 // raised by this, it has as much left as at first
}

// budgets checks the spending of agents. It keeps nothing: all of it is in the rows.
type budgets struct {
	env    *env
	groups *groups
}

// over returns the budget that keeps a turn from going on, nil if none does.
func (b *budgets) over(t *msg.Turn, limit groupconfig.Budget) (*overBudget, error) {
	if limit.TurnUSD > 0 {
		used, err := factrows.Usage(b.env.ctx, b.env.st.Reader, t.ID)
		if err != nil {
			return nil, err
		}
		if over, err := b.compare(rows.BudgetScope{Turn: t.ID}, used.CostUSD, limit.TurnUSD); over != nil ||
			err != nil {
			return over, err
		}
	}
	if limit.DayUSD == 0 {
		return nil, nil
	}
	day := b.env.today()
	used, err := factrows.FolderSpend(b.env.ctx, b.env.st.Reader, t.Folder, day, day)
	if err != nil {
		return nil, err
	}
	return b.compare(rows.BudgetScope{Folder: t.Folder, Day: day}, used.CostUSD, limit.DayUSD)
}

func (b *budgets) compare(scope rows.BudgetScope, used, budget float64) (*overBudget, error) {
	if used < budget {
		return nil, nil
	}
	raised, err := rows.Raised(b.env.ctx, b.env.st.Reader, scope)
	if err != nil || used < budget+raised {
		return nil, err
	}
	return &overBudget{scope, used, budget + raised, used - raised}, nil
}

// overNow is over by the group's configuration as it is now. A budget is soft: while it cannot be read, turns go on.
func (b *budgets) overNow(t *msg.Turn) *overBudget {
	own, problems, err := b.groups.config(t.Folder)
	if err != nil || problems != nil || own.Budget == (groupconfig.Budget{}) {
		return nil
	}
	over, err := b.over(t, own.Budget)
	if err != nil {
		b.env.log.Warn("budget not checked", "turn", t.ID, "folder", t.Folder, "err", err)
		return nil
	}
	return over
}

// words say that the budget is used up, for the chat. begun means that the agent has begun the turn.
func (o *overBudget) words(begun bool) string {
	switch {
	case o.scope.Turn == 0 && begun:
		return fmt.Sprintf("I stopped here: this group has used today's budget, %s of %s.", dollars(o.used),
			dollars(o.budget))
	case o.scope.Turn == 0:
		return fmt.Sprintf("This group has used today's budget, %s of %s.", dollars(o.used), dollars(o.budget))
	}
	return fmt.Sprintf("I stopped here: this answer has used its budget, %s of %s.", dollars(o.used), dollars(o.budget))
}

func dollars(usd float64) string { return fmt.Sprintf("$%.2f", usd) }

// errOverBudget means that a turn was ended that may not begin.
var errOverBudget = errors.New("a budget is used up")

// refuse ends a turn that may not begin, and reports whether it did. Like overNow, it takes a budget that cannot be
// read for one that is not used up.
func (b *budgets) refuse(t *msg.Turn, limit groupconfig.Budget) bool {
	over, err := b.over(t, limit)
	if err != nil {
		b.env.log.Warn("budget not checked", "turn", t.ID, "folder", t.Folder, "err", err)
	}
	return over != nil && b.end(t, over, nil)
}

// end ends a turn whose budget is used up, with the text of its agent so far, nil if it has not begun, and notifies
// the chat, where those who operate the group can raise the budget. It reports whether it did.
func (b *budgets) end(t *msg.Turn, over *overBudget, said *rows.Reply) bool {
	words := over.words(said != nil)
	question := &rows.Question{
		AskID:    over.scope.AskID(over.by),
		Question: fmt.Sprintf("%s Raise it to %s and go on?", words, dollars(over.budget+over.by)),
		Options:  []string{"Raise it", "No"},
		Source:   msg.SourceNotice,
	}
	own, _, _ := b.groups.config(t.Folder) // without it, operators alone
	question.Who = b.env.holders(t.ChatJID, own.Roles.Operate, msg.WhoOperate)
	question.Name = cmp.Or(own.AssistantName, b.env.cfg.Defaults.AssistantName)
	err := b.env.persist(b.env.ctx, func(tx *store.Tx) error {
		now := b.env.now()
		if said != nil && said.Text != "" {
			if _, err := rows.AnswerTurn(tx, *said, now); err != nil {
				return err
			}
		}
		quiet, err := b.chatKnows(tx, t, over.scope, now)
		if err != nil {
			return err
		}
		if err := rows.EndOverBudget(tx, t, over.scope, over.used, over.budget, now); err != nil {
			return err
		}
		if quiet {
			return rows.MarkUnanswered(tx, t, now)
		}
		question.ExpiresAt = now + budgetTimeout.Milliseconds()
		if !t.WorksForGroup() && !msg.NoUsers(t.ChatJID) {
			if _, err := rows.PutAsk(tx, t, question, now); !errors.Is(err, rows.ErrNoUser) {
				return err
			}
		}
		return rows.PutNotice(tx, t, words+" Operators can raise it in the group's config.", now)
	})
	if err == nil {
		b.env.log.Info("turn ended over budget", "turn", t.ID, "folder", t.Folder, "chat", t.ChatJID, "reason", words)
	}
	return err == nil
}

// chatKnows reports whether the chat needs no further notice: a question about the budget is open, or it had a notice
// lately. A turn's own budget is always worth one, and so is a turn that another group waits for.
func (b *budgets) chatKnows(tx *store.Tx, t *msg.Turn, scope rows.BudgetScope, now int64) (bool, error) {
	if scope.Turn != 0 || t.WorksForGroup() {
		return false, nil
	}
	open, err := factrows.ChatAsks(b.env.ctx, tx.Reader, t.ChatJID, t.ThreadID)
	if err != nil || slices.ContainsFunc(open, scope.Asks) {
		return err == nil, err
	}
	recent, err := tx.Turns(b.env.ctx, store.TurnList{ChatJID: t.ChatJID, State: msg.TurnCancelled, Limit: recentTurns})
	if err != nil {
		return false, err
	}
	for _, r := range recent {
		if !scope.Ended(r) || r.ThreadID != t.ThreadID || r.EndedAt <= now-budgetNoticeInterval.Milliseconds() ||
			r.EndedAt > now {
			continue
		}
		if noticed, err := rows.HasNotice(b.env.ctx, tx.Reader, r.ID, ""); noticed || err != nil {
			return noticed, err
		}
	}
	return false, nil
}

// overrun is the turn of a run that has used up a budget, since when. The run's goroutine owns it.
type overrun struct {
	turn  int64 // 0 for none
	since time.Time
}

// left is how long the agent may go on with a turn that is over its budget.
func (o *overrun) left(turn int64, now time.Time) time.Duration {
	if o.turn != turn {
		*o = overrun{turn, now}
	}
	return budgetGrace - now.Sub(o.since)
}

// checkBudget stops the run if a turn that it works on has used up a budget.
func (r *run) checkBudget() {
	if r.settings.now.Budget == (groupconfig.Budget{}) || r.agent.phase > phaseServing {
		return
	}
	for _, t := range r.turns.unanswered {
		p := r.progress.turns[t.ID]
		if p == nil || p.usage.CostUSD == 0 {
			continue
		}
		over := r.m.budgets.overNow(t)
		if over == nil {
			if r.over.turn == t.ID {
				r.over.turn = 0
			}
			continue
		}
		now := r.env.cfg.Now()
		if left := r.over.left(t.ID, now); left > 0 {
			r.progress.storeIn(min(left, p.interval(now)))
			return
		}
		said := &rows.Reply{
			RunID: r.row.ID, TurnID: t.ID, Text: p.text(), Sender: msg.AgentSender(t.Folder),
			SenderName: r.settings.now.AssistantName,
		}
		if r.m.budgets.end(t, over, said) {
			// like a turn that was cancelled it stays in unanswered: further words of the agent about it are for no
			// other
			r.agent.interrupt()
		}
		return
	}
}
