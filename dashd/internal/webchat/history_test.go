package webchat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
)

// newRow is a row of an answer with what is new.
type newRow struct {
	ID      int64
	Change  int64
	Deleted bool
	HTML    string
	Content *string
}

type newRows struct {
	Messages []newRow
	Next     int64
	More     bool
}

func (n newRows) ids() (ids [][2]int64) {
	for _, m := range n.Messages {
		ids = append(ids, [2]int64{m.ID, m.Change})
	}
	return ids
}

func newsAfter(t testing.TB, r *fixture, after int64, query string) newRows {
	t.Helper()
	return get[newRows](t, r, fmt.Sprintf("/main/messages?after=%d%s", after, query))
}

// A page may have a row that is not there any more, after a restore.
func TestAfter_RowAfterTheNewest_IsRefused(t *testing.T) {
	r := newFixture(t)
	id := r.said(t, "", "1")
	for after, want := range map[int64]int{id: 200, id + 1: 409, 1 << 60: 409} {
		if status, answer := r.ask(t, "GET", fmt.Sprintf("/main/messages?after=%d", after), ""); status != want || want == 409 && !strings.Contains(answer, "restored") {
			t.Errorf("after %d: %d %s", after, status, answer)
		}
	}
}

func TestAfter_RowsAndChanges_InOrder(t *testing.T) {
	r := newFixture(t)
	before := r.row(t, r.answered(t, "me", msg.OutSent))
	first := r.said(t, "#a", "1")
	r.put(t, row{folder: "other", direction: "in", content: "elsewhere"})
	edit := r.change(t, msg.KindEdit, before, "**you**")
	second := r.row(t, r.answered(t, "2", msg.OutSent))
	gone := r.change(t, msg.KindDelete, second, "")
	r.change(t, msg.KindEdit, &msg.Message{Direction: msg.In, PlatformID: "gone"}, "of a message that is not stored")
	lost := r.answered(t, "lost", msg.OutFailed)

	got := newsAfter(t, r, before.ID, "")
	want := [][2]int64{{first, 0}, {before.ID, edit}, {second.ID, 0}, {second.ID, gone}}
	if diff := cmp.Diff(want, got.ids()); diff != "" || got.More || got.Next >= lost || got.Next < gone {
		t.Errorf("next %d, more %t (-want +got):\n%s", got.Next, got.More, diff)
	}
	if changed := got.Messages[1]; changed.HTML != "<p><strong>you</strong></p>\n" || *changed.Content != "**you**" {
		t.Errorf("edited: %+v", changed)
	}
	if !got.Messages[2].Deleted || !got.Messages[3].Deleted {
		t.Errorf("deleted: %+v", got.Messages[2:])
	}
	if page := newsAfter(t, r, before.ID, "&view=page"); page.Messages[1].Content != nil || page.Messages[0].Content == nil {
		t.Errorf("view=page: %+v", page.Messages)
	}
	if rest := newsAfter(t, r, got.Next, ""); len(rest.Messages) > 0 || rest.More || rest.Next != got.Next {
		t.Errorf("afterwards: %+v", rest)
	}
}

func TestAfter_Bounds(t *testing.T) {
	r := newFixture(t)
	r.sql(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300)
		INSERT INTO messages (chat_jid, direction, timestamp, received_at) SELECT 'web:main', 'in', 0, 0 FROM n`)
	large := r.said(t, "", strings.Repeat("x", 2*maxHistory))
	for _, content := range []string{"b", "c", "d", "e", "f", "g"} {
		r.said(t, "", strings.Repeat(content, maxHistory/5))
	}
	for _, test := range []struct {
		after int64
		query string
		rows  int
		next  int64
		more  bool
	}{
		{0, "", defaultPage, defaultPage, true},
		{0, "&limit=1", 1, 1, true},
		{0, "&limit=9999", maxPage, maxPage, true},
		{0, "&limit=0", 1, 1, true},
		{300, "", 4, large + 3, true}, // the first is cut at maxShown; all are below 1 MiB together
		{large + 3, "", 3, large + 6, false},
		{large + 6, "", 0, large + 6, false},
	} {
		got := newsAfter(t, r, test.after, test.query)
		if len(got.Messages) != test.rows || got.Next != test.next || got.More != test.more {
			t.Errorf("after %d%s: %d rows, next %d, more %t", test.after, test.query, len(got.Messages), got.Next, got.More)
		}
	}
	for _, query := range []string{"after=", "after=x", "after=-1", "after=1&before=2", "after=1&topic=", "after=1&limit=x", "after=99999999999999999999"} {
		if status, answer := r.ask(t, "GET", "/main/messages?"+query, ""); status != 400 || !strings.Contains(answer, "bad_request") {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
}

// Whatever is written meanwhile, a page that asks again and again gets each readable row once and in order, in any steps.
func TestAfter_AnySteps_EachRowOnce(t *testing.T) {
	r := newFixture(t)
	rapid.Check(t, func(rt *rapid.T) {
		r.sql(t, `DELETE FROM messages`)
		var shown, pending []int64
		var last int64
		read := func(limit int) bool {
			got := newsAfter(t, r, last, fmt.Sprintf("&limit=%d", limit))
			for _, m := range got.Messages {
				if m.ID <= last {
					rt.Fatalf("row %d after %d", m.ID, last)
				}
				shown, last = append(shown, m.ID), m.ID
			}
			if got.Next < last {
				rt.Fatalf("next %d after %d", got.Next, last)
			}
			last = got.Next
			return got.More
		}
		want := map[int64]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"in":  func(*rapid.T) { want[r.said(t, "", "x")] = true },
			"out": func(*rapid.T) { pending = append(pending, r.answered(t, "x", msg.OutQueued)) },
			"settle": func(rt *rapid.T) {
				if len(pending) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(pending)-1).Draw(rt, "row")
				state := rapid.SampledFrom([]msg.OutState{msg.OutSent, msg.OutAmbiguous, msg.OutFailed}).Draw(rt, "state")
				r.settle(t, pending[i], state)
				if state != msg.OutFailed {
					want[pending[i]] = true
				}
				pending = slices.Delete(pending, i, i+1)
			},
			"read": func(rt *rapid.T) { read(rapid.IntRange(1, 12).Draw(rt, "limit")) },
		})
		for _, id := range pending {
			r.settle(t, id, msg.OutSent)
			want[id] = true
		}
		for read(7) {
		}
		if len(shown) != len(want) {
			rt.Fatalf("%d of %d rows", len(shown), len(want))
		}
	})
}
