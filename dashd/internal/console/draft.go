package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
)

const (
	// maxDraftRows and maxDraft, in bytes of a form, bound the table that a page can hold: net/url reads at most 10,000
	// fields, each row has 10, and a longer page takes too long to make.
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
		waits, ok := impulseFields(r.Impulse)
		d.rows = append(d.rows, pages.DraftRow{Key: strconv.FormatInt(r.ID, 10), Impulse: waits, Raw: !ok,
			Stored: string(r.Impulse), RouteLine: pages.RouteLine{ID: r.ID, Match: r.Match, Target: r.Target}})
	}
	return d
}

// draftKey is a stored route's id, or n and a number for a new row.
var draftKey = regexp.MustCompile(`^n?[0-9]{1,18}$`)

// draftFields are those that each row of the form has once.
var draftFields = [...]string{"key", "place", "match", "target", "quiet", "hold", "threshold", "weights",
	"impulse", "raw"}

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
		field := func(name string) string { return strings.Join(strings.Fields(form[name][i]), " ") }
		row := pages.DraftRow{
			Key: key, Stored: form["impulse"][i], Raw: form["raw"][i] != "",
			RouteLine: pages.RouteLine{Match: field("match"), Target: field("target")},
			Impulse: pages.Impulse{Quiet: field("quiet"), Hold: field("hold"), Threshold: field("threshold"),
				Weights: field("weights")},
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

func (d *draft) find(key string) int {
	return slices.IndexFunc(d.rows, func(r pages.DraftRow) bool { return r.Key == key })
}

// move changes places with the row before (by -1) or after (by 1).
func (d *draft) move(key string, by int) {
	if i := d.find(key); i >= 0 && i+by >= 0 && i+by < len(d.rows) {
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

// table returns the rows as routes, and the problems of those whose fields cannot be read, by index. A row that is not
// stored has the id 0.
func (d *draft) table(stored []msg.Route) (routes []msg.Route, problems map[int]string) {
	routes, problems = make([]msg.Route, 0, len(d.rows)), map[int]string{} // [] rather than null
	known := map[int64]msg.Route{}
	for _, r := range stored {
		known[r.ID] = r
	}
	for i, row := range d.rows {
		r := msg.Route{ID: known[row.ID].ID, Seq: known[row.ID].Seq, Match: row.Match, Target: row.Target}
		config, err := rowConfig(&row)
		if err != nil {
			problems[i] = err.Error()
		}
		r.Impulse = config
		routes = append(routes, r)
	}
	sequence(routes)
	return routes, problems
}

// rowConfig is the settings of a row: the stored ones unless their fields were changed.
func rowConfig(row *pages.DraftRow) (json.RawMessage, error) {
	stored, ok := impulseFields(json.RawMessage(row.Stored))
	switch {
	case row.Raw && strings.TrimSpace(row.Stored) == "":
		return nil, nil
	case row.Raw && !json.Valid([]byte(row.Stored)):
		return nil, errors.New("the waiting settings are no JSON")
	case row.Raw, row.Stored != "" && ok && stored == row.Impulse:
		return json.RawMessage(row.Stored), nil
	}
	return impulseConfig(row.Impulse)
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
	text := cmp.Or(strings.Join(strings.Fields(r.Match), " "), "everything") + " → " + r.Target
	if words := waitWords(r.Impulse); words != "" {
		text += ", " + words
	}
	return pages.Excerpt(text)
}

// impulse is the settings of a route that are set, as they are stored.
type impulse struct {
	Hold      *int64            `json:"max_hold_ms,omitempty"`
	Quiet     *int64            `json:"quiet_ms,omitempty"`
	Threshold *uint64           `json:"threshold,omitempty"`
	Weights   map[string]uint64 `json:"weights,omitempty"`
}

// impulseFields reads stored settings as an operator types them; ok is false if they are invalid.
func impulseFields(config json.RawMessage) (f pages.Impulse, ok bool) {
	if len(config) == 0 {
		return f, true
	}
	if _, err := (msg.Impulse{}).Merge(config); err != nil {
		return f, false
	}
	var set impulse
	if json.Unmarshal(config, &set) != nil {
		return f, false
	}
	if set.Quiet != nil {
		f.Quiet = duration(*set.Quiet)
	}
	if set.Hold != nil {
		f.Hold = duration(*set.Hold)
	}
	if set.Threshold != nil {
		f.Threshold = strconv.FormatUint(*set.Threshold, 10)
	}
	var weights []string
	for _, verb := range slices.Sorted(maps.Keys(set.Weights)) {
		if strings.ContainsAny(verb, "= \t\n") {
			return f, false
		}
		weights = append(weights, fmt.Sprintf("%s=%d", verb, set.Weights[verb]))
	}
	f.Weights = strings.Join(weights, " ")
	return f, true
}

// duration writes milliseconds as an operator would: 500ms, 3s, 5m.
func duration(ms int64) string {
	switch {
	case ms%1000 != 0:
		return fmt.Sprintf("%dms", ms)
	case ms >= 60_000 && ms%60_000 == 0:
		return fmt.Sprintf("%dm", ms/60_000)
	}
	return fmt.Sprintf("%ds", ms/1000)
}

// impulseConfig is the settings as JSON, nil if none is set.
func impulseConfig(f pages.Impulse) (config json.RawMessage, err error) {
	if f == (pages.Impulse{}) {
		return nil, nil
	}
	set := impulse{Weights: map[string]uint64{}}
	if set.Quiet, err = milliseconds("wait for silence", f.Quiet); err != nil {
		return nil, err
	}
	if set.Hold, err = milliseconds("wait at most", f.Hold); err != nil {
		return nil, err
	}
	if f.Threshold != "" {
		n, err := strconv.ParseUint(f.Threshold, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("the weight that starts a turn is a whole number, not %.40q", f.Threshold)
		}
		set.Threshold = &n
	}
	for pair := range strings.FieldsSeq(f.Weights) {
		verb, text, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil || verb == "" {
			return nil, fmt.Errorf("weights are written as reaction=0 message=50, not %.40q", pair)
		}
		set.Weights[verb] = n
	}
	return json.Marshal(set)
}

// milliseconds reads 500ms, 3s, 5m or a number of seconds in a field; nil if it is empty.
func milliseconds(field, text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	value := text
	if _, err := strconv.ParseUint(text, 10, 31); err == nil {
		value += "s"
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d%time.Millisecond != 0 {
		return nil, fmt.Errorf("%s: a time is written as 500ms, 3s or 5m, not %.40q", field, text)
	}
	ms := d.Milliseconds()
	return &ms, nil
}
