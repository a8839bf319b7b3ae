package rows

import (
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// ConnectChat registers a group, unless it is registered, and adds routes in their order, directly
// before the row with the id `before`; 0 is after all rows, and not before seq 0. It sets their id
// and seq. The caller has validated all of it. Rows after them may get a higher seq.
func ConnectChat(tx *store.Tx, g *msg.Group, routes []msg.Route, before int64) (fresh bool, err error) {
	tx.Note(failpoint.ConnectChat)
	if fresh, err = tx.PutGroup(g); err != nil {
		return false, err
	}
	seq, err := tx.SeqBefore(before)
	if err != nil {
		return false, err
	}
	for i := range routes {
		routes[i].Seq = seq
		if err := tx.PutRoute(&routes[i]); err != nil {
			return false, err
		}
	}
	return fresh, nil
}
