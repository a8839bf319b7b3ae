package migrations

import "slices"

// Redecided is what `gated redecide` prints, as JSON: how what a database has stored compares with what the program
// decides.
type Redecided struct {
	Settings string  `json:"settings"` // the data it has decided with, in words
	Checks   []Check `json:"checks"`
}

// Check is one kind of decisions, such as those about messages.
type Check struct {
	What        string         `json:"what"`
	Same        int            `json:"same"`
	Different   int            `json:"different"`
	Examples    []string       `json:"examples,omitempty"`     // of different ones, at most maxExamples
	NotCompared map[string]int `json:"not_compared,omitempty"` // how many, by the reason
}

// maxExamples bounds the examples of a check.
const maxExamples = 20

// Differ counts a difference.
func (c *Check) Differ(example string) {
	if c.Different++; c.Different <= maxExamples {
		c.Examples = append(c.Examples, example)
	}
}

// Leave counts one that cannot be compared.
func (c *Check) Leave(why string) {
	if c.NotCompared == nil {
		c.NotCompared = map[string]int{}
	}
	c.NotCompared[why]++
}

// Reasons are the reasons of NotCompared, sorted.
func (c *Check) Reasons() []string {
	reasons := make([]string, 0, len(c.NotCompared))
	for why := range c.NotCompared {
		reasons = append(reasons, why)
	}
	slices.Sort(reasons)
	return reasons
}
