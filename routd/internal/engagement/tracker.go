package engagement

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	daemon = "routd"
	// cursorKey is where routd's cursors keep how far deliveries were read.
	cursorKey = "deliveries"
	// pageSize is how many deliveries are read at once.
	pageSize = 500
)

// Tracker keeps the stored engagement in step with what was delivered. It is safe for concurrent
// use.
type Tracker struct {
	st  *store.Store
	ttl time.Duration
	now func() time.Time
	log *slog.Logger

	mu   sync.Mutex // one reader of deliveries at a time
	read int64      // seq of the last delivery read
}

// Open continues where the last Tracker stopped. ttl is how long a delivered answer engages.
func Open(ctx context.Context, st *store.Store, ttl time.Duration, now func() time.Time, log *slog.Logger) (*Tracker, error) {
	t := &Tracker{st: st, ttl: ttl, now: now, log: log}
	value, err := st.DaemonCursor(ctx, daemon, cursorKey)
	if err != nil || value == "" {
		return t, err
	}
	if t.read, err = strconv.ParseInt(value, 10, 64); err != nil {
		return nil, fmt.Errorf("invalid cursor of deliveries: %w", err)
	}
	return t, nil
}

// CatchUp reads the deliveries after the last one seen. It costs one index lookup when there are
// none.
func (t *Tracker) CatchUp(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		changed, err := t.st.DeliveryChanges(ctx, t.read, pageSize)
		if err != nil || len(changed) == 0 {
			return err
		}
		failpoint.At(failpoint.Delivered)
		if err := t.apply(ctx, changed); err != nil {
			return err
		}
		t.read = changed[len(changed)-1].Seq
		if len(changed) < pageSize {
			return nil
		}
	}
}

// apply changes the windows of the places that deliveries went to. Where none changes nothing is
// written, not even the cursor: reading them again changes nothing either.
func (t *Tracker) apply(ctx context.Context, changed []store.DeliveryChange) error {
	var answers []store.DeliveryChange
	for _, d := range changed {
		if isAnswer(d) {
			answers = append(answers, d)
		}
	}
	if len(answers) == 0 {
		return nil
	}

	var changes []change
	err := t.st.Write(ctx, func(tx *store.Tx) error {
		changes = nil
		for _, d := range answers {
			s, err := load(ctx, tx.Reader, d.ChatJID, d.Place)
			if err != nil {
				return err
			}
			next, ok := s.afterDelivery(d, t.ttl)
			if !ok {
				continue
			}
			if err := tx.PutEngagement(next); err != nil {
				return err
			}
			slid := s.Folder == next.Folder && s.Open(d.At, s.PinnedAt)
			changes = append(changes, change{d, slid})
		}
		return tx.PutCursor(daemon, cursorKey, strconv.FormatInt(changed[len(changed)-1].Seq, 10))
	})
	if err != nil {
		return err
	}
	for _, c := range changes { // once they are stored
		log := t.log.With("chat", c.ChatJID, "topic", c.Place, "folder", c.Folder, "row", c.MessageID)
		if c.slid {
			log.Debug("engagement slid")
		} else {
			log.Debug("engagement opened")
		}
	}
	return nil
}

// change is a delivery that slid a window or opened one, for the log.
type change struct {
	store.DeliveryChange
	slid bool
}

func load(ctx context.Context, r store.Reader, chatJID, place string) (*State, error) {
	e, err := r.Engagement(ctx, chatJID, place)
	if err != nil {
		return nil, err
	}
	s := &State{Engagement: e}
	if s.Claims, err = r.Claims(ctx, chatJID, place); err != nil {
		return nil, err
	}
	chat, err := r.Chat(ctx, chatJID)
	if chat != nil {
		s.PinnedAt = chat.StickyAt
	}
	return s, err
}

// Engage opens the window of a place on request, for ttl. A ttl that is not above 0 ends it and
// all claims in force. allow may refuse, by the state before.
func (t *Tracker) Engage(ctx context.Context, chatJID, place, folder string, ttl time.Duration, allow func(*State) error) (msg.Engagement, error) {
	if err := t.CatchUp(ctx); err != nil { // earlier deliveries count first
		return msg.Engagement{}, err
	}

	var next msg.Engagement
	err := t.st.Write(ctx, func(tx *store.Tx) error {
		s, err := load(ctx, tx.Reader, chatJID, place)
		if err != nil {
			return err
		}
		if err := allow(s); err != nil {
			return err
		}
		now := t.now().UnixMilli()
		next = s.Engagement
		if ttl > 0 {
			next.Folder, next.At, next.Until = folder, max(now, s.lastEnd()+1), now+ttl.Milliseconds()
		} else {
			next.Folder, next.At, next.Until, next.EndedAt = "", 0, 0, max(now, s.latest(now))
			folder = s.Folder
		}
		return tx.PutEngagement(next)
	})
	if err != nil {
		return msg.Engagement{}, err
	}
	log := t.log.With("chat", chatJID, "topic", place, "folder", folder)
	if ttl > 0 {
		log.Debug("engagement opened")
	} else {
		log.Debug("engagement ended")
	}
	return next, nil
}

// Snapshot is the engagement for one request of gated: the rows as they are, and what the
// request's own items claim. It belongs to one goroutine.
type Snapshot struct {
	st     store.Reader
	states map[key]*State
	err    error
}

type key struct{ chatJID, place string }

// Snapshot catches up and opens a snapshot.
func (t *Tracker) Snapshot(ctx context.Context) (*Snapshot, error) {
	if err := t.CatchUp(ctx); err != nil {
		return nil, unreadable(err)
	}
	return &Snapshot{st: t.st.Reader, states: map[key]*State{}}, nil
}

func unreadable(err error) error {
	return apierr.New(apierr.Unavailable, "engagement cannot be read: %w", err)
}

// Engaged returns the folder that answers a row received at a time in a place of a chat, "" for
// none.
func (s *Snapshot) Engaged(ctx context.Context, chatJID, place string, at int64) string {
	return s.state(ctx, chatJID, place).Engaged(at)
}

// Claim adds a claim of a folder on a place, from a time on, for the items that follow.
func (s *Snapshot) Claim(ctx context.Context, chatJID, place, folder string, at int64) {
	state := s.state(ctx, chatJID, place)
	state.Claims = append([]store.Claim{{Folder: folder, At: at}}, state.Claims...)
}

// Err returns the first error of reading rows. After one the snapshot's answers are invalid.
func (s *Snapshot) Err() error { return s.err }

func (s *Snapshot) state(ctx context.Context, chatJID, place string) *State {
	at := key{chatJID, place}
	if state := s.states[at]; state != nil {
		return state
	}
	state, err := load(ctx, s.st, chatJID, place)
	if err != nil {
		s.err = unreadable(err)
		state = &State{}
	}
	s.states[at] = state
	return state
}
