package inbound

import (
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
)

// member converts a join or leave. The sender of the bot's own join is its inviter; what the bot did by
// itself makes no row.
func member(e *Member, me Self, names Names) (adapter.Inbound, error) {
	switch {
	case e.Channel == "":
		return adapter.Inbound{}, errors.New("a change of a member without a channel")
	case e.User == "":
		return adapter.Inbound{}, fmt.Errorf("a change of a member of %s without a user", me.jid(e.Channel))
	case !isTS(e.EventTS):
		return adapter.Inbound{}, fmt.Errorf("a change of a member of %s without a time", me.jid(e.Channel))
	}
	r := me.of(e.Channel, names)
	ours := me.is(e.User, "")
	if ours && (e.Left || e.Inviter == "" || e.Inviter == me.User) {
		return r, nil
	}
	verb, text, who := msg.VerbJoin, "joined", me.userActor(e.User, names)
	switch {
	case e.Left:
		verb, text = msg.VerbLeave, "left"
	case ours:
		who, text = me.userActor(e.Inviter, names), "added the bot"
	case e.Inviter != "" && e.Inviter != e.User:
		text = "was added by " + nameOf(e.Inviter, names)
	}
	r.Messages = []*msg.Message{{
		ChatJID: me.jid(e.Channel), PlatformID: fmt.Sprintf("m:%s:%s:%s", verb, e.User, e.EventTS),
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: verb, Content: text, Addressed: ours, Timestamp: millis(e.EventTS),
	}}
	return r, nil
}
