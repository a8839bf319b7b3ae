// Package redecided counts how what a database has stored compares with what this program decides, for `gated
// redecide`.
package redecided

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"arizuko/pkg/cli"
)

// Check is one kind of decisions, such as those about messages.
type Check struct {
	What        string
	Same        int
	Different   int
	Examples    []string       // of different ones, at most maxExamples
	NotCompared map[string]int // how many, by the reason
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

// Print prints the counts, and the examples below them.
func (c *Check) Print(out io.Writer) {
	fmt.Fprintf(out, "%s: %d as stored, %d different\n", c.What, c.Same, c.Different)
	for _, example := range c.Examples {
		fmt.Fprintf(out, "  %s\n", cli.PrintableLine(example))
	}
	if more := c.Different - len(c.Examples); more > 0 {
		fmt.Fprintf(out, "  and %d more\n", more)
	}
	for _, why := range slices.Sorted(maps.Keys(c.NotCompared)) {
		fmt.Fprintf(out, "  not compared: %d, %s\n", c.NotCompared[why], cli.PrintableLine(why))
	}
}
