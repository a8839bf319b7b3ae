package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// ballotTimeout is how long a vote waits for the ids of a poll that is being sent: users may vote before
	// they are stored.
	ballotTimeout  = time.Minute
	ballotInterval = 100 * time.Millisecond
	// maxBallots is how many votes wait at most.
	maxBallots = 1000
	// ballotPrefix begins the keys of the daemon's cursors that are waiting votes; a number follows.
	ballotPrefix = "ballot:"
)

// Ballot is a vote, or the end of a poll, as the platform sends it.
type Ballot struct {
	ChatJID string          `json:"chat_jid"` // where the poll is, "" if the platform does not say
	Ref     string          `json:"ref"`      // names the poll
	Event   json.RawMessage `json:"event"`    // for Ballots.Make
}

// Ballots finds the polls of votes. A vote whose poll may be one that is being sent waits for its ids
// beside the receive loop, in a row, and so do later votes in that poll. The receive loop owns it.
type Ballots struct {
	Find func(ctx context.Context, b *Ballot) (*msg.Message, error) // the poll's outbound row, nil for none
	Make func(b *Ballot, poll *msg.Message) (Inbound, error)        // the rows of a vote in a poll of the bot

	waiting []waitingBallot // in order
	last    int             // number of the last one
	missed  []int64         // polls that are being sent, and whose ids were waited for in vain
	tried   time.Time
}

type waitingBallot struct {
	Ballot
	key   string
	since time.Time
}

// Load reads the votes that wait, when the receive loop begins. Its only error is ctx.Err().
func (w *Ballots) Load(ctx context.Context, s *Shell) error {
	var stored map[string]string
	err := s.Retry(ctx, "reading waiting votes failed; retrying", func() (err error) {
		stored, err = s.Store.DaemonCursors(ctx, s.Daemon, ballotPrefix)
		return err
	})
	w.waiting = nil
	for _, key := range slices.Sorted(maps.Keys(stored)) {
		b := waitingBallot{key: key, since: s.Now()}
		if _, err := fmt.Sscanf(key, ballotPrefix+"%d", &w.last); err == nil &&
			json.Unmarshal([]byte(stored[key]), &b.Ballot) == nil {
			w.waiting = append(w.waiting, b)
		}
	}
	return err
}

// Waiting reports whether votes wait, so that Retry must be called soon.
func (w *Ballots) Waiting() bool { return len(w.waiting) > 0 }

// Receive makes the rows of a vote. They are none in a poll of others, and none yet if the vote waits: it
// is then stored together with the cursor. Its only error is ctx.Err().
func (w *Ballots) Receive(ctx context.Context, s *Shell, b Ballot, cursor *Cursor) (in Inbound, err error) {
	behind := slices.ContainsFunc(w.waiting, func(other waitingBallot) bool { return other.Ref == b.Ref })
	if !behind {
		poll, sending, err := w.find(ctx, s, &b)
		if err != nil || poll != nil {
			return w.made(s, &b, poll), err
		}
		if !slices.ContainsFunc(sending, func(id int64) bool { return !slices.Contains(w.missed, id) }) {
			s.Log.Debug("vote ignored: it is in no poll that is stored")
			return Inbound{}, nil
		}
	}
	if len(w.waiting) >= maxBallots {
		s.Log.Warn("vote ignored: too many wait for polls that are being sent", "count", maxBallots)
		return Inbound{}, nil
	}
	w.last++
	waits := waitingBallot{Ballot: b, key: fmt.Sprintf("%s%012d", ballotPrefix, w.last), since: s.Now()}
	value, err := json.Marshal(b)
	if err != nil {
		s.SkipUndecoded("vote", err)
		return Inbound{}, nil
	}
	err = s.Retry(ctx, "storing vote failed; retrying", func() error {
		return s.Store.Write(ctx, func(tx *store.Tx) error {
			if err := cursor.Write(tx, s.Daemon); err != nil {
				return err
			}
			return tx.PutCursor(s.Daemon, waits.key, string(value))
		})
	})
	if err == nil {
		w.waiting = append(w.waiting, waits)
	}
	return Inbound{}, err
}

// Retry stores the votes whose polls are known by now, and drops those that have waited long enough or
// whose poll is not being sent. It returns when to call it again, nil if none wait. Its only error is ctx.Err().
func (w *Ballots) Retry(ctx context.Context, s *Shell) (again <-chan time.Time, err error) {
	if !w.Waiting() {
		return nil, nil
	}
	if pause := ballotInterval - s.Now().Sub(w.tried); pause > 0 && pause <= ballotInterval {
		return time.After(pause), nil
	}
	w.tried = s.Now()
	type result struct {
		poll    *msg.Message
		sending []int64
	}
	found := map[string]result{} // by ref
	var left []waitingBallot
	for i, b := range w.waiting {
		r, ok := found[b.Ref]
		if !ok {
			r.poll, r.sending, err = w.find(ctx, s, &b.Ballot)
			found[b.Ref] = r
		}
		if err == nil && r.poll == nil && len(r.sending) > 0 {
			if s.Now().Sub(b.since) < ballotTimeout {
				left = append(left, b)
				continue
			}
			w.missed = r.sending
		}
		if err == nil {
			err = w.end(ctx, s, &b, r.poll)
		}
		if err != nil {
			w.waiting = append(left, w.waiting[i:]...)
			return nil, err
		}
	}
	w.waiting = left
	return time.After(ballotInterval), nil
}

// end stores a vote that has waited, or drops it without a poll. Its only error is ctx.Err().
func (w *Ballots) end(ctx context.Context, s *Shell, b *waitingBallot, poll *msg.Message) error {
	if poll == nil {
		s.Log.Info("vote ignored: it is in no poll that is stored", "wait", s.Now().Sub(b.since))
	}
	in := w.made(s, &b.Ballot, poll)
	in.Cursor = &Cursor{Key: b.key}
	return s.ReceiveAlways(ctx, in)
}

// find returns the poll of a vote, nil if it is no poll of the bot, and the polls that are being sent to
// the chat. Its only error is ctx.Err().
func (w *Ballots) find(ctx context.Context, s *Shell, b *Ballot) (poll *msg.Message, sending []int64, err error) {
	err = s.Retry(ctx, "looking up poll failed; retrying", func() (err error) {
		// before Find, so that no poll is missed
		if sending, err = rows.PollsSending(ctx, s.Store.Reader, s.Platform, b.ChatJID); err == nil {
			poll, err = w.Find(ctx, b)
		}
		return err
	})
	if poll != nil && (poll.Direction != msg.Out || poll.Kind != msg.KindPoll) {
		poll, sending = nil, nil
	}
	return poll, sending, err
}

// made is the rows of a vote, none without a poll.
func (w *Ballots) made(s *Shell, b *Ballot, poll *msg.Message) (in Inbound) {
	if poll != nil && !s.Decode("vote "+strings.TrimSpace(b.Ref),
		func() (err error) { in, err = w.Make(b, poll); return err }) {
		return Inbound{}
	}
	return in
}
