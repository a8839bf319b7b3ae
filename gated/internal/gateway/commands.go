package gateway

import (
	"cmp"
	"maps"

	"arizuko/gated/internal/layers"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// runCommand answers a command. It waits for nothing: neither for the gate,
// nor for rows before it, nor for a running turn.
func (j *judgement) runCommand(r *row) {
	cmd := r.command
	home := ""
	switch cmd.Audience {
	case msg.ForOperators:
		if !j.operator(r) {
			j.answer(r, "Only operators may do that.")
			return
		}
	case msg.ForRouted:
		var problem string
		if home, problem = j.home(r); home == "" {
			j.answer(r, problem)
			return
		}
	}
	switch cmd.Name {
	case msg.CommandPing:
		j.answer(r, "pong")
	case msg.CommandChatID:
		j.answer(r, r.ChatJID)
	case msg.CommandHelp:
		j.answer(r, layers.HelpText())
	case msg.CommandNew:
		j.newSession(r, home)
	case msg.CommandStop:
		j.stop(r, home)
	default:
		j.askService(r)
	}
}

// answer decides a command's row and says what came of it.
func (j *judgement) answer(r *row, text string) {
	j.decide(r, msg.Command, msg.ReasonCommand, "", j.now)
	j.say(r, msg.SourceCommand, text, j.now)
}

// home is the group that a command concerns, or what to tell the chat instead.
// While routing is down it is the group that answered here last.
func (j *judgement) home(r *row) (folder, problem string) {
	if r.known && r.answer.Error == "" {
		return r.answer.Home, "This chat is not connected to a group yet."
	}
	last, err := j.g.st.LastHome(r.ChatJID)
	j.check(err)
	return cmp.Or(j.batch.info.StickyGroup, msg.AddressedFolder(r.ChatJID), last),
		"Routing (routd) is not answering, so I cannot tell which group this chat belongs to. Try again in a moment."
}

// newSession drops the session of a topic, and asks the text behind the
// command afresh.
func (j *judgement) newSession(r *row, folder string) {
	j.releaseBefore()
	topic, ack := r.command.Topic, "new session in "+r.command.Topic
	if topic == "" {
		topic, ack = j.topicOf(r.Message, r.Topic), "new session"
	}
	j.decide(r, msg.Command, msg.ReasonCommand, folder, j.now)
	var reset int64
	j.step(func(tx *store.Tx) (err error) {
		reset, err = tx.ResetSession(folder, topic, j.now)
		return err
	})
	j.then(func() {
		if reset != 0 {
			j.g.agents.Retire(reset)
		}
	})
	if r.command.Rest == "" {
		j.say(r, msg.SourceCommand, ack, j.now)
	} else {
		j.turns.add(j.afresh(r, folder, topic))
	}
	j.barrier = true
}

// afresh is the entry for the text behind /new.
func (j *judgement) afresh(r *row, folder, topic string) *entry {
	own := cmp.Or(r.command.Topic, r.Topic)
	e := &entry{
		row: r, reason: msg.ReasonReset, derived: derived(r.Message, r.command.Rest, own, msg.SourceCommand, j.now),
		folder: folder, topic: topic, threadID: r.ThreadID, place: msg.Place(r.ThreadID, own),
		kind: msg.Conversation, chatJID: r.ChatJID,
		replyTo: r.post, claims: r.Verb == msg.VerbMention || r.Verb == msg.VerbReply,
	}
	if r.post != "" && msg.OpensThread(r.ChatJID, j.batch.info.Kind, r.Verb, r.ThreadID) {
		j.openThread(e, r.post)
	}
	surface := msg.SurfaceOf(r.ChatJID, j.batch.info.Kind, e.threadID)
	e.surface, e.ceiling = surface.Name, surface.Ceiling
	return e
}

// stop ends what the group does for this chat: in a web chat for the topic the
// command stands in, elsewhere for all.
func (j *judgement) stop(r *row, folder string) {
	var topic *string
	if platform, _ := msg.SplitJID(r.ChatJID); platform == msg.PlatformWeb {
		active := j.topicOf(r.Message, r.Topic)
		topic = &active
	}
	var cancelled []*msg.Turn
	pinned := j.batch.info.StickyTopic
	elsewhere := map[int64]bool{}
	maps.Copy(elsewhere, j.batch.chat.leftOut)
	for _, id := range j.asked {
		elsewhere[id] = true
	}
	held := func(m *msg.Message) bool {
		return m.ID < r.ID && !elsewhere[m.ID] && (topic == nil || msg.EffectiveTopic(pinned, m.Topic, "", "") == *topic)
	}
	j.step(func(tx *store.Tx) (err error) {
		stopped := store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonStopped}
		if err = tx.DecideAll(r.ChatJID, held, stopped, j.now); err != nil {
			return err
		}
		cancelled, err = tx.CancelChatTurns(r.ChatJID, topic, j.now)
		return err
	})
	j.answer(r, "stopped")
	j.then(func() { j.g.agents.Stop(folder, topic, cancelled) })
	j.barrier = true
}
