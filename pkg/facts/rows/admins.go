package rows

import (
	"cmp"
	"context"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// MembersFor returns the rights of a group's members as they are for a sender in a chat: where a role names the users
// who administer the chat, Admin is the sender if that is one. nil stays nil.
func MembersFor(ctx context.Context, r store.Reader, m *groupconfig.Members, chatJID, sender string) (
	*groupconfig.Members, error) {
	if m == nil || !m.NameAdmins() {
		return m, nil
	}
	is, err := r.IsAdmin(ctx, chatJID, sender)
	if err != nil || !is {
		return m, err
	}
	own := *m
	own.Admin = sender
	return &own, nil
}

// MembersForRow is MembersFor for a row's origin, in the chat where that wrote.
func MembersForRow(ctx context.Context, r store.Reader, m *groupconfig.Members, row *msg.Message) (
	*groupconfig.Members, error) {
	chat := row.ChatJID
	if row.ForwardedFrom != nil && m != nil && m.NameAdmins() {
		root, err := r.Turn(ctx, row.ForwardedFrom.RootTurnID)
		if err != nil {
			return nil, err
		}
		if root != nil {
			chat = root.ChatJID
		}
	}
	return MembersFor(ctx, r, m, chat, cmp.Or(row.OnBehalfOf, row.Sender))
}

// AddAdmin adds a sender to those who may answer questions in a chat, if the users who administer it may and the sender
// is one.
func AddAdmin(ctx context.Context, r store.Reader, chatJID, sender string, asks ...*msg.Ask) error {
	for _, a := range asks {
		if a == nil || !a.Who.Admins {
			continue
		}
		is, err := r.IsAdmin(ctx, chatJID, sender)
		if err != nil {
			return err
		}
		if is {
			a.Who.Senders = append(a.Who.Senders, sender)
		}
	}
	return nil
}
