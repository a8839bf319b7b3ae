package gateway

import (
	"cmp"
	"context"
	"maps"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// runCommand answers a command at once: it waits neither for the gate, nor for
// the rows before it, nor for a running turn.
func (d *decider) runCommand(ctx context.Context, r *row) {
	cmd := r.command
	home := ""
	switch cmd.Audience {
	case msg.ForOperators:
		if !d.isOperator(r) {
			d.answer(r, "Only operators may do that.")
			return
		}
	case msg.ForRouted:
		var problem string
		if home, problem = d.home(ctx, r); home == "" {
			d.answer(r, problem)
			return
		}
	}
	switch cmd.Name {
	case msg.CommandPing:
		d.answer(r, "pong")
	case msg.CommandChatID:
		d.answer(r, r.ChatJID)
	case msg.CommandHelp:
		d.answer(r, layers.HelpText())
	case msg.CommandNew:
		d.newSession(ctx, r, home)
	case msg.CommandStop:
		d.stop(ctx, r, home)
	default:
		d.askService(ctx, r)
	}
}

// answer decides a command's row and stores the reply.
func (d *decider) answer(r *row, text string) {
	d.decide(r, msg.Command, msg.ReasonCommand, "", d.now)
	d.replyTo(r, msg.SourceCommand, text, d.now)
}

// home returns the group that a command is for, or the text to reply if there is
// none. While routd is down it is the group that answered here last.
func (d *decider) home(ctx context.Context, r *row) (folder, problem string) {
	if r.known && r.answer.Error == "" {
		return r.answer.Home, "This chat is not connected to a group yet."
	}
	last, err := d.g.st.LastHome(ctx, r.ChatJID)
	d.check(err)
	return cmp.Or(d.batch.info.StickyGroup, msg.AddressedFolder(r.ChatJID), last),
		"Routing (routd) is not answering, so I don't know which group this chat belongs to. Try again in a moment."
}

// newSession drops the session of a topic and makes a turn of the text after
// the command.
func (d *decider) newSession(ctx context.Context, r *row, folder string) {
	d.releaseBefore(ctx)
	topic, ack := r.command.Topic, "new session in "+r.command.Topic
	if topic == "" {
		topic, ack = d.topicOf(ctx, r.Message, r.Topic), "new session"
	}
	d.decide(r, msg.Command, msg.ReasonCommand, folder, d.now)
	var reset int64
	d.step(func(tx *store.Tx) (err error) {
		reset, err = tx.ResetSession(folder, topic, d.now)
		return err
	})
	d.then(func() {
		if reset != 0 {
			d.g.agents.Drain(reset)
		}
	})
	if r.command.Rest == "" {
		d.replyTo(r, msg.SourceCommand, ack, d.now)
	} else {
		d.turns.add(d.newSessionEntry(r, folder, topic))
	}
	d.reload = true
}

// newSessionEntry is the entry for the text after /new.
func (d *decider) newSessionEntry(r *row, folder, topic string) *entry {
	own := cmp.Or(r.command.Topic, r.Topic)
	e := &entry{
		row: r, reason: msg.ReasonReset, derived: derived(r.Message, r.command.Rest, own, msg.SourceCommand, d.now),
		folder: folder, topic: topic, threadID: r.ThreadID, place: msg.Place(r.ThreadID, own),
		kind: msg.Conversation, chatJID: r.ChatJID,
		replyTo: r.post, claims: r.Verb == msg.VerbMention || r.Verb == msg.VerbReply,
	}
	if r.post != "" && msg.OpensThread(r.ChatJID, d.batch.info.Kind, r.Verb, r.ThreadID) {
		d.openThread(e, r.post)
	}
	surface := msg.SurfaceOf(r.ChatJID, d.batch.info.Kind, e.threadID)
	e.surface, e.ceiling = surface.Name, surface.Ceiling
	return e
}

// stop cancels the turns of this chat and drops the rows it holds: in a web chat
// only those of the command's topic.
func (d *decider) stop(ctx context.Context, r *row, folder string) {
	var topic *string
	if platform, _ := msg.SplitJID(r.ChatJID); platform == msg.PlatformWeb {
		active := d.topicOf(ctx, r.Message, r.Topic)
		topic = &active
	}
	var cancelled []*msg.Turn
	pinned := d.batch.info.StickyTopic
	skipped := map[int64]bool{}
	maps.Copy(skipped, d.batch.chat.skipped)
	for _, id := range d.deferred {
		skipped[id] = true
	}
	held := func(m *msg.Message) bool {
		return m.ID < r.ID && !skipped[m.ID] && (topic == nil || msg.EffectiveTopic(pinned, m.Topic, "", "") == *topic)
	}
	d.step(func(tx *store.Tx) (err error) {
		stopped := store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped}
		if err = tx.DecideAll(r.ChatJID, held, stopped, d.now); err != nil {
			return err
		}
		cancelled, err = tx.CancelChatTurns(r.ChatJID, topic, d.now)
		return err
	})
	d.answer(r, "stopped")
	d.then(func() { d.g.agents.Stop(folder, topic, cancelled) })
	d.reload = true
}
