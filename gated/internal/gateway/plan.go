package gateway

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// plan is what a pass decides about one chat: writes that succeed or fail
// together, and what to do after they have succeeded.
type plan struct {
	chat     *chat
	steps    []func(*store.Tx) error
	after    []func()
	undos    []func()
	counts   []decision
	decided  map[int64]bool // rows
	deferred []int64        // rows that other services will decide
	first    *row
	err      error

	// the chat's state afterwards
	gate           impulseGate
	mustRelease    bool
	due            int64
	awaitsFiles    bool
	awaitsRoutd    bool
	unrouted       bool
	scannedThrough int64
	requeue        bool
}

func (p *plan) step(fn func(*store.Tx) error) { p.steps = append(p.steps, fn) }
func (p *plan) then(fn func())                { p.after = append(p.after, fn) }

func (p *plan) write(tx *store.Tx) error {
	for _, step := range p.steps {
		if err := step(tx); err != nil {
			return err
		}
	}
	return nil
}

// undo withdraws offers made to agents.
func (p *plan) undo() {
	for _, fn := range p.undos {
		fn()
	}
	p.undos = nil
}

// decide gives a row its disposition and keeps its topic and thread.
func (p *plan) decide(r *row, disposition msg.Disposition, reason msg.Reason, routedTo string, now int64) {
	p.decideAs(r.ID, store.Decision{
		Disposition: disposition, Reason: reason, RoutedTo: routedTo, Topic: r.Topic, ThreadID: r.ThreadID,
	}, now)
}

func (p *plan) decideAs(id int64, d store.Decision, now int64) {
	if p.decided == nil {
		p.decided = map[int64]bool{}
	}
	p.decided[id] = true
	p.counts = append(p.counts, decision{row: id, Decision: d})
	p.step(func(tx *store.Tx) error { return tx.Decide(id, d, now) })
}

// replyTo stores a reply to a row in its chat and thread.
func (p *plan) replyTo(r *row, source, text string, now int64) {
	p.step(func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(replyMessage(r.Message, source, text, now))
		return err
	})
}

// replyMessage is the gateway's own reply to a row.
func replyMessage(m *msg.Message, source, text string, now int64) *msg.Message {
	return &msg.Message{
		ChatJID: m.ChatJID, Direction: msg.Out, IsBot: true, Content: text, ReplyToID: m.PlatformID,
		Topic: place(m), ThreadID: m.ThreadID, Timestamp: now, ReceivedAt: now,
		Source: source, OutState: store.OutStateOf(m.ChatJID),
	}
}
