package docs

import (
	"slices"
	"strings"
	"testing"
)

// metricRows are the rows of the page: name, type, labels, unit, daemons and meaning. What running daemons answer is
// compared with the page in deploy/e2e/platforms.
func metricRows(t *testing.T) [][]string {
	t.Helper()
	table, _, _ := strings.Cut(read(t, "docs/reference/metrics.md"), "\n## ")
	return rows(table)
}

// metrics are the types of the metrics on the page, by name.
func metrics(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for _, row := range metricRows(t) {
		kinds[strings.Trim(row[0], "`")] = row[1]
	}
	return kinds
}

// TestMetrics_Names_FollowPrometheus holds names to its conventions: base units, _total for counters alone, and labels
// with bounded values.
func TestMetrics_Names_FollowPrometheus(t *testing.T) {
	t.Parallel()
	for _, row := range metricRows(t) {
		name, kind := strings.Trim(row[0], "`"), row[1]
		if (kind == "counter") != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s: counters alone end in _total", name, kind)
		}
		if kind == "histogram" && !strings.HasSuffix(name, "_seconds") {
			t.Errorf("%s: the unit is missing", name)
		}
		for _, label := range codes(row[2]) {
			if slices.Contains([]string{"chat", "sender", "folder", "topic", "title", "row", "turn"}, label) {
				t.Errorf("%s has the label %s: its values are not bounded, or strangers write them", name, label)
			}
		}
	}
}
