// Package adapter is the shell that every platform's adapter runs in. It stores what a platform
// sends as inbound rows, delivers the platform's outbound rows in order, and records both, so that
// a platform only has to cut a row into parts, to send one part, and to listen.
package adapter

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Platform is the part of an adapter that differs by platform.
type Platform interface {
	// Cut renders an outbound row into the parts that are sent one after another. The same row
	// gives the same parts, also after a restart. An error means that the platform cannot express
	// the row: the row fails permanently.
	Cut(m *msg.Message) ([]Part, error)
	// Send delivers one part and returns the id the platform gave it, "" if it gives none. It never
	// retries, nor sends another form of the part: that is Failure.Other. An error is a *Failure, or a
	// *Remark on a part that was sent; any other error counts as ambiguous.
	Send(ctx context.Context, m *msg.Message, part Part) (platformID string, err error)
}

// Finder is a platform that can look for a part that may have been sent. It is not asked for parts that
// are Repeatable.
type Finder interface {
	// Find returns the id of the part, "" if it is certain that it never arrived. A *Failure of
	// class Permanent means that this cannot be found out; after other errors Find is retried.
	Find(ctx context.Context, m *msg.Message, part Part) (platformID string, err error)
}

// Marker is a platform that can mark a part as a possible duplicate. Parts that are Repeatable are not
// marked.
type Marker interface {
	Mark(part Part) Part
}

// Seeder is a platform where users need reactions of the bot on a row that was sent, such as one for each option of a
// poll. They are rows of their own, so that no answer waits for them.
type Seeder interface {
	Seeds(m *msg.Message) (emoji []string)
}

// Undoer is a platform where an answer can have a button that takes its turn back, see msg.Message.UndoUntil.
type Undoer interface {
	// RemoveUndo takes the button away from the message that shows a part, which was cut without it. It is no error if
	// the message is gone, or has no button. It never retries; its error is a *Failure.
	RemoveUndo(ctx context.Context, m *msg.Message, part Part, platformID string) error
}

// Part is something that a platform sends with one call, in a type of its own.
type Part any

// Repeatable is a Part that may be sent twice without harm if Repeatable returns true, such as an edit. If it may have
// arrived, it is sent again unchanged, and never searched for or marked.
type Repeatable interface {
	Repeatable() bool
}

// Upload is a Part with files.
type Upload interface {
	UploadSize() int64 // bytes
}

// Options of New.
type Options struct {
	Settings                    // a DeliveryMaxAge of 0 is a day; only a Fetcher needs those of files
	Platform  string            // the first part of its chat addresses
	Daemon    string            // the daemon that runs the adapter: the source of its inbound rows
	Listener  Listener          // keeps the platform's connection, nil if it has none
	Store     *store.Store      // holds the rows
	Heartbeat *daemon.Heartbeat // notified of every event
	Wake      <-chan struct{}   // new outbound rows may be there
	Pace      Pace
	// Redact hides secrets in texts that are sent and in errors; nil hides none.
	Redact func(string) string
	// Growing is Redact of a text whose end is still to come; nil is Redact.
	Growing func(string) string
	// Data is the data folder, below which downloaded files go. Only a Fetcher needs it.
	Data string
	// Settled, if not nil, is called for every outbound row whose end is stored.
	Settled func(*msg.Message)
	// Note replaces the notes of /readyz; nil drops them.
	Note    func(notes ...string)
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Shell runs one platform's adapter.
type Shell struct {
	Options
	platform  Platform
	previewer Previewer // nil if the platform shows no previews
	// previewNews has a value when something may be due about a preview.
	previewNews chan struct{}
	counters    *counters
	pacer       *pacer
	admission   *admission
	competing   competing
	lanes       *laneLocks
	reads       *store.Outage
	writes      *store.Outage
}

// New makes the shell of a platform. The caller runs Run.
func New(p Platform, o Options) *Shell {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	if o.Growing == nil {
		o.Growing = o.Redact
	}
	if o.Note == nil {
		o.Note = func(...string) {}
	}
	o.DeliveryMaxAge = cmp.Or(o.DeliveryMaxAge, 24*time.Hour)
	_, fetches := p.(Fetcher)
	previewer, previews := p.(Previewer)
	admission := newAdmission(o.Listener != nil, o.Log)
	s := &Shell{
		Options: o, platform: p, counters: newCounters(&o, fetches, previews), previewer: previewer,
		previewNews: make(chan struct{}, 1),
		pacer:       newPacer(o.Pace), admission: admission, lanes: newLaneLocks(),
		reads:  store.NewOutage(o.Log, "read"),
		writes: store.NewOutage(o.Log, "write"),
	}
	if o.Listener != nil {
		o.Metrics.MustRegister(unanswered(admission), competingGauge(&s.competing))
	}
	return s
}
