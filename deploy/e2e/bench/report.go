package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figure is a row of the table.
type figure struct {
	name     string
	measured float64
	unit     string
	budget   float64 // 0: none
	more     bool    // more is better, and budget and ratio are minima
	floor    float64 // measured with the floor program; 0: not measured
	note     string

	// ratio is the budget of measured ÷ floor, 0: none. It holds on any machine, unlike a budget of time.
	ratio float64

	// compared is the value that -against compares, 0 if it compares none. comparedUnit is its unit,
	// "" if that is unit.
	compared     float64
	comparedUnit string
}

func (f figure) over() bool {
	return f.misses(f.measured, f.budget) || f.floor != 0 && f.misses(f.measured/f.floor, f.ratio)
}

func (f figure) misses(measured, budget float64) bool {
	switch {
	case budget == 0:
		return false
	case f.more:
		return measured < budget
	}
	return measured > budget
}

// hasBudget reports whether the figure can be over a budget.
func (f figure) hasBudget() bool { return f.budget != 0 || f.ratio != 0 && f.floor != 0 }

// onlyPrinted reports whether the page leaves the figure out: it has no budget, and no page explains it.
func (f figure) onlyPrinted() bool { return !f.hasBudget() && !strings.HasPrefix(f.name, "step ") }

// report returns the machine and the table in markdown.
func report(machine string, figures []figure, quick bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", machine)
	if quick {
		b.WriteString("Quick run: the figures mean nothing.\n\n")
	}
	b.WriteString("| figure | measured | budget | floor | ratio | result |\n|---|--:|--:|--:|--:|---|\n")
	for _, f := range figures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n",
			f.title(), quantity(f.measured, f.unit), f.budgetText(), f.floorText(), f.ratioText(), f.result(quick))
	}
	return b.String()
}

func (f figure) title() string {
	if f.note == "" {
		return f.name
	}
	return f.name + " (" + f.note + ")"
}

func (f figure) budgetText() string {
	sign := "≤ "
	if f.more {
		sign = "≥ "
	}
	switch {
	case f.budget != 0:
		return sign + quantity(f.budget, f.unit)
	case f.ratio != 0:
		return sign + quantity(f.ratio, "") + " × floor"
	}
	return ""
}

func (f figure) floorText() string {
	if f.floor == 0 {
		return ""
	}
	return quantity(f.floor, f.unit)
}

func (f figure) ratioText() string {
	if f.floor == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", f.measured/f.floor)
}

func (f figure) result(quick bool) string {
	switch {
	case !f.hasBudget() || quick:
		return ""
	case f.over():
		return "**over budget**"
	}
	return "ok"
}

// quantity formats a value with three digits, large ones without fraction, and NaN as nothing.
func quantity(v float64, unit string) string {
	if math.IsNaN(v) {
		return ""
	}
	number := strconv.FormatFloat(v, 'g', 3, 64)
	if v >= 100 {
		number = strconv.FormatFloat(v, 'f', 0, 64)
	}
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// percentile returns the smallest duration in ms that p percent don't exceed, 0 for no durations.
func percentile(p int, all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := (len(sorted)*p + 99) / 100
	return milliseconds(sorted[max(rank, 1)-1])
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
