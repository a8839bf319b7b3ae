package inbound

import (
	"errors"
	"fmt"
	"slices"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/plaintext"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

// reactions converts a change of a user's reactions to a message: a row for each removed reaction, then
// one for each added.
func reactions(update int64, u *telegramapi.MessageReactionUpdated, me Self) (adapter.Inbound, error) {
	if u.Chat.ID == 0 {
		return adapter.Inbound{}, errors.New("a reaction without a chat")
	}
	if u.MessageID <= 0 {
		return adapter.Inbound{}, fmt.Errorf("a reaction in %s without a message", me.jid(u.Chat.ID))
	}
	var who adapter.Actor
	switch {
	case u.User != nil && u.User.ID != 0:
		who = me.userActor(u.User)
	case u.ActorChat != nil && u.ActorChat.ID != 0:
		who = me.chatActor(u.ActorChat)
	default:
		return adapter.Inbound{}, fmt.Errorf("a reaction to message %d in %s without a user", u.MessageID,
			me.jid(u.Chat.ID))
	}
	r := me.of(&u.Chat)
	if who.JID == me.jid(me.ID) || u.Chat.IsDirect { // of which subscriber's conversation is not known
		return r, nil
	}
	for _, reaction := range u.Old {
		if !slices.Contains(u.New, reaction) {
			r.Messages = append(r.Messages, reactionRow(update, u, me, who, "-"+emoji(reaction)))
		}
	}
	for _, reaction := range u.New {
		if !slices.Contains(u.Old, reaction) {
			r.Messages = append(r.Messages, reactionRow(update, u, me, who, emoji(reaction)))
		}
	}
	return r, nil
}

func reactionRow(update int64, u *telegramapi.MessageReactionUpdated, me Self, who adapter.Actor,
	content string) *msg.Message {
	_, user := msg.SplitJID(who.JID)
	return &msg.Message{
		ChatJID: me.jid(u.Chat.ID), PlatformID: fmt.Sprintf("%d:r:%s:%s:%d-%d", u.MessageID, user, content, u.Date,
			update),
		Sender: who.JID, SenderName: who.Name, IsBot: who.Bot,
		Verb: msg.VerbReaction, Content: content, TargetID: decimal(u.MessageID), Timestamp: millis(u.Date),
	}
}

// emoji is the content of a reaction. A custom emoji is a picture that has only an id.
func emoji(r telegramapi.ReactionType) string {
	switch r.Type {
	case telegramapi.ReactionEmoji:
		return r.Emoji
	case telegramapi.ReactionCustomEmoji:
		return "custom_emoji:" + r.CustomEmojiID
	case telegramapi.ReactionPaid:
		return "⭐"
	}
	return plaintext.Bracket("reaction", r.Type)
}
