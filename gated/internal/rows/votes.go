package rows

import (
	"context"
	"encoding/json"
	"fmt"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Poll returns a poll by id, nil if there is none.
func Poll(ctx context.Context, r store.Reader, id int64) (*msg.StoredPoll, error) {
	return store.First(r.Polls(ctx, queryPoll, id))
}

// Vote counts a vote of a voter, cast at a time, in unix ms. It returns ErrStale if the poll no
// longer takes it.
func Vote(tx *store.Tx, pollID int64, voter, name string, vote *msg.Vote, at int64) error {
	tx.Note(failpoint.PutVote)
	poll, err := Poll(store.Uncancelled(), tx.Reader, pollID)
	if err != nil {
		return err
	}
	if poll == nil || !poll.Takes(at) || !vote.Fits(len(poll.Poll.Options)) {
		return fmt.Errorf("vote in poll %d: %w", pollID, store.ErrStale)
	}
	var before string
	if _, err := tx.Find([]any{&before}, queryPollVote, pollID, voter); err != nil {
		return err
	}
	var options []int
	if json.Unmarshal([]byte(before), &options) != nil { // JSON of another shape counts as none
		options = nil
	}
	chosen := vote.Apply(options)
	if len(chosen) == 0 {
		return tx.Exec(deletePollVote, pollID, voter)
	}
	list, _ := json.Marshal(chosen) // plain numbers: cannot fail
	return tx.Exec(putPollVote, pollID, voter, store.Cut(store.CleanText(name), maxPollName), string(list), at)
}

// maxPollName bounds a voter's name, in bytes.
const maxPollName = 256
