package rows_test

import (
	"arizuko/pkg/msg"
)

func turnIDs(turns []*msg.Turn) (all []int64) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}
