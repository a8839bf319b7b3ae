package daemon

import (
	"maps"
	"slices"
	"sync"
)

// Readiness is what /readyz answers. The zero value is ready. It is safe for concurrent use.
type Readiness struct {
	mu      sync.Mutex
	waiting map[string]string
	notes   []string
}

// Wait sets the reason, in words for an operator, why the daemon waits for what; an empty reason
// ends the wait.
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

// Note replaces the notes: problems that do not make the daemon unready, such as ignored rows.
func (r *Readiness) Note(notes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = slices.Clone(notes)
}

// Status returns the reasons to wait, sorted, and the notes.
func (r *Readiness) Status() (waiting, notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.waiting)), slices.Clone(r.notes)
}
