package groupconfig

import (
	"encoding/json"
	"slices"
)

// Operators is the value of approvers that lets operators alone answer.
const Operators = "operators"

// Approvers is who may answer the permission requests of a group's agents, besides operators, who always may: the ids of
// senders. nil, which is not set, is operators and in a direct message its user. An empty list, "operators" in JSON, is
// operators alone; a list of the word "everyone" is each user of the chat.
type Approvers []string

// Everyone reports whether each user of a chat may answer.
func (a Approvers) Everyone() bool { return slices.Equal(a, []string{Everyone}) }

// MarshalJSON writes the words "operators" and "everyone", or the list.
func (a Approvers) MarshalJSON() ([]byte, error) {
	switch {
	case len(a) == 0:
		return json.Marshal(Operators)
	case a.Everyone():
		return json.Marshal(Everyone)
	}
	return json.Marshal([]string(a))
}

// UnmarshalJSON reads what MarshalJSON writes. It checks no sender: Parse does. What is neither is operators alone.
func (a *Approvers) UnmarshalJSON(raw []byte) error {
	*a = Approvers{}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		if word == Everyone {
			*a = Approvers{Everyone}
		}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

func (a *Approvers) read(r *reader, path string, raw json.RawMessage) {
	const want = `must be "operators", "everyone" or a list of sender ids, as in ["telegram:42"]`
	*a = Approvers{}
	var word string
	if json.Unmarshal(raw, &word) == nil && (word == Operators || word == Everyone) {
		if word == Everyone {
			*a = Approvers{Everyone}
		}
		return
	}
	var senders []string
	if string(raw) == "null" || json.Unmarshal(raw, &senders) != nil {
		r.problem(path, want)
		return
	}
	if len(senders) > maxSenders {
		r.problem(path, "must have at most %d entries", maxSenders)
		return
	}
	for _, sender := range senders {
		if err := checkSender(sender); err != nil {
			r.problem(path, "%v", err)
		}
	}
	*a = append(*a, senders...)
}
