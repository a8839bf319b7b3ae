package store

import (
	"context"

	"arizuko/pkg/msg"
)

// minFailures is how many turns of a group must fail alike, one after another,
// before its other turns wait and one a minute is tried.
const minFailures = 3

// GroupFailures is a group whose turns fail alike.
type GroupFailures struct {
	Folder  string
	Problem string
	Count   int
	Since   int64
	ProbeAt int64 // when the next turn is tried
}

// FailingGroups returns the groups whose turns wait because they fail alike.
func (r Reader) FailingGroups(ctx context.Context) ([]GroupFailures, error) {
	return collect(ctx, r, func(scan scanner) (f GroupFailures, err error) {
		err = scan(&f.Folder, &f.Problem, &f.Count, &f.Since, &f.ProbeAt)
		return f, err
	}, queryFailing, minFailures)
}

// ProbeAt is when a group whose turns fail alike may try the next one, in unix ms,
// 0 for other groups.
func (r Reader) ProbeAt(ctx context.Context, folder string) (int64, error) {
	return value[int64](ctx, r, queryProbeAt, folder, minFailures)
}

// CountFailure records that a turn of a group has failed, and reports whether the
// group's turns now fail alike: then the next one is tried at probeAt.
func (tx *Tx) CountFailure(folder, problem string, now, probeAt int64) (alike bool, err error) {
	var count int
	if _, err := tx.find([]any{&count}, putFailures, folder, problem, now); err != nil || count < minFailures {
		return false, err
	}
	return true, tx.SetProbe(folder, probeAt)
}

// SetProbe sets when a failing group may try the next turn.
func (tx *Tx) SetProbe(folder string, at int64) error {
	return tx.exec(updateProbeAt, at, folder)
}

// ClearFailures records that a turn of a group was answered, and reports whether one
// had failed before. It returns the lanes whose turns waited because of that.
func (tx *Tx) ClearFailures(folder string) (cleared bool, lanes []string, err error) {
	n, err := tx.change(deleteFailures, folder)
	if err != nil || n == 0 {
		return false, nil, err
	}
	tx.pokePeers()
	lanes, err = collect(uncancelled(), tx.Reader, one[string], updateProbed, folder)
	return true, lanes, err
}

// NotifiedOf reports whether a chat got a notice of a turn that failed in the same
// way since a time, in unix ms.
func (r Reader) NotifiedOf(ctx context.Context, chatJID string, kind msg.ErrorKind, since int64) (bool, error) {
	return value[bool](ctx, r, queryNotifiedOf, chatJID, since, kind)
}

// HasNotice reports whether arizuko itself has written to the chat about a turn.
func (r Reader) HasNotice(ctx context.Context, turnID int64) (bool, error) {
	return value[bool](ctx, r, queryNoticed, turnID)
}

// HasNoticeText reports whether a turn's chat has had a notice with this text.
func (r Reader) HasNoticeText(ctx context.Context, turnID int64, text string) (bool, error) {
	return value[bool](ctx, r, queryNoticedText, turnID, text)
}
