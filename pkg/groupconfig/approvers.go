package groupconfig

import (
	"encoding/json"
	"errors"
	"slices"
)

// Operators is the value of approvers that lets operators alone answer.
const Operators = "operators"

// Approvers is who may answer the permission requests of a group's agents, besides operators, who always may: the ids
// of senders. nil, which is not set, is operators and in a direct message its user. An empty list, "operators" in JSON,
// is operators alone; a list of the word "everyone" is each user of the chat.
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

// UnmarshalJSON reads the output of MarshalJSON. It checks no sender: Parse does. Anything else is an error, and
// operators alone.
func (a *Approvers) UnmarshalJSON(raw []byte) error {
	*a = Approvers{}
	var word string
	if json.Unmarshal(raw, &word) == nil && (word == Operators || word == Everyone) {
		if word == Everyone {
			*a = Approvers{Everyone}
		}
		return nil
	}
	var senders []string
	if err := json.Unmarshal(raw, &senders); err != nil {
		return err
	}
	if slices.Contains(senders, Everyone) {
		return errors.New("everyone is a word, not one of a list")
	}
	*a = append(*a, senders...)
	return nil
}
