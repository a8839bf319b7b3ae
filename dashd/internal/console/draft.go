package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

const (
	// maxDraftRows and maxDraft, in bytes of a form, bound the table that a page can hold: net/url reads at most 10,000
	// fields, each row has 5, and a longer page takes too long to make.
	maxDraftRows = 500
	maxDraft     = 700 << 10
)

// draft is a copy of the table while it is edited, in the order of its rows.
type draft struct {
	digest string // of the stored table that it began with
	rows   []pages.DraftRow
}

// newDraft copies the stored table.
func newDraft(digest string, routes []msg.Route) *draft {
	d := &draft{digest: digest}
	for _, r := range routes {
		d.rows = append(d.rows, pages.DraftRow{Key: strconv.FormatInt(r.ID, 10), Impulse: oneLine(string(r.Impulse)),
			RouteLine: pages.RouteLine{ID: r.ID, Match: r.Match, Target: r.Target}})
	}
	return d
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// draftKey is a stored route's id, or n and a number for a new row.
var draftKey = regexp.MustCompile(`^n?[0-9]{1,18}$`)

// draftFields are those that each row of the form has once.
var draftFields = [...]string{"key", "place", "match", "target", "impulse"}

// readDraft reads the form of the page. Rows whose place was changed go there.
func readDraft(form url.Values) (*draft, error) {
	n := len(form["key"])
	if n > maxDraftRows {
		return nil, apierr.New(apierr.BadRequest, "%d routes, at most %d can be edited here", n, maxDraftRows)
	}
	d := &draft{digest: form.Get("digest")}
	for _, name := range draftFields {
		if len(form[name]) != n {
			return nil, apierr.New(apierr.BadRequest, "the form is broken: it has %d keys and %d fields %s", n,
				len(form[name]), name)
		}
	}
	seen := map[string]bool{}
	places := make([]int, n)
	for i := range n {
		key := form["key"][i]
		if !draftKey.MatchString(key) || seen[key] {
			return nil, apierr.New(apierr.BadRequest, "the form is broken: key %.40q", key)
		}
		seen[key] = true
		row := pages.DraftRow{
			Key: key, Impulse: oneLine(form["impulse"][i]),
			RouteLine: pages.RouteLine{Match: oneLine(form["match"][i]), Target: oneLine(form["target"][i])},
		}
		row.ID, _ = strconv.ParseInt(key, 10, 64)                        // 0 for a new one
		places[i], _ = strconv.Atoi(strings.TrimSpace(form["place"][i])) // anything else than a number moves nothing
		d.rows = append(d.rows, row)
	}
	d.place(places)
	return d, nil
}

// place moves the rows whose typed place is another than theirs.
func (d *draft) place(places []int) {
	type move struct {
		to  int
		row pages.DraftRow
	}
	var moved []move
	var rest []pages.DraftRow
	for i, row := range d.rows {
		if to := places[i]; to > 0 && to != i+1 {
			moved = append(moved, move{to, row})
		} else {
			rest = append(rest, row)
		}
	}
	slices.SortStableFunc(moved, func(a, b move) int { return cmp.Compare(a.to, b.to) })
	for _, m := range moved {
		rest = slices.Insert(rest, min(m.to-1, len(rest)), m.row)
	}
	d.rows = rest
}

// move changes places with the row before (by -1) or after (by 1).
func (d *draft) move(key string, by int) {
	i := slices.IndexFunc(d.rows, func(r pages.DraftRow) bool { return r.Key == key })
	if i >= 0 && i+by >= 0 && i+by < len(d.rows) {
		d.rows[i], d.rows[i+by] = d.rows[i+by], d.rows[i]
	}
}

func (d *draft) remove(key string) {
	d.rows = slices.DeleteFunc(d.rows, func(r pages.DraftRow) bool { return r.Key == key })
}

// nextKey is the key of the next row that is added.
func (d *draft) nextKey() string {
	last := 0
	for _, r := range d.rows {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Key, "n")); err == nil && strings.HasPrefix(r.Key, "n") {
			last = max(last, n)
		}
	}
	return fmt.Sprintf("n%d", last+1)
}

// add inserts a row before the first one that matches everything: behind that it would do nothing.
func (d *draft) add(match string) {
	at := slices.IndexFunc(d.rows, func(r pages.DraftRow) bool { return r.Match == "" && r.Target != "" })
	if at < 0 {
		at = len(d.rows)
	}
	d.rows = slices.Insert(d.rows, at, pages.DraftRow{Key: d.nextKey(), RouteLine: pages.RouteLine{Match: match}})
}

// table returns the rows as routes. A row that is not stored has the id 0.
func (d *draft) table(stored []msg.Route) []msg.Route {
	routes := make([]msg.Route, 0, len(d.rows)) // [] rather than null
	known := map[int64]msg.Route{}
	for _, r := range stored {
		known[r.ID] = r
	}
	for _, row := range d.rows {
		r := known[row.ID]
		r.Match, r.Target = row.Match, row.Target
		if oneLine(string(r.Impulse)) != row.Impulse {
			r.Impulse = json.RawMessage(row.Impulse)
		}
		routes = append(routes, r)
	}
	sequence(routes)
	return routes
}

// sequence sets the order numbers of rows so that they are tried as they stand. Numbers that hold stay.
func sequence(routes []msg.Route) {
	if len(routes) > 1 && routes[0].ID == 0 && routes[1].Seq > math.MinInt64 {
		routes[0].Seq = routes[1].Seq - 1
	}
	for i := 1; i < len(routes); i++ {
		before, r := routes[i-1], &routes[i]
		later := r.ID == 0 || before.ID != 0 && r.ID > before.ID // with the same number
		switch {
		case r.Seq > before.Seq, r.Seq == before.Seq && later:
		case later:
			r.Seq = before.Seq
		case before.Seq == math.MaxInt64:
			for i := range routes {
				routes[i].Seq = int64(i)
			}
			return
		default:
			r.Seq = before.Seq + 1
		}
	}
}

// differences describes the changes from one table to another.
func differences(from, to []msg.Route) (changes []string) {
	before := map[int64]msg.Route{}
	for _, r := range from {
		before[r.ID] = r
	}
	kept := map[int64]bool{}
	moved := 0
	for i, r := range to {
		old, ok := before[r.ID]
		kept[r.ID] = true
		switch {
		case !ok:
			changes = append(changes, fmt.Sprintf("add at place %d: %s", i+1, routeText(r)))
		case routeText(old) != routeText(r):
			changes = append(changes, fmt.Sprintf("change route %d: %s; before: %s", r.ID, routeText(r),
				routeText(old)))
		case old.Seq != r.Seq:
			moved++
		}
	}
	for _, r := range from {
		if !kept[r.ID] {
			changes = append(changes, fmt.Sprintf("delete route %d: %s", r.ID, routeText(r)))
		}
	}
	if moved > 0 {
		changes = append(changes, fmt.Sprintf("another order: %d routes get another order number", moved))
	}
	return changes
}

func routeText(r msg.Route) string {
	text := cmp.Or(oneLine(r.Match), "everything") + " → " + r.Target
	if words := waitWords(r.Impulse); words != "" {
		text += ", " + words
	}
	return pages.Excerpt(text)
}
