package rows_test

import (
	"arizuko/pkg/msg"
)

func textsOf(rows []*msg.Message) (all []string) {
	for _, m := range rows {
		all = append(all, m.Content)
	}
	return all
}
