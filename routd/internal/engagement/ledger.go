package engagement

import (
	"context"
	"errors"
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
	// page is how many deliveries are read at once.
	page = 500
)

// Ledger keeps what is stored of engagement in step with what was delivered. It is safe for
// concurrent use.
type Ledger struct {
	st  *store.Store
	ttl time.Duration
	now func() time.Time

	mu   sync.Mutex // one reader of deliveries at a time
	read int64      // seq of the last delivery read
}

// Open continues where the last one stopped. ttl is how long a delivered answer engages.
func Open(ctx context.Context, st *store.Store, ttl time.Duration, now func() time.Time) (*Ledger, error) {
	value, err := st.DaemonCursor(ctx, daemon, cursorKey)
	if err != nil || value == "" {
		return &Ledger{st: st, ttl: ttl, now: now}, err
	}
	read, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return nil, errors.New("the cursor of deliveries is no number: " + value)
	}
	return &Ledger{st: st, ttl: ttl, now: now, read: read}, nil
}

// CatchUp reads on behind the last delivery seen. It costs one look into an index when there
// is nothing new.
func (l *Ledger) CatchUp(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		changed, err := l.st.DeliveryChanges(ctx, l.read, page)
		if err != nil || len(changed) == 0 {
			return err
		}
		failpoint.At(failpoint.Delivered)
		if err := l.take(ctx, changed); err != nil {
			return err
		}
		l.read = changed[len(changed)-1].Seq
		if len(changed) < page {
			return nil
		}
	}
}

// take folds deliveries into the windows of their places. Where none changes nothing is
// written, not even the cursor: reading them again changes nothing either.
func (l *Ledger) take(ctx context.Context, changed []store.DeliveryChange) error {
	var answers []store.DeliveryChange
	for _, d := range changed {
		if conversational(d) {
			answers = append(answers, d)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	return l.st.Write(ctx, func(tx *store.Tx) error {
		for _, d := range answers {
			s, err := load(ctx, tx.Reader, d.ChatJID, d.Place)
			if err != nil {
				return err
			}
			if next, ok := s.delivered(d, l.ttl); ok {
				if err := tx.PutEngagement(next); err != nil {
					return err
				}
			}
		}
		return tx.PutCursor(daemon, cursorKey, strconv.FormatInt(changed[len(changed)-1].Seq, 10))
	})
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

// Engage opens the window of a place by word, for as long as ttl; not above 0 ends it, with
// the claims that are under way. allow decides on what is there before.
func (l *Ledger) Engage(ctx context.Context, chatJID, place, folder string, ttl time.Duration, allow func(*State) error) (msg.Engagement, error) {
	if err := l.CatchUp(ctx); err != nil { // what was delivered before comes before
		return msg.Engagement{}, err
	}
	var next msg.Engagement
	err := l.st.Write(ctx, func(tx *store.Tx) error {
		s, err := load(ctx, tx.Reader, chatJID, place)
		if err != nil {
			return err
		}
		if err := allow(s); err != nil {
			return err
		}
		now := l.now().UnixMilli()
		next = s.Engagement
		if ttl > 0 {
			next.Folder, next.At, next.Until = folder, max(now, s.since()+1), now+ttl.Milliseconds()
		} else {
			next.Folder, next.At, next.Until, next.EndedAt = "", 0, 0, max(now, s.latest(now))
		}
		return tx.PutEngagement(next)
	})
	return next, err
}

// View is what one question of gated sees: the rows as they are, and what its own items claim.
// It belongs to one goroutine.
type View struct {
	st     store.Reader
	places map[place]*State
	err    error
}

type place struct{ chatJID, place string }

// View catches up and opens a view.
func (l *Ledger) View(ctx context.Context) (*View, error) {
	if err := l.CatchUp(ctx); err != nil {
		return nil, apierr.New(apierr.Unavailable, "engagement cannot be read: %w", err)
	}
	return &View{st: l.st.Reader, places: map[place]*State{}}, nil
}

// Engaged is who answers in a place of a chat what came at a time, "" for nobody.
func (v *View) Engaged(ctx context.Context, chatJID, in string, at int64) string {
	return v.state(ctx, chatJID, in).Engaged(at)
}

// Claim has a folder hold a place from a time on, for the items to come.
func (v *View) Claim(ctx context.Context, chatJID, in, folder string, at int64) {
	s := v.state(ctx, chatJID, in)
	s.Claims = append([]store.Claim{{Folder: folder, At: at}}, s.Claims...)
}

// Err is what kept the view from reading the rows, if anything did: then its answers are void.
func (v *View) Err() error { return v.err }

func (v *View) state(ctx context.Context, chatJID, in string) *State {
	key := place{chatJID, in}
	if s := v.places[key]; s != nil {
		return s
	}
	s, err := load(ctx, v.st, chatJID, in)
	if err != nil {
		v.err = apierr.New(apierr.Unavailable, "engagement cannot be read: %w", err)
		s = &State{}
	}
	v.places[key] = s
	return s
}
