// Package lost notifies chats about undelivered answers. All state is in rows: the notice of a row is
// derived from it, so that there is one whenever gated is killed.
package lost

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// sweepEvery is how often rows that were not delivered are looked for.
	sweepEvery = 10 * time.Second
	// perChat is how long a chat gets no further notice.
	perChat = time.Hour
	// window is how long ago a row may have ended for which its chat gets a notice, so that gated may be down for a
	// day; rowAge is how long ago it may have been queued then.
	window = 24 * time.Hour
	rowAge = 7 * 24 * time.Hour
	// maxRows bounds the rows of one sweep.
	maxRows = 20_000
)

// Notices notifies chats about undelivered answers. Its fields are set once.
type Notices struct {
	Store *store.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Run looks for such answers until ctx ends.
func (n *Notices) Run(ctx context.Context) error {
	return store.NewOutage(n.Log, "lost answers").Repeat(ctx, sweepEvery, n.Step)
}

// Step inserts the notices that are due. It may be repeated at any time.
func (n *Notices) Step(ctx context.Context) error {
	now := n.Now()
	list, err := rows.LostRows(ctx, n.Store.Reader, now.Add(-rowAge).UnixMilli(), "", maxRows)
	if err != nil || len(list) == 0 {
		return err
	}
	daemons, err := daemonrows.Daemons(ctx, n.Store.Reader)
	if err != nil {
		return err
	}
	connected := map[string]bool{}
	for _, d := range daemons {
		connected[d.Name] = d.Connection == string(daemon.Connected)
	}
	for _, l := range due(list, connected, now.UnixMilli()) {
		var id int64
		err := n.Store.Write(ctx, func(tx *store.Tx) (err error) {
			id, err = rows.PutLossNotice(tx, &l, text(&l), now.UnixMilli())
			return err
		})
		if err != nil {
			return err
		}
		if id != 0 {
			n.Log.Info("notice of a lost answer queued", "row", l.ID, "chat", l.ChatJID, "thread", l.ThreadID, "notice",
				id, "class", l.Class)
		}
	}
	return nil
}

// due are the rows, newest first, for which their chats get a notice: one of each chat, unless the chat has one
// of a row that ended less than perChat before.
func due(rows []rows.Lost, connected map[string]bool, now int64) (all []rows.Lost) {
	noticed := map[string]int64{} // when the last row ended for which a chat has a notice
	for i := range rows {
		if l := &rows[i]; l.NoticeID != 0 {
			noticed[l.ChatJID] = max(noticed[l.ChatJID], l.EndedAt)
		}
	}
	for i := range rows {
		l := &rows[i]
		last, before := noticed[l.ChatJID]
		switch {
		case !tells(l), l.EndedAt < now-window.Milliseconds():
		case before && l.EndedAt < last+perChat.Milliseconds():
		case l.Class == msg.Expired && !connected[msg.DaemonOf(l.ChatJID)]: // it would wait, too
		default:
			noticed[l.ChatJID] = l.EndedAt
			all = append(all, *l)
		}
	}
	return all
}

// tells reports whether a chat may get a notice of a row at all.
func tells(l *rows.Lost) bool {
	return l.State == msg.OutFailed && l.Source != msg.SourceNotice && !l.Kind.Changes() && l.NoticeID == 0 &&
		l.CopyID == 0
}

// text is the notice of a row.
func text(l *rows.Lost) string {
	what := "A message of mine could not be delivered here"
	if l.Sent > 0 {
		what = "The rest of a message of mine could not be delivered here"
	}
	why := map[msg.ErrorClass]string{
		msg.Permanent: "the platform refused it",
		msg.Expired:   "the platform was out of reach for too long",
		msg.Ambiguous: "the platform did not say whether it arrived",
	}[l.Class]
	if why == "" {
		why = "the platform kept failing"
	}
	return fmt.Sprintf("%s: %s. An operator can look it up and send it again: message %d.", what, why, l.ID)
}
