package decide

import (
	"cmp"
	"slices"

	"arizuko/pkg/msg"
)

// entry is a row on its way into a turn.
type entry struct {
	row    *Row
	reason msg.Reason
	derive Derive
	turn   msg.Turn // as it would be of this row alone
	called bool     // the row mentions the bot or replies to it
	opens  bool     // the answer begins the thread
	bind   bool     // bind the thread to the topic
}

// entry makes an entry for a triggering row with routd's address. A row claims
// engagement if it calls the bot, or keeps a conversation going, as no reaction does.
func (w *step) entry(r *Row, reason msg.Reason) *entry {
	e := newEntry(r, reason, r.Answer.Folder, r.place())
	e.turn.Surface, e.turn.Ceiling = r.Answer.Surface, r.Answer.Ceiling
	e.turn.ClaimsEngagement = r.called() || r.Answer.Engaged && w.f.Default.Weight(r.verb()) > 0
	if r.Kind == KindMention {
		e.reason = msg.ReasonEditAddressed
	}
	e.turn.Topic = w.topicOf(r, r.Answer.Folder, r.Topic)
	if r.Answer.OpensThread {
		w.openThread(e, r.Answer.ThreadID)
	}
	if msg.FamilyOf(r.ChatJID) == msg.PlatformHook { // a delivery is no post that an answer could reply to
		e.turn.ReplyTo = ""
		if to := r.Answer.To; to != "" {
			e.turn.ChatJID, e.turn.ThreadID = to, r.Answer.ThreadID
			e.turn.Place = msg.Place(r.Answer.ThreadID, e.turn.Topic)
		}
	}
	return e
}

// newEntry is the entry of a row whose answer goes to its own chat.
func newEntry(r *Row, reason msg.Reason, folder, place string) *entry {
	e := &entry{row: r, reason: reason, called: r.calls(), turn: msg.Turn{
		Kind: msg.Conversation, Folder: folder, ChatJID: r.ChatJID, ThreadID: r.ThreadID, Place: place, ReplyTo: r.Post,
		ClaimsEngagement: r.called(),
	}}
	if from := r.ForwardedFrom; from != nil { // an agent wrote it
		e.turn.Depth, e.turn.RootTurnID = from.Depth, from.RootTurnID
	}
	return e
}

// openThread moves an entry into the thread that its answer begins.
func (w *step) openThread(e *entry, threadID string) {
	e.opens, e.turn.ThreadID, e.turn.Place = true, threadID, threadID
	if e.turn.Topic == "" {
		e.turn.Topic = threadID
		return
	}
	e.bind = true
	w.bound[threadID] = e.turn.Topic
}

// topicOf returns the topic in which a row with the given topic of its own runs, for a
// group. Forks of other groups are none of its.
func (w *step) topicOf(r *Row, folder, own string) string {
	if own == "" || own == r.ThreadID {
		for _, f := range r.Forks {
			if f.Folder == folder {
				return cmp.Or(w.f.Chat.StickyTopic, f.RunsIn())
			}
		}
	}
	return msg.EffectiveTopic(w.f.Chat.StickyTopic, own, r.ThreadID, cmp.Or(w.bound[r.ThreadID], r.Bound))
}

// turns groups rows into turns, in the order of each turn's first row.
type turns struct {
	all  []*batch
	open map[msg.Turn]*batch // by entry.key
}

func newTurns() turns { return turns{open: map[msg.Turn]*batch{}} }

type batch struct {
	entries []*entry
	payers  []string // each once
	bytes   int
}

// key has the fields that the rows of one turn share. An escalation's answer never shares a turn with a person's row:
// the limits of delegations count from its root.
func (e *entry) key() msg.Turn {
	t := &e.turn
	return msg.Turn{Folder: t.Folder, ChatJID: t.ChatJID, Topic: t.Topic, ThreadID: t.ThreadID, Place: t.Place,
		Depth: t.Depth, RootTurnID: t.RootTurnID}
}

// joins returns the turn that takes an entry in, nil if the entry begins one.
func (t *turns) joins(e *entry) *batch {
	b := t.open[e.key()]
	if b == nil || e.turn.Kind == msg.Delegated || len(b.entries) == msg.MaxTurnRows ||
		b.bytes+len(e.row.Content) > msg.MaxTurnBytes {
		return nil
	}
	return b
}

// has reports whether an entry joins a turn for which its sender pays already.
func (t *turns) has(e *entry) bool {
	b := t.joins(e)
	return b != nil && slices.Contains(b.payers, e.row.Payer())
}

func (t *turns) add(e *entry) {
	b := t.joins(e)
	if b == nil {
		b = &batch{}
		t.all = append(t.all, b)
		t.open[e.key()] = b
	}
	b.entries = append(b.entries, e)
	if !slices.Contains(b.payers, e.row.Payer()) {
		b.payers = append(b.payers, e.row.Payer())
	}
	b.bytes += len(e.row.Content)
}

// claimNothing keeps these turns from opening engagement.
func (t *turns) claimNothing() {
	for _, b := range t.all {
		for _, e := range b.entries {
			e.called, e.turn.ClaimsEngagement = false, false
		}
	}
}

// storeTurns adds the turns so far to the effects.
func (w *step) storeTurns() {
	for _, b := range w.turns.all {
		for _, e := range b.entries {
			if e.bind {
				w.add(BindThread{Row: e.row.ID, Chat: e.turn.ChatJID, ThreadID: e.turn.ThreadID, Topic: e.turn.Topic})
			}
		}
		w.add(b.effect(w.f.Now))
	}
	w.turns = newTurns()
}

// effect makes the turn of a batch. It answers the last row that calls the bot,
// else the last row.
func (b *batch) effect(now int64) StoreTurn {
	s := StoreTurn{Trigger: len(b.entries) - 1}
	claims := false
	for i, e := range b.entries {
		if e.called {
			s.Trigger = i
		}
		claims = claims || e.turn.ClaimsEngagement
		s.Entries = append(s.Entries, e.stored())
	}
	s.Turn = b.entries[s.Trigger].turn
	s.Turn.ClaimsEngagement, s.Turn.CreatedAt = claims, now
	return s
}

// stored is the entry as an effect. A row that opens a thread moves into it; others
// keep their topic.
func (e *entry) stored() Entry {
	s := Entry{
		Row: e.row.ID, Derive: e.derive, Reason: e.reason, Topic: e.row.Topic, ThreadID: e.row.ThreadID,
		Files: e.row.PendingFiles > 0,
	}
	if e.derive.Source != "" {
		s.Topic = e.derive.Topic
	}
	if e.opens {
		s.ThreadID = e.turn.ThreadID
		if s.Topic == "" {
			s.Topic = e.turn.ThreadID
		}
	}
	return s
}
