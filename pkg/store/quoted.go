package store

import "arizuko/pkg/msg"

// insertInPlaceOfQuoted inserts a row if the one with its platform id is that of a quoted post,
// which then is no longer shown.
func (tx *Tx) insertInPlaceOfQuoted(m *msg.Message) (inserted bool, err error) {
	n, err := tx.Change(updateEndQuoted, m.ChatJID, m.PlatformID)
	if err != nil || n == 0 {
		return false, err
	}
	return tx.insertMessage(m)
}
