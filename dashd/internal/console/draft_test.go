package console

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/msg"
)

// formOf is the form that the page sends for a copy.
func formOf(d *draft) url.Values {
	form := url.Values{"digest": {d.digest}}
	for i, r := range d.rows {
		raw := ""
		if r.Raw {
			raw = "1"
		}
		for name, value := range map[string]string{
			"key": r.Key, "place": fmt.Sprint(i + 1), "match": r.Match, "target": r.Target, "quiet": r.Quiet, "hold": r.Hold,
			"threshold": r.Threshold, "weights": r.Weights, "impulse": r.Stored, "raw": raw,
		} {
			form[name] = append(form[name], value)
		}
	}
	return form
}

func keys(d *draft) string {
	var all []string
	for _, r := range d.rows {
		all = append(all, r.Key)
	}
	return strings.Join(all, " ")
}

func stored() []msg.Route {
	return []msg.Route{
		{ID: 4, Seq: -1, Match: "sender=telegram:6", Target: "builtin:drop"},
		{ID: 1, Match: "chat_jid=telegram:-1", Target: "acme", Impulse: json.RawMessage(`{"weights":{"reaction":5},"quiet_ms":3000}`)},
		{ID: 2, Match: "platform=slack", Target: "acme#observe"},
		{ID: 3, Target: "daemon:onbod"},
	}
}

func TestDraft_Unchanged_IsTheStoredTable(t *testing.T) {
	d, err := readDraft(formOf(newDraft("x", stored())))
	if err != nil {
		t.Fatal(err)
	}
	routes, problems := d.table(stored())
	if len(problems) > 0 || fmt.Sprint(routes) != fmt.Sprint(stored()) || d.digest != "x" {
		t.Errorf("%v, problems %v", routes, problems)
	}
	if changes := differences(stored(), routes); len(changes) != 0 {
		t.Errorf("changes: %q", changes)
	}
}

func TestDraft_Places_RowsGoWhereTyped(t *testing.T) {
	for typed, want := range map[string]string{
		"1 2 3 4": "4 1 2 3",
		"4 2 3 4": "1 2 3 4", // the first to the end: the last typed its own place
		"1 2 3 1": "3 4 1 2",
		"9 2 3 4": "1 2 3 4",
		"x 2  -4": "4 1 2 3", // no places
		"2 1 3 4": "1 4 2 3",
	} {
		form := formOf(newDraft("", stored()))
		form["place"] = strings.Split(typed, " ")
		d, err := readDraft(form)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(d); got != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
}

func TestDraft_Buttons_MoveAddDelete(t *testing.T) {
	d := newDraft("", stored())
	d.move("4", -1)
	d.move("3", 1)
	d.move("none", 1)
	if got := keys(d); got != "4 1 2 3" {
		t.Errorf("at the ends: %s", got)
	}
	d.move("4", 1)
	d.move("3", -1)
	d.remove("1")
	d.add("") // before the route that matches everything
	d.add("")
	if got := keys(d); got != "4 n2 n1 3 2" && got != "4 n1 n2 3 2" {
		t.Errorf("edited: %s", got)
	}
	empty := newDraft("", nil)
	empty.add("")
	if got := keys(empty); got != "n1" {
		t.Errorf("the first: %s", got)
	}
}

func TestReadDraft_BrokenForm_BadRequest(t *testing.T) {
	many := newDraft("", slices.Repeat(stored(), 251))
	for want, change := range map[string]func(url.Values){
		"4 keys and 3 fields match": func(f url.Values) { f["match"] = f["match"][1:] },
		"0 fields raw":              func(f url.Values) { f.Del("raw") },
		`key "4"`:                   func(f url.Values) { f["key"][1] = "4" },
		`key "1 x"`:                 func(f url.Values) { f["key"][1] = "1 x" },
		`key ""`:                    func(f url.Values) { f["key"][1] = "" },
		"1004 routes, at most 500": func(f url.Values) {
			for name, values := range formOf(many) {
				f[name] = values
			}
		},
	} {
		form := formOf(newDraft("", stored()))
		change(form)
		if _, err := readDraft(form); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Rows are stored so that they are tried as they stand on the page, and an id of a route that is gone is a new row's.
func TestDraft_AnyOrder_IsTriedInThatOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var before []msg.Route
		for id := range rapid.IntRange(0, 6).Draw(t, "stored") {
			seq := rapid.SampledFrom([]int64{0, 0, 1, 2, math.MinInt64, math.MaxInt64, math.MaxInt64 - 1}).Draw(t, "seq")
			before = append(before, msg.Route{ID: int64(id + 1), Seq: seq, Target: fmt.Sprint("t", id)})
		}
		d := newDraft("", before)
		for n := range rapid.IntRange(0, 3).Draw(t, "new") {
			d.rows = append(d.rows, pages.DraftRow{Key: fmt.Sprintf("n%d", n), RouteLine: pages.RouteLine{Target: fmt.Sprint("new", n)}})
		}
		d.rows = rapid.Permutation(d.rows).Draw(t, "order")
		routes, _ := d.table(before)
		next := int64(100)
		for i := range routes {
			if routes[i].ID == 0 {
				routes[i].ID, next = next, next+1
			}
		}
		tried := slices.Clone(routes)
		slices.SortFunc(tried, func(a, b msg.Route) int {
			if a.Seq != b.Seq {
				return map[bool]int{true: -1, false: 1}[a.Seq < b.Seq]
			}
			return int(a.ID - b.ID)
		})
		for i, r := range tried {
			if r.Target != d.rows[i].Target {
				t.Fatalf("tried in the order %v, not %v", tried, d.rows)
			}
		}
	})
}

func TestDraft_GoneRoute_IsAdded(t *testing.T) {
	d := newDraft("", stored())
	routes, _ := d.table(stored()[1:])
	if routes[0].ID != 0 || routes[1].ID != 1 {
		t.Errorf("%v", routes)
	}
	changes := differences(stored()[1:], routes)
	if len(changes) != 1 || changes[0] != "add at place 1: sender=telegram:6 → builtin:drop" {
		t.Errorf("%q", changes)
	}
}

func TestDifferences_Edits_Worded(t *testing.T) {
	to := stored()
	to[0].Seq = 7
	to[1].Target = "ops"
	got := differences(stored(), append(to[:2:2], to[3]))
	want := []string{
		"change route 1: chat_jid=telegram:-1 → ops, waits for silence of 3s; weights: reaction=5; before: chat_jid=telegram:-1 → acme, waits for silence of 3s; weights: reaction=5",
		"delete route 2: platform=slack → acme#observe", "another order: 1 routes get another order number",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestImpulse_Fields_BecomeJSON(t *testing.T) {
	for fields, want := range map[pages.Impulse]string{
		{}:                                 "",
		{Quiet: "3", Hold: "5m"}:           `{"max_hold_ms":300000,"quiet_ms":3000}`,
		{Quiet: "500ms", Threshold: "0"}:   `{"quiet_ms":500,"threshold":0}`,
		{Weights: "reaction=0 message=50"}: `{"weights":{"message":50,"reaction":0}}`,
		{Quiet: "soon"}:                    `a time is written as 500ms, 3s or 5m, not "soon"`,
		{Hold: "-3s"}:                      `not "-3s"`,
		{Threshold: "1.5"}:                 `a whole number, not "1.5"`,
		{Weights: "reaction"}:              `not "reaction"`,
		{Weights: "=3"}:                    `not "=3"`,
	} {
		config, err := impulseConfig(fields)
		if got := fmt.Sprintf("%s%v", config, err); !strings.Contains(got, want) {
			t.Errorf("%+v: %s, want %s", fields, got, want)
		}
		if err != nil || config == nil {
			continue
		}
		if _, err := (msg.Impulse{}).Merge(config); err != nil {
			t.Errorf("%+v: %v", fields, err)
		}
		if again, ok := impulseFields(config); !ok {
			t.Errorf("%s cannot be read: %+v", config, again)
		}
	}
}

func TestImpulse_StoredSettings_Worded(t *testing.T) {
	for config, want := range map[string]string{
		"":   "",
		`{}`: "",
		`{"quiet_ms":90000,"max_hold_ms":60000,"threshold":5,"weights":{"reaction":0}}`: "waits for silence of 90s; waits at most 1m; starts at a weight of 5; weights: reaction=0",
		`{"quiet_ms":1}`:        "waits for silence of 1ms",
		`{"quiet_ms":"3 s"}`:    "its waiting settings cannot be read",
		`"text"`:                "its waiting settings cannot be read",
		`{"weights":{"a b":1}}`: "its waiting settings cannot be read",
	} {
		if got := waitWords(json.RawMessage(config)); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// Settings that the fields cannot show are edited as JSON.
func TestDraft_RawSettings_KeptOrReplaced(t *testing.T) {
	r := msg.Route{ID: 1, Target: "acme", Impulse: json.RawMessage(`{"quiet_ms":"3 s"}`)}
	for typed, want := range map[string]string{
		`{"quiet_ms":"3 s"}`: `{"quiet_ms":"3 s"}<nil>`, `{"quiet_ms":3000}`: `{"quiet_ms":3000}<nil>`, " ": "<nil>", "{": "the waiting settings are no JSON",
	} {
		d := newDraft("", []msg.Route{r})
		d.rows[0].Stored = typed
		d, err := readDraft(formOf(d))
		if err != nil {
			t.Fatal(err)
		}
		config, err := rowConfig(&d.rows[0])
		if got := fmt.Sprintf("%s%v", config, err); got != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
}
