package engagement

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/store"
)

// key is a place of a chat.
type key struct{ chatJID, place string }

// unstored has the answers whose deliveries were read and whose effect is not stored yet. Its lock is
// held for memory only, never during a read or write of the database.
type unstored struct {
	mu      sync.Mutex
	read    int64 // seq of the last delivery read
	floor   store.Floor
	stored  int64 // seq up to which their effect is stored
	answers map[key][]factrows.DeliveryChange
	count   int
	early   map[int64]bool // seqs after stored whose effect is stored: of a server, where others before them may appear
}

// begin sets how far deliveries were read and stored by the routd before.
func (u *unstored) begin(seq int64) {
	u.read, u.stored, u.floor.At, u.answers = seq, seq, seq, map[key][]factrows.DeliveryChange{}
	u.early = map[int64]bool{}
}

// progress returns the seqs of the last delivery read and stored, and how many answers lie between.
func (u *unstored) progress() (read, stored int64, answers int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.read, u.stored, u.count
}

// window returns the seq after which deliveries are to be read, and how many after it were read before.
func (u *unstored) window() (after int64, seen int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.floor.At, u.floor.Seen()
}

// ask is the floor's Ask.
func (u *unstored) ask(ctx context.Context, r store.Reader) error {
	u.mu.Lock()
	floor := u.floor
	u.mu.Unlock()
	running, err := floor.Running(ctx, r)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.floor.Note(running)
	return nil
}

// add keeps the answers among deliveries, which are in order of seq, and returns their number.
func (u *unstored) add(r store.Reader, deliveries []factrows.DeliveryChange) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, d := range deliveries {
		if !u.floor.See(d.Seq) {
			continue
		}
		u.read = max(u.read, d.Seq)
		if isAnswer(d) {
			at := key{d.ChatJID, d.Place}
			u.answers[at] = append(u.answers[at], d)
			n++
		}
	}
	u.count += n
	if len(deliveries) > 0 {
		u.floor.Raise(r, deliveries[len(deliveries)-1].Seq)
	}
	return n
}

// of returns the answers delivered to a place, in order of seq.
func (u *unstored) of(at key) []factrows.DeliveryChange {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answers[at] // appended to and replaced, never changed
}

// places returns the places of a chat that answers were delivered to.
func (u *unstored) places(chatJID string) (places []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for at := range u.answers {
		if at.chatJID == chatJID {
			places = append(places, at.place)
		}
	}
	return places
}

// isEarly reports whether the effect of a delivery after stored is stored.
func (u *unstored) isEarly(seq int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.early[seq]
}

// dropEarly forgets answers after stored whose effect is stored.
func (u *unstored) dropEarly(seqs []int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, seq := range seqs {
		u.early[seq] = true
	}
	for at, answers := range u.answers {
		left := slices.DeleteFunc(slices.Clone(answers), func(d factrows.DeliveryChange) bool { return u.early[d.Seq] })
		u.count -= len(answers) - len(left)
		if u.answers[at] = left; len(left) == 0 {
			delete(u.answers, at)
		}
	}
}

// drop forgets the answers of places up to a seq, whose effect is stored; all is for those of every
// place.
func (u *unstored) drop(seq int64, places map[key]*State, all bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stored, u.read = max(u.stored, seq), max(u.read, seq)
	u.floor.Pass(seq)
	maps.DeleteFunc(u.early, func(early int64, _ bool) bool { return early <= seq })
	for at := range places {
		u.dropOf(at, seq)
	}
	if all {
		for at := range u.answers {
			u.dropOf(at, seq)
		}
	}
}

func (u *unstored) dropOf(at key, seq int64) {
	answers := u.answers[at]
	n, _ := slices.BinarySearchFunc(answers, seq+1, func(d factrows.DeliveryChange,
		seq int64) int {
		return cmp.Compare(d.Seq, seq)
	})
	u.count -= n
	if u.answers[at] = answers[n:]; n == len(answers) {
		delete(u.answers, at)
	}
}
