package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

const (
	// progressEvery is how often a line says how far it is.
	progressEvery = 5 * time.Second
	// maxNotes bounds the notes that are printed and kept, one line each.
	maxNotes = 100
)

// report prints progress and notes, and counts the notes.
type report struct {
	w     io.Writer
	last  time.Time
	notes Notes
}

func newReport(w io.Writer) *report { return &report{w: w, last: time.Now()} }

// progress prints a line if none was printed for a while.
func (r *report) progress(format string, args ...any) {
	if time.Since(r.last) >= progressEvery {
		r.last = time.Now()
		fmt.Fprintf(r.w, format+"\n", args...)
	}
}

func (r *report) skipped(name, why string) { r.note(&r.notes.Skipped, name, "not in the backup: "+why) }

// failed notes a file that could not be opened, listed or read to its end. One that is not there was removed.
func (r *report) failed(name string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		r.note(&r.notes.Vanished, name, "removed before it was read")
		return
	}
	r.note(&r.notes.Unreadable, name, fmt.Sprintf("not in the backup: %v", err))
}

// note prints and keeps the first ones. Names come from agents: they are quoted.
func (r *report) note(count *int64, name, what string) {
	*count++
	switch n := len(r.notes.First); {
	case n < maxNotes:
		line := fmt.Sprintf("%q: %s", name, what)
		r.notes.First = append(r.notes.First, line)
		fmt.Fprintln(r.w, line)
	case n == maxNotes:
		fmt.Fprintln(r.w, "further files are only counted")
		r.notes.First = append(r.notes.First, "…")
	}
}
