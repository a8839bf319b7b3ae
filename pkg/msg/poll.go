package msg

import (
	"encoding/json"
	"fmt"
)

// Poll is the content of a row of KindPoll.
type Poll struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
	Multiple bool     `json:"multiple"`  // a voter may choose several options
	ClosesAt int64    `json:"closes_at"` // unix ms, 0 for never
}

// ParsePoll reads the content of a row of KindPoll.
func ParsePoll(content string) (*Poll, error) {
	p := &Poll{}
	if err := json.Unmarshal([]byte(content), p); err != nil {
		return nil, fmt.Errorf("invalid poll: %w", err)
	}
	return p, nil
}
