package engagement

import (
	"context"
	"time"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
	"arizuko/routd/internal/rows"
)

// Poke makes Watch store the new deliveries.
func (t *Tracker) Poke() {
	select {
	case t.work <- struct{}{}:
	default:
	}
}

// Watch reads deliveries after each Poke, and stores their effect storeDelay later and at least every
// interval, until ctx ends, and then once more, so that a stop leaves no answer to the next start. It is
// the only one that waits for the write lock of its own accord. report receives each result.
func (t *Tracker) Watch(ctx context.Context, interval time.Duration, report func(error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return t.storeLast(ctx)
		case <-t.work:
			_ = t.CatchUp(ctx) // Store reports its error
			if due == nil {
				due = time.After(storeDelay)
			}
			continue
		case <-ticker.C:
		case <-due:
		}
		due = nil
		err := t.Store(ctx)
		if ctx.Err() != nil {
			return t.storeLast(ctx)
		}
		report(err)
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return t.storeLast(ctx)
		case <-time.After(max(interval, minRetryDelay)):
		}
	}
}

// storeLast stores the deliveries from before ctx ended. The next start does it if this fails.
func (t *Tracker) storeLast(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastStoreTimeout)
	defer cancel()
	if err := t.Store(last); err != nil {
		t.log.Warn("storing engagement at the stop failed, the next start does it", "err", err)
	}
	return nil
}

// Store reads new deliveries and stores their effect, in pages. Deliveries that have none are only
// counted as read now and then: reading them again after a restart changes nothing.
func (t *Tracker) Store(ctx context.Context) error {
	for {
		_, more, readErr := t.readNext(ctx)
		read, stored, answers := t.unstored.progress()
		if answers > 0 || read-stored >= readPage {
			if err := t.storeAnd(ctx, nil); err != nil {
				return err
			}
			if _, now, _ := t.unstored.progress(); now > stored {
				continue
			}
		}
		if readErr != nil || !more {
			return readErr
		}
	}
}

// storeAnd stores the effect of all deliveries, in pages, and does then in the commit of the last
// page, unless it is nil.
func (t *Tracker) storeAnd(ctx context.Context, then func(*store.Tx) error) error {
	scope := store.Scope{"routd/engagement"} // nothing else writes what is stored here
	if then != nil {
		scope = nil
	}
	for {
		var p page
		err := t.st.WriteIn(ctx, scope, func(tx *store.Tx) error {
			p = page{states: map[key]*State{}}
			if err := p.store(ctx, tx, t); err != nil || p.more || then == nil {
				return err
			}
			return then(tx)
		})
		if err != nil {
			return err
		}
		t.unstored.drop(p.upto, p.states, !p.more)
		if len(p.early) > 0 {
			t.unstored.dropEarly(p.early)
		}
		for _, c := range p.changes {
			log := t.log.With("chat", c.ChatJID, "topic", c.Place, "folder", c.Folder, "row", c.MessageID)
			if c.slid {
				log.Debug("engagement slid")
			} else {
				log.Debug("engagement opened")
			}
		}
		if !p.more {
			return nil
		}
	}
}

// page holds the changes of one commit.
type page struct {
	upto    int64   // seq of the last delivery in it
	more    bool    // there are later ones
	early   []int64 // seqs after upto whose effect is stored too
	states  map[key]*State
	changes []change
}

// change is a delivery that slid a window or opened one, for the log.
type change struct {
	factrows.DeliveryChange
	slid bool
}

func (p *page) store(ctx context.Context, tx *store.Tx, t *Tracker) error {
	floor, _ := t.unstored.window() // before the deliveries are read
	read, last, err := rows.DeliveriesRead(ctx, tx.Reader)
	if err != nil {
		return err
	}
	deliveries, err := factrows.DeliveryChanges(ctx, tx.Reader, read, storePage)
	if err != nil {
		return err
	}
	inMemory, _, _ := t.unstored.progress() // after last if rows were deleted
	p.upto, p.more = max(last, inMemory), len(deliveries) == storePage
	if p.more {
		p.upto = deliveries[storePage-1].Seq
	}
	if tx.Beside() && floor < p.upto { // others before them may appear
		p.upto, p.more = max(read, floor), false
	}
	for _, d := range deliveries {
		if t.unstored.isEarly(d.Seq) {
			continue
		}
		if err := p.apply(ctx, tx, d, t); err != nil {
			return err
		}
		if d.Seq > p.upto {
			p.early = append(p.early, d.Seq)
		}
	}
	for _, s := range p.states {
		if err := factrows.PutEngagement(tx, s.Engagement); err != nil {
			return err
		}
	}
	if p.upto == read {
		return nil
	}
	return rows.PutDeliveriesRead(tx, p.upto)
}

func (p *page) apply(ctx context.Context, tx *store.Tx, d factrows.DeliveryChange, t *Tracker) (err error) {
	if !isAnswer(d) {
		return nil
	}
	at := key{d.ChatJID, d.Place}
	s := p.states[at]
	if s == nil {
		if s, err = load(ctx, tx.Reader, d.ChatJID, d.Place, &t.claims); err != nil {
			return err
		}
		p.states[at] = s
	}
	before := s.Engagement
	s.apply(d, t.ttl)
	if s.Until != before.Until || s.Folder != before.Folder {
		p.changes = append(p.changes, change{d, before.Folder == s.Folder && before.Open(d.At, s.PinnedAt)})
	}
	return nil
}

// load reads the state of a place in a transaction.
func load(ctx context.Context, r store.Reader, chatJID, place string, cache *rows.ClaimCache) (*State, error) {
	row, err := factrows.Engagement(ctx, r, chatJID, place)
	if err != nil {
		return nil, err
	}
	claims, err := rows.Claims(ctx, r, chatJID, place, cache)
	return &State{Engagement: row.Engagement, PinnedAt: row.PinnedAt, Claims: claims}, err
}
