package docs

import (
	"slices"
	"strings"
	"testing"
)

// TestMetrics_Table_IsThatOfTheCode compares the page with the source. What running daemons answer is
// compared with the page in deploy/e2e/platforms.
func TestMetrics_Table_IsThatOfTheCode(t *testing.T) {
	t.Parallel()
	inCode := metrics(t)
	if len(inCode) < 40 {
		t.Fatalf("only %d metrics found in the code: %v", len(inCode), inCode)
	}
	var onPage []string
	table, _, _ := strings.Cut(read(t, "docs/reference/metrics.md"), "\n## ")
	for _, row := range rows(table) {
		if len(row) != 6 || row[4] == "" {
			t.Fatalf("row %q does not have name, type, labels, unit, daemons, meaning", row)
		}
		name := strings.Trim(row[0], "`")
		onPage = append(onPage, name)
		m, ok := inCode[name]
		switch {
		case !ok:
			t.Errorf("the page has %s, the code does not", name)
			continue
		case row[1] != m.kind:
			t.Errorf("%s is a %s, not a %s", name, m.kind, row[1])
		case !slices.Equal(codes(row[2]), m.labels):
			t.Errorf("%s has labels %q, not %q", name, m.labels, codes(row[2]))
		case row[5] != m.help:
			t.Errorf("%s is %q in the code, not %q", name, m.help, row[5])
		}
		checkMetricName(t, name, m, row[3])
	}
	if !slices.IsSorted(onPage) {
		t.Error("the table is not sorted")
	}
	for name := range inCode {
		if !slices.Contains(onPage, name) {
			t.Errorf("the page does not have %s", name)
		}
	}
}

// checkMetricName holds names to Prometheus's conventions: base units, _total for counters alone.
func checkMetricName(t *testing.T, name string, m metric, unit string) {
	t.Helper()
	if (m.kind == "counter") != strings.HasSuffix(name, "_total") {
		t.Errorf("%s is a %s: counters alone end in _total", name, m.kind)
	}
	if m.kind == "histogram" && !strings.HasSuffix(name, "_seconds") {
		t.Errorf("%s: what is its unit?", name)
	}
	base := strings.TrimSuffix(name, "_total")
	seconds, bytes := strings.HasSuffix(base, "_seconds"), strings.HasSuffix(base, "_bytes")
	if seconds != strings.HasSuffix(unit, "s") && unit != "bytes" && (seconds || unit == "s") || bytes != (unit == "bytes") {
		t.Errorf("%s has the unit %q", name, unit)
	}
	for _, label := range m.labels {
		if slices.Contains([]string{"chat", "sender", "folder", "topic", "title", "row", "turn"}, label) {
			t.Errorf("%s has the label %s: its values are not bounded, or strangers write them", name, label)
		}
	}
}

func TestMetrics_Labels_AreExplained(t *testing.T) {
	t.Parallel()
	explained := map[string]bool{}
	for _, row := range rows(section(t, read(t, "docs/reference/metrics.md"), "## Values of labels")) {
		for _, name := range codes(row[0]) {
			explained[name] = true
		}
	}
	for name, m := range metrics(t) {
		for _, label := range m.labels {
			if !explained[label] {
				t.Errorf("the page does not explain the label %s of %s", label, name)
			}
		}
	}
}
