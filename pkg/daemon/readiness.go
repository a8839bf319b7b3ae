package daemon

import (
	"maps"
	"slices"
	"sync"
)

// Readiness is what /readyz tells. The zero value is ready; it is safe for concurrent use.
type Readiness struct {
	mu      sync.Mutex
	waiting map[string]string
	notes   []string
}

// Wait says that the daemon waits for something, in words for an operator; an empty reason
// says it does no longer.
func (r *Readiness) Wait(what, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason == "" {
		delete(r.waiting, what)
		return
	}
	if r.waiting == nil {
		r.waiting = make(map[string]string)
	}
	r.waiting[what] = reason
}

// Note replaces the remarks that do not make the daemon unready, such as ignored rows.
func (r *Readiness) Note(notes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = slices.Clone(notes)
}

// Status lists what is waited for, sorted, and the remarks.
func (r *Readiness) Status() (waiting, notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.waiting)), slices.Clone(r.notes)
}
