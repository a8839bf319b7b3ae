package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// line is one line of the table.
type line struct {
	what     string
	measured float64
	unit     string
	budget   float64 // 0: none, told for information
	atLeast  bool    // the budget is a minimum
	floor    float64 // what the floor program measures; 0: nothing
	note     string
}

func (l line) over() bool {
	switch {
	case l.budget == 0:
		return false
	case l.atLeast:
		return l.measured < l.budget
	}
	return l.measured > l.budget
}

// report is the whole output, in Markdown.
func report(machine string, lines []line, quick bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", machine)
	if quick {
		b.WriteString("A quick run: the numbers mean nothing.\n\n")
	}
	b.WriteString("| what | measured | budget | floor | ratio | verdict |\n|---|--:|--:|--:|--:|---|\n")
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			l.text(), quantity(l.measured, l.unit), l.limit(), l.floorText(), l.ratio(), l.verdict(quick))
	}
	return b.String()
}

func (l line) text() string {
	if l.note == "" {
		return l.what
	}
	return l.what + " (" + l.note + ")"
}

func (l line) limit() string {
	switch {
	case l.budget == 0:
		return ""
	case l.atLeast:
		return "≥ " + quantity(l.budget, l.unit)
	}
	return "≤ " + quantity(l.budget, l.unit)
}

func (l line) floorText() string {
	if l.floor == 0 {
		return ""
	}
	return quantity(l.floor, l.unit)
}

func (l line) ratio() string {
	if l.floor == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", l.measured/l.floor)
}

func (l line) verdict(quick bool) string {
	switch {
	case l.budget == 0 || quick:
		return ""
	case l.over():
		return "**over**"
	}
	return "ok"
}

// quantity shows three digits, and large numbers whole.
func quantity(v float64, unit string) string {
	number := strconv.FormatFloat(v, 'g', 3, 64)
	if v >= 100 {
		number = strconv.FormatFloat(v, 'f', 0, 64)
	}
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// percentile is the smallest duration that p percent are not above, in ms; 0
// of none.
func percentile(p int, all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := (len(sorted)*p + 99) / 100
	return milliseconds(sorted[max(rank, 1)-1])
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
