package store

import "arizuko/pkg/msg"

// PutQuoted stores a post that a platform sent along with a message that answers, quotes or
// forwards it, unless the chat has its platform id already, as a row or as a part of one. It must
// have one. The row is decided at once (observed, quoted), so that it fires no turn, acts as no
// command and makes no request, however old it is. Should the post itself come later, such as when
// a gap is filled, PutMessage stores it in a row of its own, and this row ends as its duplicate.
func (tx *Tx) PutQuoted(m *msg.Message) (fresh bool, err error) {
	known, err := tx.MessageByPlatformID(Uncancelled(), m.ChatJID, m.PlatformID)
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
	return true, tx.Decide(m.ID, Decision{
		Disposition: msg.Observed, Reason: msg.ReasonQuoted, Topic: m.Topic, ThreadID: m.ThreadID,
	}, m.ReceivedAt)
}

// insertInPlaceOfQuoted inserts a row if the one with its platform id is that of a quoted post,
// which then is no longer shown.
func (tx *Tx) insertInPlaceOfQuoted(m *msg.Message) (inserted bool, err error) {
	n, err := tx.Change(updateEndQuoted, m.ChatJID, m.PlatformID)
	if err != nil || n == 0 {
		return false, err
	}
	return tx.insertMessage(m)
}
