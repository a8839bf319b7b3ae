package groupconfig

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
)

// paths are all known paths. A table of routes reads the configurations of all groups, so they are made once.
var paths = sync.OnceValue(func() []string {
	all := sections()
	for _, k := range Keys() {
		all = append(all, k.Path)
	}
	return slices.Clip(all)
})

// sections are those that have others below them.
func sections() []string { return []string{"agent", "budget", "limits", "roles", "timeouts"} }

// renamed are the present paths of settings, by their former ones, which are read as well.
var renamed = map[string]string{"access": "roles.ask", "approvers": "roles.approve"}

// nearest is the known path most similar to an unknown one: the last name counts first, then the
// whole path.
func nearest(unknown string) string {
	const maxLength = 64 // a longer one is similar to none
	unknown = unknown[:min(len(unknown), maxLength)]
	best := slices.MinFunc(slices.AppendSeq(paths(), maps.Keys(renamed)), func(a, b string) int {
		return cmp.Or(
			cmp.Compare(distance(last(unknown), last(a)), distance(last(unknown), last(b))),
			cmp.Compare(distance(unknown, a), distance(unknown, b)),
		)
	})
	return cmp.Or(renamed[best], best)
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// distance is how many bytes must be added, removed or changed to turn a into b.
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
