package why

import (
	"fmt"
	"strings"

	"arizuko/pkg/agentproto"
)

// Used is the usage of a turn in words, "" if its agent did not say.
func Used(u agentproto.Usage) string {
	var all []string
	if u.Input > 0 || u.Output > 0 {
		all = append(all, fmt.Sprintf("tokens read: %d, written: %d", u.Input, u.Output))
	}
	if u.CostUSD > 0 {
		all = append(all, fmt.Sprintf("US dollars: %.4f", u.CostUSD))
	}
	if u.ContextUsed > 0 && u.ContextSize > 0 {
		all = append(all, fmt.Sprintf("conversation: %d %% of its room", u.ContextUsed*100/u.ContextSize))
	}
	return strings.Join(all, "; ")
}
