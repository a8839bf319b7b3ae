package docs

import (
	"slices"
	"strings"
	"testing"
)

func TestOperations_StepsInTheLog_AreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	inCode := literals(t)
	steps := rows(section(t, read(t, "docs/reference/log.md"), "## The steps of a message"))
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
	keys, _, _ := strings.Cut(read(t, "docs/reference/log.md"), "\n## ")
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
