package egress

import (
	"slices"
	"strings"
)

// Last is a place in the order of rules: after all others. 0 is the place before all others, and the ID of a rule that
// directly before it.
const Last = -1

// Place returns the rules with one of them, or a further one, at a place, as Last describes. ok is false if no other
// rule has the ID before.
func (all Rules) Place(rule *Rule, before int64) (placed Rules, ok bool) {
	for _, r := range all {
		if rule.ID == 0 || r.ID != rule.ID {
			placed = append(placed, r)
		}
	}
	at := 0
	switch before {
	case 0:
	case Last:
		at = len(placed)
	default:
		at = slices.IndexFunc(placed, func(r *Rule) bool { return r.ID == before })
	}
	if at < 0 {
		return nil, false
	}
	return slices.Insert(placed, at, rule), true
}

// Draft is a rule that an operator adds or tries.
type Draft struct {
	Rule
	Before int64 `json:"before,omitempty"` // its place, see Last
}

// Comparison is what other rules would have decided about recorded requests.
type Comparison struct {
	Requests int       `json:"requests"` // that were compared
	Changed  int       `json:"changed"`  // of them, those that would be decided otherwise
	Examples []Example `json:"examples"` // of these, the newest first
}

// Example is a request that would be decided otherwise. Was and Would are actions, with the name of the secret for
// Inject, or "opened" for a connection of which the requests are not known, and would be looked at.
type Example struct {
	ID      int64  `json:"id"` // of the receipt
	At      int64  `json:"at"` // unix ms
	Folder  string `json:"folder"`
	Request string `json:"request"` // as Receipt.Request says it
	Was     string `json:"was"`
	Would   string `json:"would"`
}

// Compare decides about recorded requests, the newest first, again: by these rules and by others. It returns as many
// examples as asked for.
func (all Rules) Compare(others Rules, requests []*Receipt, examples int) *Comparison {
	c := &Comparison{Requests: len(requests), Examples: []Example{}}
	for _, r := range requests {
		was, would := all.decide(r), others.decide(r)
		if was == would {
			continue
		}
		c.Changed++
		if len(c.Examples) < examples {
			c.Examples = append(c.Examples, Example{r.ID, r.At, r.Folder, r.Request(), was, would})
		}
	}
	return c
}

func (all Rules) decide(r *Receipt) string {
	q := r.ForRules()
	rule := all.For(q)
	if r.Method == Connect {
		var decided bool
		if rule, decided = all.ForHost(q); !decided {
			return "opened"
		}
	}
	if rule == nil {
		return string(Ask)
	}
	return strings.TrimSpace(string(rule.Action) + " " + rule.Secret)
}
