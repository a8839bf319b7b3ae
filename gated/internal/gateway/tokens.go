package gateway

import (
	"context"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// pinning is what a bare token asks for. An empty name clears the pin.
type pinning struct {
	layers.Sticky
	folder string
}

// pinOf parses a row that is one bare token. An unknown name is plain text, as is
// every token of a sender whom builtin:drop ignores; a pin can be cleared even if
// its group is not registered any more.
func (d *decider) pinOf(ctx context.Context, r *row) (p pinning, ok bool) {
	if !r.isText() || r.command != nil || !r.known || r.answer.Reason == msg.ReasonBuiltinDrop {
		return p, false
	}
	if p.Sticky, ok = layers.ParseSticky(r.Content); !ok {
		return p, false
	}
	pinned := d.batch.info.StickyGroup
	if p.Sigil == layers.TopicSigil {
		pinned = d.batch.info.StickyTopic
	}
	switch {
	case p.Name == "":
		return p, r.answer.Home != "" || pinned != ""
	case p.Sigil == layers.TopicSigil:
		return p, r.answer.Home != ""
	}
	p.folder, ok = layers.ResolveName(p.Name, r.answer.Home, d.isOperator(r), d.g.registered(ctx))
	return p, ok && r.answer.Home != ""
}

// pin acts on a row that is one bare token, and reports whether it is one.
func (d *decider) pin(ctx context.Context, r *row) bool {
	p, ok := d.pinOf(ctx, r)
	if !ok {
		return false
	}
	d.releaseBefore(ctx)
	if p.Sigil == layers.TopicSigil {
		d.pinTopic(r, p.Name)
	} else {
		d.pinGroup(r, p.Name, p.folder)
	}
	d.reload = true
	return true
}

// releaseBefore routes the held rows before the chat's pins or session change.
func (d *decider) releaseBefore(ctx context.Context) {
	d.release(ctx)
	d.storeTurns()
}

func (d *decider) pinTopic(r *row, name string) {
	topic, reason, ack := "", msg.ReasonStickyReset, "topic reset to default"
	if name != "" {
		topic, reason, ack = "#"+name, msg.ReasonStickyTopic, "topic → "+name
	}
	d.decide(r, msg.Sticky, reason, "", d.now)
	d.step(func(tx *store.Tx) error { return tx.PinTopic(r.ChatJID, topic) })
	d.replyTo(r, msg.SourceCommand, ack, d.now)
}

func (d *decider) pinGroup(r *row, name, folder string) {
	reason, ack := msg.ReasonStickyReset, "routing reset to default"
	if folder != "" {
		reason, ack = msg.ReasonStickyGroup, "routing → "+name
	}
	d.decide(r, msg.Sticky, reason, "", d.now)
	d.step(func(tx *store.Tx) error { return tx.PinGroup(r.ChatJID, folder, r.ReceivedAt) })
	d.replyTo(r, msg.SourceCommand, ack, d.now)
}

func (d *decider) isOperator(r *row) bool { return d.g.isOperator(r) }

func (g *Gateway) isOperator(r *row) bool {
	platform, _ := msg.SplitJID(r.ChatJID)
	return g.cfg.Operators[r.Sender] || platform == msg.PlatformWeb && r.Sender == msg.WebOperator
}

// prefixTarget is the group or topic that a row names.
type prefixTarget struct {
	folder string
	topic  string // "#name", "" for the row's own
	rest   string
	reason msg.Reason
}

// findPrefix parses the token a row begins with. A name of no group, or of one out
// of reach, is plain text, as is every token in a chat without a group.
func (g *Gateway) findPrefix(ctx context.Context, r *row) *prefixTarget {
	if !r.isText() && (r.change == nil || !r.change.fires) || r.command != nil || r.answer.Home == "" {
		return nil
	}
	p, ok := layers.ParsePrefix(r.Content)
	if !ok {
		return nil
	}
	if p.Sigil == layers.TopicSigil {
		return &prefixTarget{folder: r.answer.Home, topic: "#" + p.Name, rest: p.Rest, reason: msg.ReasonPrefixTopic}
	}
	folder, ok := layers.ResolveName(p.Name, r.answer.Home, g.isOperator(r), g.registered(ctx))
	if !ok {
		return nil
	}
	return &prefixTarget{folder: folder, rest: p.Rest, reason: msg.ReasonPrefixGroup}
}

// derive inserts a row without the prefix and puts it into a turn of the group or topic named.
func (d *decider) derive(ctx context.Context, r *row) {
	e := d.entry(ctx, r, r.prefix.reason)
	own := r.Topic
	if r.prefix.topic != "" {
		own = r.prefix.topic
		e.topic, e.place = d.topicOf(ctx, r.Message, own), msg.Place(r.ThreadID, own)
		if r.answer.OpensThread {
			d.openThread(e, r.answer.ThreadID)
		}
	}
	e.folder = r.prefix.folder
	e.derived = derived(r.Message, r.prefix.rest, own, msg.SourcePrefix, d.now)
	d.decide(r, msg.Prefix, r.prefix.reason, r.prefix.folder, d.now)
	d.turns.add(e)
}

// derived is a row made from another: the same sender's text in topic.
func derived(m *msg.Message, text, topic, source string, now int64) *msg.Message {
	return &msg.Message{
		ChatJID: m.ChatJID, Direction: msg.In, Sender: m.Sender, SenderName: m.SenderName, IsBot: m.IsBot,
		Verb: m.Verb, Content: text, Attachments: m.Attachments, Topic: topic, ThreadID: m.ThreadID,
		ReplyToID: m.ReplyToID, TargetID: m.TargetID, Addressed: m.Addressed,
		Timestamp: m.Timestamp, ReceivedAt: m.ReceivedAt, Source: source, DerivedFrom: m.ID,
	}
}
