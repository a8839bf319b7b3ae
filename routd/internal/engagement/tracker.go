package engagement

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/routd/internal/rows"
)

const (
	daemon = "routd"
	// cursorKey is where routd's cursors keep how far the effect of deliveries is stored.
	cursorKey = "deliveries"
	// readPage is how many deliveries are read at once, storePage how many one commit stores: about
	// 15 ms of the write lock.
	readPage, storePage = 500, 200
	// maxUnstored bounds the answers kept in memory, about 20 MiB. Questions are refused until some are
	// stored.
	maxUnstored = 100_000
	// minRetryDelay is the pause after a failed write.
	minRetryDelay = time.Second
	// storeDelay is how long answers gather before their effect is stored. Questions need not wait for it,
	// and a commit per answer would take the write lock from the messages themselves.
	storeDelay = 250 * time.Millisecond
	// lastStoreTimeout bounds the last write at a stop.
	lastStoreTimeout = 2 * time.Second
)

// Tracker keeps the engagement in step with the deliveries. Questions read new deliveries into
// memory and wait for no write; Watch stores them. It is safe for concurrent use.
type Tracker struct {
	st  *store.Store
	ttl time.Duration
	now func() time.Time
	log *slog.Logger

	claims      rows.ClaimCache
	maxUnstored int
	unstored    unstored
	reading     chan struct{} // holds a value while deliveries are read
	work        chan struct{} // there is something to store
}

// Open continues where the last Tracker stopped. ttl is how long a delivered answer engages.
func Open(ctx context.Context, st *store.Store, ttl time.Duration, now func() time.Time, log *slog.Logger) (*Tracker,
	error) {
	t := &Tracker{
		st: st, ttl: ttl, now: now, log: log, maxUnstored: maxUnstored,
		reading: make(chan struct{}, 1), work: make(chan struct{}, 1),
	}
	value, err := st.DaemonCursor(ctx, daemon, cursorKey)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseInt(value, 10, 64); err != nil && value != "" {
		return nil, fmt.Errorf("invalid cursor of deliveries: %w", err)
	}
	read, _, err := rows.DeliveriesRead(ctx, st.Reader)
	if err != nil {
		return nil, fmt.Errorf("read cursor of deliveries: %w", err)
	}
	t.unstored.begin(read)
	return t, nil
}

// CatchUp reads the deliveries after the last one seen into memory. It costs one index lookup when
// there are none. Deliveries read before ctx ends, or before it fails, stay read.
func (t *Tracker) CatchUp(ctx context.Context) (err error) {
	answers := 0
	for more := true; more && err == nil; {
		var n int
		n, more, err = t.readNext(ctx)
		answers += n
	}
	if answers > 0 {
		t.Poke()
	}
	return err
}

// readNext reads one page, with n answers in it, and reports whether there may be another.
func (t *Tracker) readNext(ctx context.Context) (n int, more bool, err error) {
	select {
	case t.reading <- struct{}{}:
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	defer func() { <-t.reading }()
	_, _, answers := t.unstored.progress()
	if answers > t.maxUnstored {
		return 0, false, apierr.New(apierr.Unavailable,
			"%d delivered answers wait to be stored: the database cannot be written", answers)
	}
	if err := t.unstored.ask(ctx, t.st.Reader); err != nil {
		return 0, false, err
	}
	after, seen := t.unstored.window()
	page, err := factrows.DeliveryChanges(ctx, t.st.Reader, after, readPage+seen)
	if err != nil || len(page) == 0 {
		return 0, false, err
	}
	failpoint.At(failpoint.Delivered)
	return t.unstored.add(t.st.Reader, page), len(page) == readPage+seen, nil
}

// State returns the engagement in a place of a chat, with all that was delivered by now.
func (t *Tracker) State(ctx context.Context, chatJID, place string) (*State, error) {
	// In this order: a claim that is over was followed by a delivery, if there was any, which is then
	// read; windows that are no longer in memory are in the row.
	claims, err := rows.Claims(ctx, t.st.Reader, chatJID, place, &t.claims)
	if err != nil {
		return nil, err
	}
	read, _, _ := t.unstored.progress()
	answers := t.unstored.of(key{chatJID, place})
	row, err := factrows.Engagement(ctx, t.st.Reader, chatJID, place)
	if err != nil {
		return nil, err
	}
	if after, _ := t.unstored.window(); row.Last > min(read, after) {
		if err := t.CatchUp(ctx); err != nil {
			return nil, err
		}
		answers = t.unstored.of(key{chatJID, place})
		if row, err = factrows.Engagement(ctx, t.st.Reader, chatJID, place); err != nil {
			return nil, err
		}
	}
	s := &State{Engagement: row.Engagement, PinnedAt: row.PinnedAt, Claims: claims}
	for _, d := range answers {
		if d.Seq > row.Read {
			s.apply(d, t.ttl)
		}
	}
	return s, nil
}

// States returns the engagement of the places of a chat that have had any, at most about 1,000, those
// with the newest windows first. They are without claims.
func (t *Tracker) States(ctx context.Context, chatJID string) ([]*State, error) {
	if err := t.CatchUp(ctx); err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	var states []*State
	for _, place := range t.unstored.places(chatJID) {
		s, err := t.State(ctx, chatJID, place)
		if err != nil {
			return nil, err
		}
		changed[place], states = true, append(states, s)
	}
	rows, err := factrows.Engagements(ctx, t.st.Reader, chatJID)
	if err != nil {
		return nil, err
	}
	chat, err := t.st.Chat(ctx, chatJID)
	if err != nil {
		return nil, err
	}
	for _, e := range rows {
		if changed[e.Place] {
			continue
		}
		s := &State{Engagement: *e}
		if chat != nil {
			s.PinnedAt = chat.StickyAt
		}
		states = append(states, s)
	}
	return states, nil
}

// Engage opens the window of a place on request, for ttl. A ttl that is not above 0 ends it and
// all claims in force. allow may refuse, by the state before, or write along. It waits for the write lock.
func (t *Tracker) Engage(ctx context.Context, chatJID, place, folder string, ttl time.Duration,
	allow func(*store.Tx, *State) error) (msg.Engagement, error) {
	var next msg.Engagement
	err := t.storeAnd(ctx, func(tx *store.Tx) error { // earlier deliveries count first
		s, err := load(ctx, tx.Reader, chatJID, place, &t.claims)
		if err != nil {
			return err
		}
		if err := allow(tx, s); err != nil {
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
		return factrows.PutEngagement(tx, next)
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
