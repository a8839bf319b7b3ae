package daemon

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// Readiness is the answer of /readyz. The zero value is ready. It is safe for concurrent use.
type Readiness struct {
	mu      sync.Mutex
	waiting map[string]wait
	notes   map[string][]string
}

// wait is why a daemon is not ready.
type wait struct {
	reason string
	cause  error // nil if there is no more to say
}

// Wait sets the reason, in words for an operator, why the daemon waits for the thing; an empty reason
// ends the wait. /readyz shows the reason to everyone who can connect, so it names no row, folder or
// error; cause is among the notes.
func (r *Readiness) Wait(what, reason string, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reason == "" {
		delete(r.waiting, what)
		return
	}
	if r.waiting == nil {
		r.waiting = make(map[string]wait)
	}
	r.waiting[what] = wait{reason, cause}
}

// Note replaces the notes about something: problems that do not make the daemon unready, such as ignored rows.
func (r *Readiness) Note(about string, notes ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.notes == nil {
		r.notes = map[string][]string{}
	}
	r.notes[about] = slices.Clone(notes)
}

// Status returns the reasons to wait, in a fixed order, and the notes.
func (r *Readiness) Status() (waiting, notes []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(r.waiting)) {
		w := r.waiting[what]
		waiting = append(waiting, w.reason)
		if w.cause != nil {
			notes = append(notes, detail(w.reason, w.cause))
		}
	}
	notes = slices.DeleteFunc(notes, func(note string) bool { return note == "" })
	for _, about := range slices.Sorted(maps.Keys(r.notes)) {
		notes = append(notes, r.notes[about]...)
	}
	return waiting, notes
}

// detail is a cause's text without the reason, with which it may begin.
func detail(reason string, cause error) string {
	rest, repeats := strings.CutPrefix(cause.Error(), reason)
	switch rest = strings.Trim(rest, " ()"); {
	case !repeats:
		return reason + ": " + rest
	case rest == "":
		return ""
	}
	return "cause: " + rest
}
