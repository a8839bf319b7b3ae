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
		for name, value := range map[string]string{
			"key": r.Key, "place": fmt.Sprint(i + 1), "match": r.Match, "target": r.Target, "impulse": r.Impulse,
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
	routes := d.table(stored())
	if fmt.Sprint(routes) != fmt.Sprint(stored()) || d.digest != "x" {
		t.Errorf("%v", routes)
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
		"0 fields impulse":          func(f url.Values) { f.Del("impulse") },
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
		routes := d.table(before)
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
	routes := d.table(stored()[1:])
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
		"change route 1: chat_jid=telegram:-1 → ops, waits for silence of 3s; reaction weighs 5; before: chat_jid=telegram:-1 → acme, waits for silence of 3s; reaction weighs 5",
		"delete route 2: platform=slack → acme#observe", "another order: 1 routes get another order number",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestImpulse_StoredSettings_Worded(t *testing.T) {
	for config, want := range map[string]string{
		"":   "",
		`{}`: "",
		`{"quiet_ms":90000,"max_hold_ms":60000,"threshold":5,"weights":{"reaction":0,"message":50}}`: "waits for silence of 1m30s; waits at most 1m0s; starts at a weight of 5; message weighs 50; reaction weighs 0",
		`{"quiet_ms":1}`:     "waits for silence of 1ms",
		`{"quiet_ms":"3 s"}`: "its waiting settings cannot be read",
		`"text"`:             "its waiting settings cannot be read",
		`{"weights":{"":1}}`: "its waiting settings cannot be read",
		`{`:                  "its waiting settings cannot be read",
	} {
		if got := waitWords(json.RawMessage(config)); got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// Stored settings that were not touched keep their bytes.
func TestDraft_Settings_KeptOrReplaced(t *testing.T) {
	for _, stored := range []string{"{\n  \"quiet_ms\": 3000\n}", `{"quiet_ms":"3 s"}`, ""} {
		before := []msg.Route{{ID: 1, Target: "acme", Impulse: json.RawMessage(stored)}}
		for typed, want := range map[string]string{"": stored, ` {"quiet_ms":3} `: `{"quiet_ms":3}`, "{": "{", " ": ""} {
			d := newDraft("", before)
			if typed != "" {
				d.rows[0].Impulse = typed
			}
			d, err := readDraft(formOf(d))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(d.table(before)[0].Impulse); got != want {
				t.Errorf("%q over %q: %q, want %q", typed, stored, got, want)
			}
		}
	}
}
