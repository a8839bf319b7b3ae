package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

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

// ask asks a question of the agent. One that cannot be asked is answered at once: the agent waits for it.
func (r *run) ask(e *agentproto.Event) {
	t := r.addressee(e.TurnID)
	if t == nil || !r.isOpen(t.ID) {
		r.m.log.Warn("question refused: it is of no open turn", "run", r.row.ID, "turn", agentproto.Truncate(e.TurnID, 40), "ask", e.Ask.ID)
		r.sendAnswer(agentproto.Answer{
			TurnID: e.TurnID, AskID: e.Ask.ID, PayloadHash: e.Ask.PayloadHash, Reason: agentproto.AskRefused, Problem: "it is of no open turn",
		})
		return
	}
	a := asking{turn: t.ID, id: e.Ask.ID, hash: e.Ask.PayloadHash}
	r.guard(t, func() {
		stored, err := r.m.Ask(t, &store.Question{
			AskID: e.Ask.ID, Question: e.Ask.Question, Detail: e.Ask.Detail, Options: e.Ask.Options, PayloadHash: e.Ask.PayloadHash,
		}, e.Ask.Check(), r.setup.redact)
		switch {
		case err == nil:
			r.asks[stored.ID] = a
			r.checkAsks()
		case r.m.ctx.Err() == nil:
			r.m.log.Warn("question refused", "run", r.row.ID, "turn", t.ID, "chat", t.ChatJID, "ask", e.Ask.ID, "err", err)
			r.sendAnswer(a.answer(agentproto.Answer{Reason: agentproto.AskRefused, Problem: err.Error()}))
		}
	})
}

// answer completes an answer with what names its question.
func (a asking) answer(answer agentproto.Answer) agentproto.Answer {
	answer.TurnID, answer.AskID, answer.PayloadHash = strconv.FormatInt(a.turn, 10), a.id, a.hash
	return answer
}

func (r *run) sendAnswer(a agentproto.Answer) {
	if !r.inputClosed {
		r.send(a)
	}
}

// checkAsks sends the agent the answers to its questions that have ended, and finds out whether it waits for others.
func (r *run) checkAsks() {
	for _, id := range slices.Sorted(maps.Keys(r.asks)) {
		stored, err := r.m.st.Ask(r.m.ctx, id)
		if err != nil {
			return // the next sweep looks again
		}
		if stored != nil && stored.State == msg.AskOpen {
			continue
		}
		answer, err := r.outcome(stored)
		if err != nil {
			return
		}
		r.m.log.Info("answer sent to agent", "run", r.row.ID, "turn", r.asks[id].turn, "ask", id, "reason", answer.Reason)
		r.sendAnswer(r.asks[id].answer(answer))
		delete(r.asks, id)
	}
	turns, err := r.m.st.RunAsking(r.m.ctx, r.row.ID)
	if err == nil {
		r.setWaiting(turns)
	}
}

// outcome is what an agent gets for a question that has ended; nil is one that was deleted.
func (r *run) outcome(a *msg.Ask) (answer agentproto.Answer, err error) {
	expired := agentproto.Answer{Reason: agentproto.AskExpired}
	switch {
	case a == nil:
		return expired, nil
	case a.State == msg.AskAnswered:
		return agentproto.Answer{Option: a.Option, Reason: agentproto.AskAnswered, By: a.AnsweredBy}, nil
	}
	lost, err := r.m.st.AskLost(r.m.ctx, a)
	if lost {
		return agentproto.Answer{Reason: agentproto.AskRefused, Problem: "it could not be delivered, so no user has read it"}, err
	}
	return expired, err
}

// setWaiting keeps the turns that wait for users. While there are some, the run uses no slot and no time.
func (r *run) setWaiting(turns []int64) {
	for id, p := range r.progress {
		switch waits := slices.Contains(turns, id); {
		case waits:
			p.row.State = agentproto.StatusRequiresAction
		case p.row.State == agentproto.StatusRequiresAction && slices.Contains(r.waiting, id):
			p.row.State = agentproto.StatusRunning
		}
	}
	was := len(r.waiting) > 0
	r.waiting = turns
	if waits := len(turns) > 0; waits != was {
		if !waits {
			r.deadline.Reset(r.timeout())
		}
		r.m.schedule(func(q *queue.GroupQueue) queue.Actions { return q.Waits(r.row.ID, waits) })
	}
}

// AskEnded makes runs look at their questions: one has ended, or was asked.
func (m *Manager) AskEnded() {
	for _, r := range m.liveRuns(func(*run) bool { return true }) {
		r.control(ctlAsks)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.asksChanged)
	m.asksChanged = make(chan struct{})
}

// AwaitAsk waits until a question has ended. It returns the error of ctx if that ends first.
func (m *Manager) AwaitAsk(ctx context.Context, id int64) (*msg.Ask, error) {
	look := time.NewTicker(askLookInterval)
	defer look.Stop()
	for {
		changed := m.asksChange()
		a, err := m.st.Ask(ctx, id)
		switch {
		case err != nil:
			return nil, err
		case a == nil:
			return nil, fmt.Errorf("question %d is deleted", id)
		case a.State != msg.AskOpen:
			return a, nil
		}
		select {
		case <-changed:
		case <-look.C: // its turn may have ended
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// asksChange returns a channel that is closed when a question has ended, or one was asked.
func (m *Manager) asksChange() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asksChanged
}

// Ask stores a question of a turn, unless there is a problem with it, and returns it as it is stored: one that was asked
// before may have been answered. redact hides secrets in its texts.
func (m *Manager) Ask(t *msg.Turn, q *store.Question, problem error, redact func(string) string) (a *msg.Ask, err error) {
	if problem != nil {
		return nil, problem
	}
	if t.WorksForGroup() || msg.FamilyOf(t.ChatJID) == msg.PlatformGroup {
		return nil, fmt.Errorf("the turn works for another group: %w", store.ErrNoUser)
	}
	q.Question = agentproto.Truncate(msg.Visible(redact(q.Question)), agentproto.MaxQuestion)
	q.Detail = shorten(msg.Visible(redact(q.Detail)), agentproto.MaxDetail)
	options := slices.Clone(q.Options)
	for i := range options {
		options[i] = msg.Visible(redact(options[i]))
	}
	q.Options = options
	if msg.IsBudget(q.AskID) { // an id of gated's own questions
		q.AskID = "agent-" + q.AskID
	}
	if q.Who, q.Name, err = m.whoMay(t, q.PayloadHash != ""); err != nil {
		return nil, err
	}
	var refused error
	err = m.persist(m.ctx, func(tx *store.Tx) (err error) {
		now := m.now()
		q.ExpiresAt, refused = now+m.askTimeout().Milliseconds(), nil
		a, err = tx.PutAsk(t, q, now)
		if errors.Is(err, store.ErrNoUser) || errors.Is(err, store.ErrTooManyAsks) { // no retry helps
			refused, err = err, nil
		}
		return err
	})
	if err = cmp.Or(err, refused); err == nil {
		m.log.Info("question asked", "turn", t.ID, "chat", t.ChatJID, "folder", t.Folder, "ask", a.ID, "state", a.State)
		m.AskEnded()
	}
	return a, err
}

func (m *Manager) askTimeout() time.Duration { return cmp.Or(m.cfg.AskTimeout, 10*time.Minute) }

// shorten cuts a text at most bytes, and says what is missing: a user must not allow what is not shown.
func shorten(text string, limit int) string {
	kept := agentproto.Truncate(text, limit)
	if missing := len(text) - len(kept); missing > 0 {
		return fmt.Sprintf("%s\n[%d more bytes, which are not shown]", kept, missing)
	}
	return kept
}

// whoMay resolves who may answer a question of a turn, and by which name its agent asks.
func (m *Manager) whoMay(t *msg.Turn, permission bool) (who msg.Who, name string, err error) {
	config, problems, err := m.groupConfig(t.Folder)
	if err != nil {
		return who, "", err
	}
	name = cmp.Or(config.AssistantName, m.cfg.Defaults.AssistantName)
	approvers := config.Approvers
	if problems != nil { // then operators alone
		approvers = groupconfig.Approvers{}
	}
	kind, err := m.st.ChatKind(m.ctx, t.ChatJID)
	if err != nil {
		return who, "", err
	}
	if permission {
		return m.approvers(t.ChatJID, approvers, kind), name, nil
	}
	if kind == msg.ChatDM {
		return msg.Who{Everyone: true}, name, nil
	}
	asker, err := m.st.Message(m.ctx, t.TriggerMessageID)
	if err == nil && asker != nil && asker.Direction == msg.In && !asker.IsBot && asker.Sender != "" {
		return msg.Who{Senders: []string{asker.Sender}, Label: cmp.Or(asker.SenderName, asker.Sender)}, name, nil
	}
	return m.approvers(t.ChatJID, groupconfig.Approvers{}, kind), name, err
}

// approvers are operators and those whom a group's configuration names. In a direct message the default is its user.
func (m *Manager) approvers(chatJID string, approvers groupconfig.Approvers, kind msg.ChatKind) msg.Who {
	if approvers.Everyone() || approvers == nil && kind == msg.ChatDM {
		return msg.Who{Everyone: true}
	}
	who := OperatorsOf(m.operators(), chatJID)
	if len(approvers) > 0 {
		who.Label = msg.WhoApprovers
		who.Senders = append(who.Senders, approvers...)
	}
	return who
}

// operators are those of now; of OPERATORS alone while the database cannot be read, where no question is stored either.
func (m *Manager) operators() map[string]bool {
	all, _ := m.st.Operators(m.ctx, m.cfg.Operators)
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

// expireAsks ends questions whose time is over, or that could not be delivered, until ctx ends.
func (m *Manager) expireAsks(ctx context.Context) {
	ticks := time.NewTicker(askExpiryInterval)
	defer ticks.Stop()
	for {
		m.guard("ending questions", func() { m.expireDueAsks(ctx) })
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func (m *Manager) expireDueAsks(ctx context.Context) {
	due, err := m.st.AsksDue(ctx, m.now())
	if err != nil || len(due) == 0 {
		return // the next tick looks again
	}
	ended := false
	for _, a := range due {
		if m.answersWait(ctx, a) {
			continue
		}
		if err := m.st.Write(ctx, func(tx *store.Tx) error { return tx.ExpireAsk(a.ID, m.now()) }); err != nil {
			if ctx.Err() == nil {
				m.log.Warn("question not ended; retrying", "ask", a.ID, "turn", a.TurnID, "err", err)
			}
			continue
		}
		m.log.Info("question expired", "ask", a.ID, "turn", a.TurnID)
		ended = true
	}
	if ended {
		m.AskEnded()
	}
}

// answersWait reports whether answers to a question that came in time may be undecided, as after a restart.
func (m *Manager) answersWait(ctx context.Context, a *msg.Ask) bool {
	now := m.now()
	if over := now - max(a.ExpiresAt, m.started); over >= answerGrace.Milliseconds() || over < 0 {
		return false
	}
	row, err := m.st.Message(ctx, a.MessageID)
	if err != nil || row == nil {
		return err != nil
	}
	undecided, err := m.st.Undecided(ctx, row.ChatJID, 0, 1)
	return err != nil || len(undecided) > 0
}
