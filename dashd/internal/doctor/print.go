package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"arizuko/pkg/facts"
)

// Print writes the report for an operator: one finding a line, its remedy below it.
func (r Report) Print(out io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n  fix: %s\n", f.Level, f.Text, f.Fix)
	}
	for _, fact := range r.Facts {
		fmt.Fprintf(&b, "%s\n", fact)
	}
	if len(r.Findings) == 0 {
		b.WriteString("no problem found\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// PrintJSON writes the report for programs.
func (r Report) PrintJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(struct {
		OK bool `json:"ok"`
		Report
	}{r.Count(facts.Problem) == 0, r})
}

// Summary is one line with the number of findings.
func (r Report) Summary() string {
	return facts.Count(r.Count(facts.Problem), "problem", "problems") + ", " +
		facts.Count(r.Count(facts.Warning), "warning", "warnings")
}
