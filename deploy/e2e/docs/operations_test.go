package docs

import (
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/msg"
)

func TestOperations_Metrics_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	inCode := metrics(t)
	if len(inCode) < 8 {
		t.Fatalf("only %d metrics found in the code: %v", len(inCode), inCode)
	}
	onPage := map[string]bool{}
	for _, row := range rows(section(t, read(t, "docs/operations.md"), "## Metrics")) {
		if len(row) != 6 || row[4] == "" {
			t.Fatalf("row %q does not have name, type, labels, daemons, meaning, alert", row)
		}
		name := strings.Trim(row[0], "`")
		onPage[name] = true
		m, ok := inCode[name]
		switch {
		case !ok:
			t.Errorf("the page has %s, the code does not", name)
		case row[1] != m.kind:
			t.Errorf("%s is a %s, not a %s", name, m.kind, row[1])
		case !slices.Equal(codes(row[2]), m.labels):
			t.Errorf("%s has labels %q, not %q", name, m.labels, codes(row[2]))
		}
	}
	for name := range inCode {
		if !onPage[name] {
			t.Errorf("the page does not have %s", name)
		}
	}
}

func TestOperations_StepsInTheLog_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	inCode := literals(t)
	steps := rows(section(t, read(t, "docs/operations.md"), "### The steps of a message"))
	if len(steps) < 10 {
		t.Errorf("only %d steps found", len(steps))
	}
	for _, row := range steps {
		if message := strings.Trim(row[0], "`"); !inCode[message] {
			t.Errorf("the page has the line %q, no daemon logs it", message)
		}
	}
}

func TestOperations_LogKeys_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	inCode := logKeys(t)
	var onPage []string
	keys, _, _ := strings.Cut(section(t, read(t, "docs/operations.md"), "## Log lines"), "\n### ")
	for _, row := range rows(keys) {
		onPage = append(onPage, strings.Trim(row[0], "`"))
	}
	if !slices.IsSorted(onPage) {
		t.Errorf("keys are not sorted: %q", onPage)
	}
	for _, key := range onPage {
		if !slices.Contains(inCode, key) {
			t.Errorf("the page has key %q, no log line does", key)
		}
	}
	for _, key := range inCode {
		if !slices.Contains(onPage, key) {
			t.Errorf("the page does not have key %q", key)
		}
	}
}

func TestOperations_ReasonCodes_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	var inCode, onPage []string
	for _, r := range msg.Reasons {
		inCode = append(inCode, "`"+string(r.Code)+"` "+r.Meaning)
	}
	for _, row := range rows(section(t, read(t, "docs/operations.md"), "## Reason codes")) {
		onPage = append(onPage, row[0]+" "+row[1])
	}
	for _, line := range inCode {
		if !slices.Contains(onPage, line) {
			t.Errorf("the page does not have: %s", line)
		}
	}
	for _, line := range onPage {
		if !slices.Contains(inCode, line) {
			t.Errorf("the code does not have: %s", line)
		}
	}
}
