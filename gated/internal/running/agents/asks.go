package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/queue"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// askExpiryInterval is how often questions are looked for whose time is over.
	askExpiryInterval = time.Second
	// askLookInterval is how often AwaitAsk looks without being woken.
	askLookInterval = 5 * time.Second
	// answerGrace is how long a question whose time is over stays open for answers that came in time and are undecided.
	answerGrace = 10 * time.Second
)

// asking is a question of an agent that waits for its answer.
type asking struct {
	turn int64
	id   string // as the agent calls it
	hash string
}

// questions are those that the agent of a run waits for. The run's goroutine owns them.
type questions struct {
	open    map[int64]asking // by their rows
	waiting []int64          // turns that wait for users
}

// any reports whether a question may still be open.
func (q *questions) any() bool { return len(q.open)+len(q.waiting) > 0 }

// close removes a question, and completes its answer with the question's names.
func (q *questions) close(id int64, answer agentproto.Answer) agentproto.Answer {
	a := q.open[id]
	delete(q.open, id)
	return a.answer(answer)
}

// setWaiting keeps the turns that wait for users, and reports whether the run begins or ends to wait by that.
func (q *questions) setWaiting(turns []int64) (changed bool) {
	was := len(q.waiting) > 0
	q.waiting = turns
	return was != (len(turns) > 0)
}

// ask asks a question of the agent. One that cannot be asked is answered at once: the agent waits for it.
func (r *run) ask(e *agentproto.Event) {
	t := r.turns.addressee(e.TurnID)
	if t == nil || !r.turns.has(t.ID) {
		r.env.log.Warn("question refused: it is of no open turn", "run", r.row.ID, "turn",
			agentproto.Truncate(e.TurnID, 40), "ask", e.Ask.ID)
		r.agent.answer(agentproto.Answer{
			TurnID: e.TurnID, AskID: e.Ask.ID, PayloadHash: e.Ask.PayloadHash, Reason: agentproto.AskRefused,
			Problem: "it is of no open turn",
		})
		return
	}
	a := asking{turn: t.ID, id: e.Ask.ID, hash: e.Ask.PayloadHash}
	id := e.Ask.ID
	if msg.IsOwn(id) { // an id of gated's own questions
		id = "agent-" + id
	}
	r.guard(t, func() {
		stored, err := r.m.asks.Ask(t, &rows.Question{
			AskID: id, Question: e.Ask.Question, Detail: e.Ask.Detail, Options: e.Ask.Options,
			PayloadHash: e.Ask.PayloadHash, Allow: e.Ask.Allow, About: groupconfig.Subject{Tool: e.Ask.Tool},
		}, e.Ask.Check(), r.setup.redact)
		switch {
		case err == nil:
			r.asks.open[stored.ID] = a
			r.checkAsks()
		case r.env.ctx.Err() == nil:
			r.env.log.Warn("question refused", "run", r.row.ID, "turn", t.ID, "chat", t.ChatJID, "ask", e.Ask.ID, "err",
				err)
			r.agent.answer(a.answer(agentproto.Answer{Reason: agentproto.AskRefused, Problem: err.Error()}))
			if errors.Is(err, agentproto.ErrTooLong) {
				r.noteTooLong(t)
			}
		}
	})
}

// textTooLong stands in for a permission request that cannot be shown in the chat.
const textTooLong = "A request for a permission was denied: it is too long to be shown here."

// noteTooLong tells a chat about a permission request that it does not see.
func (r *run) noteTooLong(t *msg.Turn) {
	if err := r.env.persist(r.env.ctx, func(tx *store.Tx) error {
		return rows.PutInterimNotice(tx, t, textTooLong, r.env.now())
	}); err != nil {
		r.env.log.Warn("notice about a refused question not stored", "turn", t.ID, "chat", t.ChatJID, "err", err)
	}
}

// answer completes an answer with the question's names.
func (a asking) answer(answer agentproto.Answer) agentproto.Answer {
	answer.TurnID, answer.AskID, answer.PayloadHash = strconv.FormatInt(a.turn, 10), a.id, a.hash
	return answer
}

// checkAsks sends the agent the answers to its questions that have ended, and finds out whether it waits for others.
func (r *run) checkAsks() {
	for _, id := range slices.Sorted(maps.Keys(r.asks.open)) {
		answer, ended, err := r.m.asks.outcome(id)
		if err != nil {
			return // the next sweep looks again
		}
		if ended {
			r.env.log.Info("answer sent to agent", "run", r.row.ID, "turn", r.asks.open[id].turn, "ask", id, "reason",
				answer.Reason)
			r.agent.answer(r.asks.close(id, answer))
		}
	}
	turns, err := rows.RunAsking(r.env.ctx, r.env.st.Reader, r.row.ID)
	if err == nil {
		r.setWaiting(turns)
	}
}

// outcome is the agent's answer to a question that has ended or is deleted.
func (a *Asks) outcome(id int64) (answer agentproto.Answer, ended bool, err error) {
	expired := agentproto.Answer{Reason: agentproto.AskExpired}
	stored, err := a.env.st.Ask(a.env.ctx, id)
	switch {
	case err != nil:
		return answer, false, err
	case stored == nil:
		return expired, true, nil
	case stored.State == msg.AskOpen:
		return answer, false, nil
	case stored.State == msg.AskAnswered:
		return agentproto.Answer{Option: stored.Option, Reason: agentproto.AskAnswered, By: stored.AnsweredBy}, true,
			nil
	}
	why, err := rows.AskLost(a.env.ctx, a.env.st.Reader, stored)
	if why != "" {
		return agentproto.Answer{Reason: agentproto.AskRefused, Problem: why}, true, err
	}
	return expired, true, err
}

// setWaiting keeps the turns that wait for users. While there are some, the run uses no slot and no time.
func (r *run) setWaiting(turns []int64) {
	r.progress.setWaiting(turns, r.asks.waiting)
	if !r.asks.setWaiting(turns) {
		return
	}
	waits := len(turns) > 0
	if !waits {
		r.agent.resetDeadline()
	}
	r.m.sched.do(func(q *queue.GroupQueue) queue.Actions { return q.Waits(r.row.ID, waits) })
}

// Asks are the questions that agents ask users. Its methods may be called from any goroutine.
type Asks struct {
	env     *env
	groups  *groups
	live    *liveRuns
	started int64 // unix ms

	mu      sync.Mutex
	changed chan struct{} // closed when a question has ended, or one was asked
}

// notifyRuns makes runs look at their questions: one has ended, or was asked.
func (a *Asks) notifyRuns() {
	a.live.signal(ctlAsks)
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.changed)
	a.changed = make(chan struct{})
}

// AwaitAsk waits until a question has ended. It returns the error of ctx if that ends first.
func (a *Asks) AwaitAsk(ctx context.Context, id int64) (*msg.Ask, error) {
	look := time.NewTicker(askLookInterval)
	defer look.Stop()
	for {
		changed := a.change()
		asked, err := a.env.st.Ask(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case asked == nil:
			return nil, fmt.Errorf("question %d is deleted", id)
		case asked.State != msg.AskOpen:
			return asked, nil
		}
		select {
		case <-changed:
		case <-look.C: // its turn may have ended
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// change returns a channel that is closed when a question has ended, or one was asked.
func (a *Asks) change() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// Ask stores a question of a turn, unless there is a problem with it, and returns it as it is stored: one that was
// asked before may have been answered. redact hides secrets in its texts.
func (a *Asks) Ask(t *msg.Turn, q *rows.Question, problem error, redact func(string) string) (asked *msg.Ask,
	err error) {
	if problem != nil {
		return nil, problem
	}
	if t.WorksForGroup() || msg.NoUsers(t.ChatJID) {
		return nil, fmt.Errorf("the turn works for another group, or for a hook: %w", rows.ErrNoUser)
	}
	if err := show(q, redact); err != nil {
		return nil, err
	}
	if q.Who, q.Name, err = a.whoMay(t, q.PayloadHash != "", q.About); err != nil {
		return nil, err
	}
	var refused error
	err = a.env.persist(a.env.ctx, func(tx *store.Tx) (err error) {
		now := a.env.now()
		q.ExpiresAt, refused = now+a.env.cfg.AskTimeout.Milliseconds(), nil
		asked, err = rows.PutAsk(tx, t, q, now)
		if errors.Is(err, rows.ErrNoUser) || errors.Is(err, rows.ErrTooManyAsks) { // no retry helps
			refused, err = err, nil
		}
		return err
	})
	if err = cmp.Or(err, refused); err == nil {
		a.env.log.Info("question asked", "turn", t.ID, "chat", t.ChatJID, "folder", t.Folder, "ask", asked.ID, "state",
			asked.State, "rule", asked.RuleID)
		a.notifyRuns()
	}
	return asked, err
}

// show makes the texts of a question those that users see. A permission request is shown as it is and whole, or not
// asked.
func show(q *rows.Question, redact func(string) string) error {
	line, text := msg.Visible, msg.Visible
	if q.PayloadHash != "" {
		line, text = msg.ExactLine, msg.Exact
	}
	question, detail := line(redact(q.Question)), text(redact(q.Detail))
	if q.PayloadHash != "" && (len(question) > agentproto.MaxQuestion || len(detail) > agentproto.MaxDetail) {
		return agentproto.ErrTooLong
	}
	q.Question = strings.ReplaceAll(shorten(question, agentproto.MaxQuestion), "\n", " ")
	q.Detail = shorten(detail, agentproto.MaxDetail)
	q.Options = slices.Clone(q.Options)
	for i, option := range q.Options {
		q.Options[i] = line(redact(option))
	}
	q.Allow = line(redact(q.Allow))
	return nil
}

// shorten cuts a text to a number of bytes, and says how many are missing.
func shorten(text string, limit int) string {
	kept := agentproto.Truncate(text, limit)
	if missing := len(text) - len(kept); missing > 0 {
		return fmt.Sprintf("%s\n[%d more bytes, which are not shown]", kept, missing)
	}
	return kept
}

// whoMay resolves who may answer a question of a turn, and by which name its agent asks. about is what a permission
// request is about: of those whose role is limited, only some may answer it.
func (a *Asks) whoMay(t *msg.Turn, permission bool, about groupconfig.Subject) (who msg.Who, name string, err error) {
	config, problems, err := a.groups.config(t.Folder)
	if err != nil {
		return who, "", err
	}
	name = cmp.Or(config.AssistantName, a.env.cfg.Defaults.AssistantName)
	approvers := config.Roles.Approve.For(about)
	if problems != nil { // then operators alone
		approvers = groupconfig.Role{}
	}
	kind, err := rows.ChatKind(a.env.ctx, a.env.st.Reader, t.ChatJID)
	if err != nil {
		return who, "", err
	}
	asker, err := a.env.st.Message(a.env.ctx, t.TriggerMessageID)
	switch {
	case err != nil:
		return who, "", err
	case about.Host != "" && asker != nil && asker.Source == msg.SourceReminder:
		return who, "", fmt.Errorf("a reminder began this turn, and users may not be there: %w", rows.ErrNoUser)
	case permission && (approvers != nil || kind != msg.ChatDM):
		who = a.env.holders(t.ChatJID, approvers, msg.WhoApprovers)
		if about.Host != "" && kind == msg.ChatDM && asker != nil && !asker.IsBot && !who.May(asker.Sender) {
			who.Senders = nil // they would not see it
		}
		return who, name, nil
	case kind == msg.ChatDM:
		return msg.Who{Everyone: true}, name, nil
	case asker == nil || asker.Direction != msg.In:
	case asker.Sender == msg.WebOperator: // which is each user of the web chat
		return msg.Who{Everyone: true}, name, nil
	case !asker.IsBot && asker.Sender != "":
		return msg.Who{Senders: []string{asker.Sender}, Label: cmp.Or(asker.SenderName, asker.Sender)}, name, nil
	case asker.Source == msg.SourceReminder && msg.FamilyOf(asker.OnBehalfOf) == msg.FamilyOf(t.ChatJID):
		return msg.Who{Senders: []string{asker.OnBehalfOf}, Label: msg.WhoReminds}, name, nil
	}
	return OperatorsOf(a.env.operators(), t.ChatJID), name, err
}

// holders are operators, and those who have a role of a chat's group. title is what those are called.
func (e *env) holders(chatJID string, role groupconfig.Role, title string) msg.Who {
	if role.Everyone() {
		return msg.Who{Everyone: true}
	}
	who := OperatorsOf(e.operators(), chatJID)
	if role.Admins() {
		kind, err := rows.ChatKind(e.ctx, e.st.Reader, chatJID)
		who.Admins = err == nil && (kind == msg.ChatGroup || kind == msg.ChatChannel)
	}
	who.Label = role.Words(title, func(sender string) string {
		name, _ := e.st.SenderName(e.ctx, sender) // the id stands beside it
		return name
	})
	for _, sender := range role.Senders() {
		if msg.FamilyOf(sender) == msg.FamilyOf(chatJID) { // others cannot answer there
			who.Senders = append(who.Senders, sender)
		}
	}
	return who
}

// operators are those of now; of OPERATORS alone while the database cannot be read, where no question is stored either.
func (e *env) operators() map[string]bool {
	all, _ := e.st.Operators(e.ctx, e.cfg.Operators)
	return all
}

// OperatorsOf are the operators who may answer a question in a chat.
func OperatorsOf(operators map[string]bool, chatJID string) msg.Who {
	who := msg.Who{Label: msg.WhoOperators}
	for _, sender := range slices.Sorted(maps.Keys(operators)) {
		if operators[sender] && msg.FamilyOf(sender) == msg.FamilyOf(chatJID) {
			who.Senders = append(who.Senders, sender)
		}
	}
	if msg.FamilyOf(chatJID) == msg.PlatformWeb {
		who.Senders = append(who.Senders, msg.WebOperator)
	}
	return who
}

// expire ends questions whose time is over, or that could not be delivered, until ctx ends.
func (a *Asks) expire(ctx context.Context) {
	ticks := time.NewTicker(askExpiryInterval)
	defer ticks.Stop()
	for {
		a.env.guard("ending questions", func() { a.expireDue(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (a *Asks) expireDue(ctx context.Context) {
	due, err := rows.AsksDue(ctx, a.env.st.Reader, a.env.now())
	if err != nil || len(due) == 0 {
		return // the next tick looks again
	}
	ended := false
	for _, ask := range due {
		if a.answersWait(ctx, ask) {
			continue
		}
		if err := a.env.st.Write(ctx, func(tx *store.Tx) error {
			return rows.ExpireAsk(tx, ask.ID, a.env.now())
		}); err != nil {
			if ctx.Err() == nil {
				a.env.log.Warn("question not ended; retrying", "ask", ask.ID, "turn", ask.TurnID, "err", err)
			}
			continue
		}
		a.env.log.Info("question expired", "ask", ask.ID, "turn", ask.TurnID)
		ended = true
	}
	if ended {
		a.notifyRuns()
	}
}

// answersWait reports whether answers to a question that came in time may be undecided, as after a restart.
func (a *Asks) answersWait(ctx context.Context, ask *msg.Ask) bool {
	now := a.env.now()
	if over := now - max(ask.ExpiresAt, a.started); over >= answerGrace.Milliseconds() || over < 0 {
		return false
	}
	row, err := a.env.st.Message(ctx, ask.MessageID)
	if err != nil || row == nil {
		return err != nil
	}
	undecided, err := rows.Undecided(ctx, a.env.st.Reader, row.ChatJID, 0, 1)
	return err != nil || len(undecided) > 0
}
