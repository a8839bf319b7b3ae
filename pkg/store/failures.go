package store

import (
	"context"
)

// minFailures is how many turns of a group must fail alike, one after another,
// before its other turns wait and one a minute is tried.
const MinFailures = 3

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
	return All(ctx, r, func(scan Scan) (f GroupFailures, err error) {
		err = scan(&f.Folder, &f.Problem, &f.Count, &f.Since, &f.ProbeAt)
		return f, err
	}, queryFailing, MinFailures)
}
