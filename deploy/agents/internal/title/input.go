package title

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Input is the input of a call: a command as it is, other arguments as JSON. Only groups that want it show it.
func Input(args json.RawMessage) string {
	var known struct {
		Command json.RawMessage `json:"command"`
	}
	var words []string
	var text string
	_ = json.Unmarshal(args, &known) // of another form
	if json.Unmarshal(known.Command, &text) == nil && text != "" {
		return text
	}
	if json.Unmarshal(known.Command, &words) == nil && len(words) > 0 {
		return strings.Join(words, " ")
	}
	var compact bytes.Buffer
	if json.Compact(&compact, args) != nil || compact.String() == "null" || compact.String() == "{}" {
		return ""
	}
	return compact.String()
}
