package inbound

import (
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/emoji"
	"arizuko/pkg/msg"
)

// reaction converts a reaction to a message that was added or removed. Others make no row.
func reaction(e *Reaction, me Self, names Names) (adapter.Inbound, error) {
	switch {
	case e.Item.Type != "message", me.is(e.User, ""):
		return adapter.Inbound{}, nil
	case e.Item.Channel == "":
		return adapter.Inbound{}, errors.New("a reaction without a channel")
	}
	if field := invalidField(e); field != "" {
		return adapter.Inbound{}, fmt.Errorf("a reaction to %q in %s: %s is missing or invalid", e.Item.TS,
			me.jid(e.Item.Channel), field)
	}
	content := emoji.FromName(e.Name)
	if e.Removed {
		content = "-" + content
	}
	who := me.userActor(e.User, names)
	r := me.of(e.Item.Channel, names)
	r.Messages = []*msg.Message{{
		ChatJID: me.jid(e.Item.Channel), PlatformID: fmt.Sprintf("%s:r:%s:%s:%s", e.Item.TS, e.User, content,
			e.EventTS),
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbReaction, Content: content, TargetID: e.Item.TS, Timestamp: millis(e.EventTS),
	}}
	return r, nil
}

// invalidField is the name of a field that a reaction lacks or that is invalid, "" for none.
func invalidField(e *Reaction) string {
	switch {
	case !isTS(e.Item.TS):
		return "item.ts"
	case e.User == "":
		return "user"
	case e.Name == "", e.Name != plaintext.Line(e.Name):
		return "reaction"
	case !isTS(e.EventTS):
		return "event_ts"
	}
	return ""
}
