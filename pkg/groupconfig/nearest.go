package groupconfig

import (
	"cmp"
	"slices"
	"strings"
)

// paths are all there are.
func paths() []string {
	return []string{
		"assistant_name", "observe", "agent", "limits", "timeouts",
		"agent.command", "agent.image", "agent.runtime", "agent.model", "agent.env", "agent.settings",
		"limits.memory", "limits.cpus", "limits.pids", "timeouts.timeout", "timeouts.idle",
	}
}

// nearest is the known path most like one that is not: its last name counts, wherever it
// stands, and between equals the rest.
func nearest(unknown string) string {
	const longest = 64 // what is longer is like nothing anyway
	unknown = unknown[:min(len(unknown), longest)]
	return slices.MinFunc(paths(), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(distance(last(unknown), last(a)), distance(last(unknown), last(b))),
			cmp.Compare(distance(unknown, a), distance(unknown, b)),
		)
	})
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// distance is how many bytes must be added, removed or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
