package store

import (
	"math"
)

func OrNewest(position int64) int64 {
	if position == 0 {
		return math.MaxInt64
	}
	return position
}

// allChanges is a row id after all edits and deletions.
const AllChanges = math.MaxInt64
