package pages

import (
	"slices"

	"arizuko/pkg/egress"
)

// Egress is the page of what agents send out of their sandboxes: the rules, a form to add one, and the latest requests.
type Egress struct {
	Rules    egress.Rules
	Draft    egress.Rule        // as typed into the form
	Actions  []Option           // of a rule
	Compared *egress.Comparison // with the draft, nil for no comparison
	Problem  string             // why there is none
	Groups   []string           // to choose from
	// The requests, those of a group, to a host or in a state.
	Requests    []*egress.Receipt
	Group, Host string
	States      []Option
	Next        string // address of older ones, "" for none
	Now         int64
}

// Own are the rules of operators and users, Presets those of the first schema.
func (e Egress) Own() egress.Rules     { return e.rules(false) }
func (e Egress) Presets() egress.Rules { return e.rules(true) }

func (e Egress) rules(preset bool) egress.Rules {
	other := func(r *egress.Rule) bool { return (r.Author == "preset") != preset }
	return slices.DeleteFunc(slices.Clone(e.Rules), other)
}
