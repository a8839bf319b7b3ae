package rows

import (
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// PutQuoted stores a post that a platform sent along with a message that answers, quotes or
// forwards it, unless the chat has its platform id already, as a row or as a part of one. It must
// have one. The row is decided at once (observed, quoted), so that it fires no turn, acts as no
// command and makes no request, however old it is. Should the post itself come later, such as when
// a gap is filled, PutMessage stores it in a row of its own, and this row ends as its duplicate.
func PutQuoted(tx *store.Tx, m *msg.Message) (fresh bool, err error) {
	known, err := tx.MessageByPlatformID(store.Uncancelled(), m.ChatJID, m.PlatformID)
	if err != nil {
		return false, err
	}
	if known != nil {
		m.ID = known.ID
		return false, nil
	}
	if _, fresh, err = tx.PutMessage(m); err != nil || !fresh {
		return false, err
	}
	return true, tx.Decide(m.ID, store.Decision{
		Disposition: msg.Observed, Reason: msg.ReasonQuoted, Topic: m.Topic, ThreadID: m.ThreadID, ReceivedAt: m.ReceivedAt,
	}, m.ReceivedAt)
}
