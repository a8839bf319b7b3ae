package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// Lane is a thread of a chat, in which outbound rows keep their order: answers among themselves, and decorations, see
// msg.Message.Decorates.
type Lane struct {
	ChatJID     string
	ThreadID    string
	Decorations bool
}

func scanLane(scan scanner) (l Lane, err error) {
	err = scan(&l.ChatJID, &l.ThreadID, &l.Decorations)
	return l, err
}

// OutboxLanes lists the threads of a platform with outbound rows to deliver, each as a lane of answers.
func (r Reader) OutboxLanes(ctx context.Context, platform string) ([]Lane, error) {
	lanes, err := collect(ctx, r, func(scan scanner) (l Lane, err error) {
		err = scan(&l.ChatJID, &l.ThreadID)
		return l, err
	}, queryOutboxLanes, platform)
	if err != nil {
		return nil, err
	}
	moving, err := collect(ctx, r, one[string], queryNotDelivered)
	if len(moving) > 0 {
		lanes = slices.DeleteFunc(lanes, func(l Lane) bool { return slices.Contains(moving, l.ChatJID) })
	}
	return lanes, err
}

// NewOutbound lists the lanes of a platform with outbound rows to deliver among the
// rows after a row id, and returns the id of the last row there is.
func (r Reader) NewOutbound(ctx context.Context, platform string, after int64) (lanes []Lane, last int64, err error) {
	if last, err = r.LastMessageID(ctx); err != nil || last <= after {
		return nil, after, err
	}
	lanes, err = collect(ctx, r, scanLane, queryNewOutbound, after, last, platform)
	return lanes, last, err
}

// OldOutbound lists the lanes of a platform with outbound rows to deliver that were received before a time, in
// unix ms.
func (r Reader) OldOutbound(ctx context.Context, platform string, before int64) ([]Lane, error) {
	return collect(ctx, r, scanLane, queryOldOutbound, platform, before)
}

// ActiveLanes lists the lanes of a platform that have a running turn.
func (r Reader) ActiveLanes(ctx context.Context, platform string) ([]Lane, error) {
	return collect(ctx, r, func(scan scanner) (l Lane, err error) {
		err = scan(&l.ChatJID, &l.ThreadID)
		return l, err
	}, queryActiveLanes, platform+":", platform+";") // all addresses that begin with the platform and a colon
}

// ActiveTriggers lists the platform ids of the messages that started a lane's running turns.
func (r Reader) ActiveTriggers(ctx context.Context, l Lane) ([]string, error) {
	return collect(ctx, r, func(scan scanner) (id string, err error) {
		err = scan(&id)
		return id, err
	}, queryActiveTriggers, l.ChatJID, l.ThreadID)
}

// NextOutbound is the oldest queued or sending row of a lane, nil if there is none. Decorations of messages that are
// still being delivered come after all others.
func (r Reader) NextOutbound(ctx context.Context, l Lane) (*msg.Message, error) {
	platform, _ := msg.SplitJID(l.ChatJID)
	query := queryNextOutbound
	if l.Decorations {
		query = queryNextDecoration
	}
	return first(r.messages(ctx, query, platform, l.ChatJID, l.ThreadID))
}

// Superseded reports whether a newer row that is to be delivered makes a decoration needless: one of the same kind for
// the same message, and with the same emoji, or the deletion of that message.
func (r Reader) Superseded(ctx context.Context, m *msg.Message) (yes bool, err error) {
	platform, _ := msg.SplitJID(m.ChatJID)
	_, err = r.get(ctx, []any{&yes}, querySuperseded, platform, m.ChatJID, m.ThreadID, m.ID, m.Kind,
		strings.TrimPrefix(m.Content, "-"), m.TargetID, m.DerivedFrom)
	return yes, err
}

// Delivery is the delivery of one part of an outbound row. Times are unix
// milliseconds; an empty string stands for NULL.
type Delivery struct {
	MessageID  int64
	Part       int
	State      msg.OutState
	Attempts   int
	NotBefore  int64 // the next attempt is not made before
	PlatformID string
	ErrorClass msg.ErrorClass
	Error      string
}

// Deliveries returns a row's parts in order, none if it was not claimed yet.
func (r Reader) Deliveries(ctx context.Context, messageID int64) ([]Delivery, error) {
	return collect(ctx, r, func(scan scanner) (d Delivery, err error) {
		err = scan(&d.MessageID, &d.Part, &d.State, &d.Attempts, &d.NotBefore, &d.PlatformID, &d.ErrorClass, &d.Error)
		return d, err
	}, queryDeliveries, messageID)
}

// Target returns the outbound row that an outbound row is about, as it was delivered, with its edits before
// that row; nil if the row names none.
func (r Reader) Target(ctx context.Context, m *msg.Message) (*msg.Target, error) {
	if m.DerivedFrom == 0 || endsCopy(m) {
		return nil, nil
	}
	target, err := r.Message(ctx, m.DerivedFrom)
	if err != nil || target == nil || target.Direction != msg.Out {
		return nil, err
	}
	t := &msg.Target{
		Kind: target.Kind, Files: len(target.Attachments),
		Open: target.OutState == msg.OutQueued || target.OutState == msg.OutSending,
	}
	if t.Parts, err = r.sentParts(ctx, target.ID); err != nil {
		return nil, err
	}
	changes, err := r.DerivedFrom(ctx, target.ID)
	for _, c := range changes {
		if err != nil || c.ID >= m.ID || c.Kind != msg.KindEdit || endsCopy(c) {
			continue
		}
		e := msg.SentEdit{Content: c.Content}
		e.Parts, err = r.sentParts(ctx, c.ID)
		t.Edits = append(t.Edits, e)
	}
	return t, err
}

// endsCopy reports whether a row is one of EndCopy: about the message that it names itself.
func endsCopy(m *msg.Message) bool { return m.Source == msg.SourceNotice && m.TargetID != "" }

func (r Reader) sentParts(ctx context.Context, id int64) (parts []msg.SentPart, err error) {
	all, err := r.Deliveries(ctx, id)
	for _, d := range all {
		sent := d.State == msg.OutSent || d.State == msg.OutAmbiguous
		parts = append(parts, msg.SentPart{PlatformID: d.PlatformID, Sent: sent})
	}
	return parts, err
}

// ClaimOutbound claims a queued row for delivery in a number of parts, at least
// one, and marks the first as sending. It returns ErrStale if the row is not
// queued.
func (tx *Tx) ClaimOutbound(messageID int64, parts int, now int64) error {
	tx.note(failpoint.ClaimOutbound)
	n, err := tx.change(updateClaimOutbound, messageID)
	if err == nil && n == 0 {
		err = fmt.Errorf("claim row %d: %w", messageID, ErrStale)
	}
	state := msg.OutSending
	for part := 0; err == nil && part < max(parts, 1); part++ {
		err = tx.PutDelivery(Delivery{MessageID: messageID, Part: part, State: state}, now)
		state = msg.OutQueued
	}
	return err
}

// PutDelivery writes the state of a part, as the latest delivery change.
func (tx *Tx) PutDelivery(d Delivery, now int64) error {
	tx.note(failpoint.PutDelivery)
	err := tx.exec(putDelivery, d.MessageID, d.Part, d.State, d.Attempts, d.NotBefore, null(d.PlatformID),
		null(d.ErrorClass), null(cleanText(d.Error)), now)
	if err == nil && d.PlatformID != "" {
		err = tx.exec(updateEndQuotedOfOwn, d.MessageID, d.PlatformID) // a user answered it before this was known
	}
	if err == nil {
		tx.Poke("routd") // the first part that is delivered opens an engagement
	}
	return err
}

// SettleOutbound ends the delivery of a claimed row as sent, ambiguous or failed.
// platformID is that of its first part, "" for none; it is not stored if another
// row of the chat has it. It returns ErrStale if the row is not sending.
func (tx *Tx) SettleOutbound(messageID int64, state msg.OutState, platformID string) error {
	tx.note(failpoint.SettleOutbound)
	n, err := tx.change(updateSettleOutbound, state, null(platformID), messageID)
	if err == nil && n == 0 {
		err = fmt.Errorf("settle row %d: %w", messageID, ErrStale)
	}
	return err
}

// PutCursor stores a daemon's value under a key, such as how far it has read.
func (tx *Tx) PutCursor(daemon, key, value string) error {
	tx.note(failpoint.PutCursor)
	return tx.exec(`INSERT INTO cursors (daemon, key, value) VALUES (?,?,?)
		ON CONFLICT (daemon, key) DO UPDATE SET value = excluded.value`, daemon, key, value)
}

// DeleteCursor deletes a daemon's value under a key.
func (tx *Tx) DeleteCursor(daemon, key string) error {
	return tx.exec(`DELETE FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursor is a daemon's value under a key, "" for none.
func (r Reader) DaemonCursor(ctx context.Context, daemon, key string) (string, error) {
	return value[string](ctx, r, `SELECT value FROM cursors WHERE daemon = ? AND key = ?`, daemon, key)
}

// DaemonCursors returns a daemon's values by key, for keys with a prefix.
func (r Reader) DaemonCursors(ctx context.Context, daemon, prefix string) (map[string]string, error) {
	all := map[string]string{}
	_, err := collect(ctx, r, func(scan scanner) (struct{}, error) {
		var key, value string
		err := scan(&key, &value)
		all[key] = value
		return struct{}{}, err
	}, `SELECT key, value FROM cursors WHERE daemon = ? AND substr(key, 1, length(?2)) = ?2`, daemon, prefix)
	return all, err
}
