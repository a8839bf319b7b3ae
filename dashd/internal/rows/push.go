package rows

import (
	"context"
	"encoding/base64"
	"errors"

	"arizuko/pkg/apierr"
	"arizuko/pkg/store"
	"arizuko/pkg/webpush"
)

// PushDevice is a browser that is notified by Web Push. The times are unix ms, 0 for never.
type PushDevice struct {
	webpush.Subscription
	ID                          int64
	Login, Name                 string
	Kinds                       string // that are on, with spaces between them
	CreatedAt, SentAt, FailedAt int64
	Error                       string // of the last failure
}

// PushDevices are the browsers that are notified, the newest first.
func PushDevices(ctx context.Context, r store.Reader) ([]*PushDevice, error) {
	return store.All(ctx, r, func(scan store.Scan) (*PushDevice, error) {
		d, key, auth := &PushDevice{}, "", ""
		err := scan(&d.ID, &d.Login, &d.Endpoint, &key, &auth, &d.Name, &d.Kinds, &d.CreatedAt, &d.SentAt,
			&d.FailedAt, &d.Error)
		d.Key, _ = base64.RawURLEncoding.DecodeString(key) // keys are checked before they are stored, and when they are used
		d.Auth, _ = base64.RawURLEncoding.DecodeString(auth)
		return d, err
	}, queryPushDevices)
}

// PutPushDevice stores a browser's subscription, with all kinds on if it is new. The limit is on the browsers of a login.
func PutPushDevice(tx *store.Tx, d *PushDevice, limit int) error {
	var others int
	if _, err := tx.Find([]any{&others}, queryCountPushDevices, d.Login, d.Endpoint); err != nil {
		return err
	}
	if others >= limit {
		return apierr.New(apierr.Conflict, "there are %d devices already: remove one", others)
	}
	return tx.Exec(`INSERT INTO push_subscriptions (login, endpoint, p256dh, auth, device, created_at) VALUES (?,?,?,?,?,?)
		ON CONFLICT (endpoint) DO UPDATE SET login = excluded.login, p256dh = excluded.p256dh, auth = excluded.auth`,
		d.Login, d.Endpoint, base64.RawURLEncoding.EncodeToString(d.Key), base64.RawURLEncoding.EncodeToString(d.Auth), d.Name,
		d.CreatedAt)
}

// SetPushKinds sets which kinds of notices a browser gets.
func SetPushKinds(tx *store.Tx, id int64, kinds string) error {
	return tx.Exec(`UPDATE push_subscriptions SET kinds = ? WHERE id = ?`, kinds, id)
}

// DeletePushDevice forgets a browser.
func DeletePushDevice(tx *store.Tx, id int64) error {
	return errors.Join(tx.Exec(`DELETE FROM push_notices WHERE subscription_id = ?`, id),
		tx.Exec(`DELETE FROM push_subscriptions WHERE id = ?`, id))
}

// PushEvent is what a notice is about.
type PushEvent struct {
	Key          string // which one
	Kind         string // answer, question or problem
	Folder, Name string // of the group in whose web chat it is, or "" and the problem
	At           int64  // unix ms
}

// PushEvents are the answers and the open questions of web chats from one time to another, in unix ms, and all problems
// that last. An answer counts if its turn took at least so many ms from its message to its end, and is among the newest
// 2,000.
func PushEvents(ctx context.Context, r store.Reader, from, to, took int64) ([]PushEvent, error) {
	return store.All(ctx, r, func(scan store.Scan) (e PushEvent, err error) {
		err = scan(&e.Key, &e.Kind, &e.Folder, &e.Name, &e.At)
		return e, err
	}, queryPushEvents, from, to, took)
}

// PushNotice is what a browser was sent.
type PushNotice struct {
	Device int64
	Event  string
}

// PushNotices are all that are kept, each with its time in unix ms.
func PushNotices(ctx context.Context, r store.Reader) (map[PushNotice]int64, error) {
	notices := map[PushNotice]int64{}
	return notices, r.Each(ctx, func(scan store.Scan) (bool, error) {
		var (
			n  PushNotice
			at int64
		)
		err := scan(&n.Device, &n.Event, &at)
		notices[n] = at
		return true, err
	}, queryPushNotices)
}

// PutPushNotice stores that a browser was sent an event, or with a problem that it can't be, and forgets notices from
// before a time, but not those of problems that last.
func PutPushNotice(tx *store.Tx, n PushNotice, problem string, now, keep int64) error {
	column := "sent_at"
	if problem != "" {
		column = "failed_at"
	}
	return errors.Join(
		tx.Exec(`INSERT INTO push_notices (subscription_id, event, at) VALUES (?,?,?) ON CONFLICT (subscription_id, event) DO NOTHING`,
			n.Device, n.Event, now),
		tx.Exec(queryForgetPushes, keep),
		tx.Exec(`UPDATE push_subscriptions SET `+column+` = ?, error = ? WHERE id = ?`, now, problem, n.Device))
}
