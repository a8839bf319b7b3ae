package adapter

import (
	"context"
	"slices"
	"time"

	"arizuko/pkg/store"
)

// adminFresh is how long an Admin counts as stored: another process may have stored something else since.
const adminFresh = 10 * time.Minute

// Admin says whether a sender administers a chat.
type Admin struct {
	ChatJID, Sender string
	Is              bool
}

// storedAdmin is when an Admin was stored.
type storedAdmin struct {
	is bool
	at time.Time
}

// storeAdmins stores who administers chats, before anything is decided by it. It seldom changes.
func (s *Shell) storeAdmins(ctx context.Context, admins []Admin) error {
	now := s.Now()
	fresh := slices.DeleteFunc(slices.Clone(admins), func(a Admin) bool {
		last := s.admins.Get(a.ChatJID + " " + a.Sender)
		return last.is == a.Is && now.Sub(last.at) < adminFresh
	})
	if len(fresh) == 0 {
		return nil
	}
	scope := store.Scope{}
	for _, a := range fresh {
		scope = append(scope, a.ChatJID)
	}
	err := s.Store.WriteIn(ctx, scope, func(tx *store.Tx) error {
		for _, a := range fresh {
			if err := tx.PutAdmin(a.ChatJID, a.Sender, a.Is); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		for _, a := range fresh {
			s.admins.Put(a.ChatJID+" "+a.Sender, storedAdmin{a.Is, now})
		}
	}
	return err
}
