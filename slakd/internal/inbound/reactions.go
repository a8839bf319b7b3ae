package inbound

import (
	"errors"
	"fmt"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/slakd/internal/slackapi"
)

// reaction converts a reaction to a message that was added or removed. Others make no row.
func reaction(e *Reaction, me Self, names Names) (adapter.Inbound, error) {
	switch {
	case e.Item.Type != "message", me.is(e.User, ""):
		return adapter.Inbound{}, nil
	case e.Item.Channel == "":
		return adapter.Inbound{}, errors.New("a reaction without a channel")
	case !isTS(e.Item.TS), e.User == "", e.Name == "", e.Name != plaintext.Line(e.Name), !isTS(e.EventTS):
		return adapter.Inbound{}, fmt.Errorf("a reaction to %q in %s that lacks something", e.Item.TS, jid(e.Item.Channel))
	}
	content := slackapi.EmojiFromName(e.Name)
	if e.Removed {
		content = "-" + content
	}
	who := userParty(e.User, names)
	r := of(e.Item.Channel, names)
	r.Messages = []*msg.Message{{
		ChatJID: jid(e.Item.Channel), PlatformID: fmt.Sprintf("%s:r:%s:%s:%s", e.Item.TS, e.User, content, e.EventTS),
		Sender: who.jid, SenderName: who.name, IsBot: who.bot,
		Verb: msg.VerbReaction, Content: content, TargetID: e.Item.TS, Timestamp: millis(e.EventTS),
	}}
	return r, nil
}
