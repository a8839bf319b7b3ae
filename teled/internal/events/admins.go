package events

import (
	"context"
	"errors"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/teled/internal/telegramapi"
)

const (
	// adminsFresh is how long Telegram's answer about who administers a group is used. Where the bot is an
	// administrator itself, an update says sooner that it has changed.
	adminsFresh = 10 * time.Minute
	// adminsTimeout bounds the call, for which the update waits. After one that Telegram has not answered, there is
	// none for adminsPause.
	adminsTimeout = 2 * time.Second
	adminsPause   = time.Minute
)

// admins are those of groups. The zero value is ready.
type admins struct {
	known  adapter.Memo[string, *administrators] // by group
	paused time.Time
}

// administrators are those of a group.
type administrators struct {
	senders map[string]bool // nil if Telegram does not say
	at      time.Time
}

// adminsOf says which senders of an event administer their groups, as far as that is known.
func (l *Listener) adminsOf(ctx context.Context, s *adapter.Shell, u *telegramapi.Update,
	rows []*msg.Message) (all []adapter.Admin) {
	for _, change := range []*telegramapi.ChatMemberUpdated{u.MyChatMember, u.ChatMember} {
		if change != nil {
			l.admins.known.Delete(telegramapi.JID(s.Platform, change.Chat.ID))
		}
	}
	for _, m := range rows {
		if msg.KindOfJID(m.ChatJID) == msg.ChatDM || m.IsBot {
			continue
		}
		is := m.Sender == m.ChatJID // an anonymous administrator
		if !is {
			senders := l.administrators(ctx, s, m.ChatJID)
			if senders == nil {
				continue
			}
			is = senders[m.Sender]
		}
		all = append(all, adapter.Admin{ChatJID: m.ChatJID, Sender: m.Sender, Is: is})
	}
	return all
}

// administrators asks Telegram who administers a group, unless that is known. It returns nil if Telegram does not say.
func (l *Listener) administrators(ctx context.Context, s *adapter.Shell, chat string) map[string]bool {
	last, now := l.admins.known.Get(chat), s.Now()
	switch {
	case last != nil && now.Sub(last.at) < adminsFresh:
		return last.senders
	case now.Before(l.admins.paused):
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, adminsTimeout)
	defer cancel()
	_, id := msg.SplitJID(chat)
	found := &administrators{at: now}
	var members []telegramapi.ChatMember
	err := l.API.Call(ctx, "getChatAdministrators", telegramapi.Params{"chat_id": id}, &members)
	var refused *telegramapi.Error
	switch {
	case err == nil:
		found.senders = map[string]bool{}
		for i := range members {
			found.senders[telegramapi.JID(s.Platform, members[i].User.ID)] = true
		}
	case !errors.As(err, &refused) || refused.RetryAfter > 0 || refused.Code >= 500:
		l.admins.paused = now.Add(adminsPause)
		return nil
	}
	l.admins.known.Put(chat, found)
	return found.senders
}
