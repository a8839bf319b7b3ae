package gateway

import (
	"context"

	"arizuko/gated/internal/queue"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Limits of one turn; further rows make another turn after it.
const (
	turnRows  = 100
	turnBytes = 256 << 10
)

// entry is a row on its way into a turn.
type entry struct {
	row     *row
	reason  msg.Reason
	derived *msg.Message // takes the place of the row that it was derived from

	folder, topic, threadID, place string
	surface                        string
	ceiling                        int
	kind                           msg.TurnKind
	chatJID                        string // where the answer goes
	replyTo                        string
	depth                          int
	root                           int64
	claims                         bool
	opens                          bool // the answer begins the thread
	bind                           bool // bind the thread to the topic
}

// entry makes an entry for a triggering row with routd's address.
func (d *decider) entry(ctx context.Context, r *row, reason msg.Reason) *entry {
	e := &entry{
		row: r, reason: reason, folder: r.answer.Folder, threadID: r.ThreadID, place: place(r.Message),
		surface: r.answer.Surface, ceiling: r.answer.Ceiling, kind: msg.Conversation, chatJID: r.ChatJID,
		replyTo: r.post,
	}
	verb := r.verb()
	e.claims = verb == msg.VerbMention || verb == msg.VerbReply
	if r.change != nil {
		e.reason = msg.ReasonEditAddressed
	}
	e.topic = d.topicOf(ctx, r.Message, r.Topic)
	if r.answer.OpensThread {
		d.openThread(e, r.answer.ThreadID)
	}
	return e
}

// openThread moves an entry into the thread that its answer begins.
func (d *decider) openThread(e *entry, threadID string) {
	e.opens, e.threadID, e.place = true, threadID, threadID
	if e.topic == "" {
		e.topic = threadID
		return
	}
	e.bind = true
	if d.bound == nil {
		d.bound = map[string]string{}
	}
	d.bound[threadID] = e.topic
}

// topicOf returns the topic in which a row with the given topic of its own runs.
func (d *decider) topicOf(ctx context.Context, m *msg.Message, own string) string {
	bound := d.bound[m.ThreadID]
	if m.ThreadID != "" && bound == "" {
		var err error
		bound, err = d.g.st.TopicOfThread(ctx, m.ChatJID, m.ThreadID)
		d.check(err)
	}
	return msg.EffectiveTopic(d.batch.info.StickyTopic, own, m.ThreadID, bound)
}

// turnBatches groups the rows of a pass into turns, in the order of each turn's
// first row.
type turnBatches struct {
	all  []*turnBatch
	open map[turnKey]*turnBatch
}

type turnKey struct {
	queue.Key
	place string
}

type turnBatch struct {
	entries []*entry
	bytes   int
}

func (t *turnBatches) add(e *entry) {
	key := turnKey{queue.Key{Folder: e.folder, ChatJID: e.chatJID, Topic: e.topic, ThreadID: e.threadID}, e.place}
	b := t.open[key]
	size := len(e.row.Content)
	if b == nil || e.kind == msg.Delegated || len(b.entries) == turnRows || b.bytes+size > turnBytes {
		b = &turnBatch{}
		t.all = append(t.all, b)
		if t.open == nil {
			t.open = map[turnKey]*turnBatch{}
		}
		t.open[key] = b
	}
	b.entries = append(b.entries, e)
	b.bytes += size
}

// claimNothing keeps these turns from opening engagement.
func (t *turnBatches) claimNothing() {
	for _, b := range t.all {
		for _, e := range b.entries {
			e.claims = false
		}
	}
}

// storeTurns adds the turns so far to the plan, and offers each to a live run of
// its conversation.
func (d *decider) storeTurns() {
	for _, b := range d.turns.all {
		t := b.turn(d.now)
		key := queue.KeyOf(t)
		var offered int64
		if t.Kind != msg.Delegated {
			offered = d.g.agents.Offer(key)
		}
		if offered != 0 {
			d.undos = append(d.undos, func() { d.g.agents.Withdraw(offered) })
		}
		d.step(func(tx *store.Tx) error { return b.store(tx, t, offered, d.now) })
		d.then(func() {
			d.g.logTurn(t, len(b.entries))
			d.g.agents.Dispatch(t, offered)
		})
		for _, e := range b.entries {
			d.counts = append(d.counts, decision{
				row: e.row.ID, entry: e, turn: t,
				Decision: store.Decision{Disposition: msg.Routed, Reason: e.reason, RoutedTo: e.folder},
			})
		}
	}
	d.turns = turnBatches{}
}

// turn makes the turn of a batch. It answers the last mention or reply, else the
// last row.
func (b *turnBatch) turn(now int64) *msg.Turn {
	e := b.trigger()
	t := &msg.Turn{
		Kind: e.kind, Folder: e.folder, ChatJID: e.chatJID, Topic: e.topic, ThreadID: e.threadID, Place: e.place,
		ReplyTo: e.replyTo, Surface: e.surface, Ceiling: e.ceiling, Depth: e.depth, RootTurnID: e.root, CreatedAt: now,
	}
	for _, e := range b.entries {
		t.ClaimsEngagement = t.ClaimsEngagement || e.claims
	}
	return t
}

func (b *turnBatch) trigger() *entry {
	last := b.entries[len(b.entries)-1]
	for _, e := range b.entries {
		if e.claims {
			last = e
		}
	}
	return last
}

// store writes the batch's derived rows, the turn, and each row's decision.
func (b *turnBatch) store(tx *store.Tx, t *msg.Turn, offered, now int64) error {
	for _, e := range b.entries {
		if e.derived != nil {
			if _, _, err := tx.PutMessage(e.derived); err != nil {
				return err
			}
		}
		if e.bind {
			if err := tx.BindThread(e.chatJID, e.threadID, e.topic); err != nil {
				return err
			}
		}
	}
	t.TriggerMessageID = b.trigger().id()
	if err := tx.PutTurn(t, offered); err != nil {
		return err
	}
	for _, e := range b.entries {
		if err := tx.Decide(e.id(), e.decision(t), now); err != nil {
			return err
		}
	}
	return tx.AttachNotes(t)
}

func (e *entry) id() int64 {
	if e.derived != nil {
		return e.derived.ID
	}
	return e.row.ID
}

// decision routes the entry's row. A row that opens a thread moves into it; others
// keep their topic.
func (e *entry) decision(t *msg.Turn) store.Decision {
	m := e.row.Message
	if e.derived != nil {
		m = e.derived
	}
	d := store.Decision{
		Disposition: msg.Routed, Reason: e.reason, RoutedTo: e.folder, TurnID: t.ID, Topic: m.Topic, ThreadID: m.ThreadID,
	}
	if e.opens {
		d.ThreadID = e.threadID
		if d.Topic == "" {
			d.Topic = e.threadID
		}
	}
	return d
}
