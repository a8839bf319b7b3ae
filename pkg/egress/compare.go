package egress

import (
	"slices"
	"strings"
)

// With returns the rules with a further one at the place that its Seq says: before those with the same, or a greater
// one.
func (all Rules) With(rule *Rule) Rules {
	at := slices.IndexFunc(all, func(r *Rule) bool { return r.Seq >= rule.Seq })
	if at < 0 {
		at = len(all)
	}
	return slices.Insert(slices.Clone(all), at, rule)
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
