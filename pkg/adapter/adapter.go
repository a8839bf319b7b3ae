// Package adapter is the shell that every platform's adapter runs in. It stores what a
// platform sends as inbound rows, delivers the platform's outbound rows in order, and keeps
// account of both, so that what is left to a platform is how to cut a row into parts and how
// to send one.
package adapter

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/daemon"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Platform is what differs from one adapter to the next.
type Platform interface {
	// Cut renders an outbound row into the parts that are sent one after another. The same
	// row gives the same parts, also after a restart. An error means that the row can't be
	// said on this platform; it fails for good.
	Cut(m *msg.Message) ([]Part, error)
	// Send delivers one part and returns the id the platform gave it, "" if it gives none.
	// It never tries twice: an error is a *Failure, or a *Remark on what was sent; anything else
	// counts as ambiguous.
	Send(ctx context.Context, m *msg.Message, part Part) (platformID string, err error)
}

// Finder is a platform that can look for a part that may have been sent.
type Finder interface {
	// Find returns the id of the part, "" if it is certain that it never arrived. A *Failure of
	// class Permanent says that nobody will ever tell; other errors have it asked again.
	Find(ctx context.Context, m *msg.Message, part Part) (platformID string, err error)
}

// Marker is a platform that can say of a part that it may be there twice.
type Marker interface {
	Mark(part Part) Part
}

// Part is what a platform sends in one go, in terms of its own.
type Part any

// Failure is why a part was not delivered.
type Failure struct {
	Class msg.ErrorClass
	After time.Duration // of a rate failure: how long the platform asks to wait
	Err   error
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Class, f.Err) }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Remark says that a part was sent, though not quite as it was meant. The record keeps it.
type Remark struct{ Text string }

func (r *Remark) Error() string { return r.Text }

// Options of New.
type Options struct {
	Platform  string            // the platform as it stands in chat addresses
	Daemon    string            // who runs the adapter: the source of its inbound rows
	Store     *store.Store      // where the rows are
	Heartbeat *daemon.Heartbeat // notified of every event
	Wake      <-chan struct{}   // new outbound rows may be there
	Poll      time.Duration     // how often to look without being woken
	// Repeatable says that sending a part twice does no harm. A part that may have arrived is
	// then sent again as it is; on other platforms it ends as ambiguous.
	Repeatable bool
	// Mark has a part that may have arrived sent again, marked as a possible duplicate, by a
	// platform that is a Marker: up to three times, once it is connected. Without it nobody sends
	// it again.
	Mark bool
	Pace Pace
	// Redact hides secrets in what is sent and in errors; nil hides none.
	Redact func(string) string
	// Data is the data folder, below which downloaded files go; MediaMax is how large one may
	// be, in bytes. Only a Fetcher needs them.
	Data     string
	MediaMax int64
	// Settled, if not nil, is told of every outbound row whose end is stored.
	Settled func(*msg.Message)
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Shell runs one platform's adapter.
type Shell struct {
	Options
	platform Platform
	parts    *prometheus.CounterVec
	slots    chan struct{} // one for each row that may be on its way at once
	pacer    *pacer
	files    chan struct{} // wakes who downloads
	online   atomic.Bool   // the platform's connection holds
	lanes    laneLocks
}

// New makes the shell of a platform. The caller runs Run.
func New(p Platform, o Options) *Shell {
	parts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_outbox_parts_total", Help: "Parts of outbound rows that were tried, by how it went.",
	}, []string{"platform", "state"})
	o.Metrics.MustRegister(parts)
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}
	return &Shell{
		Options: o, platform: p, parts: parts, slots: make(chan struct{}, maxSends), pacer: newPacer(o.Pace, o.Now),
		files: make(chan struct{}, 1),
	}
}

// Inbound is what an adapter has read and stores in one transaction, before it acknowledges
// anything to the platform.
type Inbound struct {
	Messages []*msg.Message
	Chats    []msg.Chat // what is known of the chats; their pins are not touched
	Threads  []msg.Thread
	Moved    *Moved  // a chat has another address now
	Cursor   *Cursor // how far the platform has been read, nil to leave it
}

// Moved is a chat's old address and its new one.
type Moved struct{ From, To string }

// Cursor is a daemon's own bookmark.
type Cursor struct{ Key, Value string }

// Receive stores what came in; each message then has its row id. Direction, source and
// receiving time are filled in, the timestamp where it is missing, and so is the thread of a
// reaction, an edit or a deletion if the message that it is about stands in one. A message that is stored
// already changes nothing, and takes the id of its row.
func (s *Shell) Receive(ctx context.Context, in Inbound) error {
	now := s.Now().UnixMilli()
	for _, m := range in.Messages {
		m.Direction, m.Source, m.ReceivedAt = msg.In, s.Daemon, now
		if m.Timestamp == 0 {
			m.Timestamp = now
		}
	}
	s.Heartbeat.Event()
	failpoint.At(failpoint.Received)
	err := s.Store.Write(ctx, func(tx *store.Tx) error {
		if in.Moved != nil {
			if err := tx.MoveChat(in.Moved.From, in.Moved.To, now); err != nil {
				return err
			}
		}
		for _, c := range in.Chats {
			if err := tx.PutChat(c.JID, c.Kind, c.Title, now); err != nil {
				return err
			}
		}
		for _, t := range in.Threads {
			if err := tx.PutThread(t); err != nil {
				return err
			}
		}
		for _, m := range in.Messages {
			if err := followTarget(ctx, tx, m); err != nil {
				return err
			}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		if in.Cursor == nil {
			return nil
		}
		return tx.PutCursor(s.Daemon, in.Cursor.Key, in.Cursor.Value)
	})
	select {
	case s.files <- struct{}{}:
	default:
	}
	return err
}

// followTarget puts a row where the message is that it is about: platforms say of some events
// only the chat.
func followTarget(ctx context.Context, tx *store.Tx, m *msg.Message) error {
	if m.TargetID == "" || m.ThreadID != "" {
		return nil
	}
	target, err := tx.MessageByPlatformID(ctx, m.ChatJID, m.TargetID)
	if err == nil && target != nil && target.ThreadID != "" {
		m.ThreadID, m.Topic = target.ThreadID, target.ThreadID
	}
	return err
}
