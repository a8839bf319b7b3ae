package match

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestFirst_Events_GetFirstMatchingRoute(t *testing.T) {
	rows := []Row{
		{ID: 1, Seq: 50, Match: "", Target: "rest"},
		{ID: 9, Seq: 10, Match: "platform=slack verb=mention", Target: "slack"},
		{ID: 8, Seq: 10, Match: "platform=slack", Target: "slack#observe"},
		{ID: 5, Seq: -3, Match: "chat_jid=telegram:-100777", Target: "acme", Impulse: json.RawMessage(`{"quiet_ms":5}`)},
		{ID: 4, Seq: 0, Match: "chat_jid=telegram:-100*", Target: "builtin:drop"},
		{ID: 3, Seq: 0, Match: "sender_name=*-bot", Target: "builtin:drop"},
		{ID: 7, Seq: 60, Match: "room=C1", Target: "never"},
	}
	tests := []struct {
		name string
		ev   Event
		want int64
	}{
		{"exact before prefix", EventOf("telegram:-100777", "telegram:1", "Ann", ""), 5},
		{"prefix", EventOf("telegram:-100778", "telegram:1", "Ann", ""), 4},
		{"nothing after the prefix", EventOf("telegram:-100", "telegram:1", "Ann", ""), 4},
		{"nothing before the suffix", EventOf("telegram:5", "telegram:1", "-bot", ""), 3},
		{"suffix of the id", EventOf("telegram:5", "telegram:x-bot", "", ""), 1},
		{"suffix of the display name", EventOf("telegram:5", "telegram:1", "build-bot", ""), 3},
		{"equal seq, lower id", EventOf("slack:C1", "slack:U1", "", "mention"), 8},
		{"catch-all before a later match", EventOf("discord:C1", "discord:1", "", ""), 1},
		{"catch-all", Event{}, 1},
	}
	ix, bad := Compile(rows)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, tt := range tests {
		if got := ix.First(&tt.ev); got == nil || got.ID != tt.want {
			t.Errorf("%s: %+v, want route %d", tt.name, got, tt.want)
		}
	}

	got := *ix.First(&tests[0].ev)
	got.expr = Expr{}
	want := Route{
		ID: 5, Seq: -3, Match: "chat_jid=telegram:-100777",
		Target: Target{Kind: Trigger, Folder: "acme"}, Impulse: json.RawMessage(`{"quiet_ms":5}`),
	}
	if diff := gocmp.Diff(want, got, gocmp.AllowUnexported(Route{}, Expr{})); diff != "" {
		t.Errorf("route (-want +got):\n%s", diff)
	}
	if rows[0].ID != 1 || rows[6].ID != 7 {
		t.Error("Compile reordered the caller's rows")
	}
}

func TestFirst_NoRows_Nil(t *testing.T) {
	ix, bad := Compile(nil)
	if got := ix.First(&Event{}); got != nil || bad != nil {
		t.Errorf("an empty table found %+v, bad rows %v", got, bad)
	}
}

func TestCompile_InvalidRows_LeftOut(t *testing.T) {
	ix, bad := Compile([]Row{
		{ID: 6, Seq: 6, Target: "rest"},
		{ID: 5, Seq: 5, Target: "acme", Impulse: json.RawMessage(`{"quiet":1}`)},
		{ID: 4, Seq: 4, Target: "Acme"},
		{ID: 3, Seq: 3, Match: "room=[", Target: "acme"},
		{ID: 2, Seq: 2, Match: "platfrom=x", Target: "acme"},
		{ID: 1, Seq: 1, Match: "platform=x", Target: "x"},
	})
	reasons := []string{"match: unknown key", "match: room: bad glob", "target: folder", `impulse_config: "quiet"`}
	if len(bad) != len(reasons) {
		t.Fatalf("bad rows %v, want %d", bad, len(reasons))
	}
	for i, reason := range reasons {
		if id := int64(i + 2); bad[i].ID != id || !strings.Contains(bad[i].Err.Error(), reason) {
			t.Errorf("bad row %d is %+v, want row %d about %s", i, bad[i], id, reason)
		}
	}
	if !errors.Is(bad[1].Err, path.ErrBadPattern) {
		t.Errorf("%v is not path.ErrBadPattern", bad[1].Err)
	}
	if got := ix.First(&Event{Platform: "y"}); got == nil || got.ID != 6 {
		t.Errorf("past the bad rows: %+v, want route 6", got)
	}
}

func TestExplain_RoutesBeforeMatch_SayWhyNot(t *testing.T) {
	ix, _ := Compile([]Row{
		{ID: 1, Match: "platform=slack", Target: "a"},
		{ID: 2, Match: "platform=telegram sender=*Bob", Target: "a"},
		{ID: 3, Match: "room=[x]", Target: "a"},
		{ID: 4, Match: "verb=message", Target: "a"},
		{ID: 5, Match: "", Target: "a"},
	})
	ev := EventOf("telegram:7", "telegram:1", "Ann", "")
	all := []string{
		`route 1: platform=slack does not match "telegram"`,
		`route 2: sender=*Bob does not match "telegram:1"`,
		`route 3: room=[x] does not match "7"`,
	}
	if diff := gocmp.Diff(all, ix.Explain(&ev, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{all[0], "2 more rows do not match"}, ix.Explain(&ev, 1)); diff != "" {
		t.Errorf("at most 1 (-want +got):\n%s", diff)
	}
	winner := EventOf("slack:7", "slack:1", "", "")
	if got := ix.Explain(&winner, 3); got != nil {
		t.Errorf("before the first row: %q", got)
	}
	ix, _ = Compile([]Row{{ID: 1, Match: "verb=edit", Target: "a"}})
	hostile := Event{Verb: strings.Repeat("\n", 1<<20)}
	if got := ix.Explain(&hostile, 3); len(got) != 1 || len(got[0]) > 300 || strings.Contains(got[0], "\n") {
		t.Errorf("a hostile verb gives %.400q", got)
	}
}

// TestFirst_AnyTable_SameAsNaive compares the index with trying every row in order. The alphabets are
// small, so that rows collide in every part of the index.
func TestFirst_AnyTable_SameAsNaive(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "a", "b", "/", ":", "*", "*", "?", "[ab]", "[^a]", `\*`, `\b`, "é", "message"})
	value := rapid.Custom(func(t *rapid.T) string {
		return join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", ":", "*", "é", "+"}), 0, 4).Draw(t, "value"))
	})
	row := rapid.Custom(func(t *rapid.T) Row {
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom(
			[]string{"chat_jid", "room", "sender", "sender_name", "platform", "account", "verb"}), 0, 3, rapid.ID).Draw(t, "keys")
		var tokens []string
		for _, key := range keys {
			token := key + "=" + join(rapid.SliceOfN(piece, 0, 4).Draw(t, key))
			if _, err := ParseMatch(token); err == nil { // else a name where an id is matched, or an id as a name
				tokens = append(tokens, token)
			}
		}
		return Row{
			Seq:    rapid.Int64Range(-2, 2).Draw(t, "seq"),
			Match:  strings.Join(tokens, " "),
			Target: "acme",
		}
	})
	event := rapid.Custom(func(t *rapid.T) Event {
		ev := EventOf(value.Draw(t, "jid"), value.Draw(t, "sender"), value.Draw(t, "name"), value.Draw(t, "verb"))
		if rapid.Bool().Draw(t, "odd") {
			ev.Platform, ev.Account, ev.Room = value.Draw(t, "platform"), value.Draw(t, "account"), value.Draw(t, "room")
		}
		return ev
	})
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(row, 0, 40).Draw(t, "rows")
		for i := range rows {
			rows[i].ID = int64(i + 1)
		}
		rows = rapid.Permutation(rows).Draw(t, "stored")
		ix, bad := Compile(rows)
		if len(bad) > 0 {
			t.Fatalf("bad rows: %v", bad)
		}
		slices.SortFunc(rows, func(a, b Row) int {
			return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
		})
		for _, ev := range rapid.SliceOfN(event, 1, 10).Draw(t, "events") {
			wantAt := slices.IndexFunc(rows, func(r Row) bool { return naive(r.Match, &ev) })
			got := ix.First(&ev)
			if (got == nil) != (wantAt < 0) || got != nil && got.ID != rows[wantAt].ID {
				t.Fatalf("%+v goes to %+v, want position %d of %+v", ev, got, wantAt, rows)
			}
			before := wantAt
			if before < 0 {
				before = len(rows)
			}
			if lines := ix.Explain(&ev, len(rows)); len(lines) != before {
				t.Fatalf("%d rows come before, explained are %q", before, lines)
			}
		}
	})
}

func join(pieces []string) string { return strings.Join(pieces, "") }

// table10k is the table of a large instance: mostly exact chats, then some rows of every
// other kind.
func table10k(withCatchAll bool) []Row {
	var rows []Row
	add := func(format string, args ...any) {
		rows = append(rows, Row{ID: int64(len(rows) + 1), Match: fmt.Sprintf(format, args...), Target: "acme"})
	}
	for i := range 9_000 {
		add("chat_jid=telegram:-100%d", 100_000+i)
	}
	for i := range 400 {
		add("room=C0%dABC", i)
		add("sender=slack:U%d verb=mention", i)
	}
	for i := range 95 {
		add("chat_jid=discord:%d*", i)
		add("sender_name=*-bot%d", i)
	}
	for range 4 {
		add("platform=slack verb=mention")
	}
	add("room=D?x*")
	add("sender_name=*admin*")
	add("chat_jid=web:*/*/[a-c]*")
	add("room=*z*z")
	add("verb=join")
	if withCatchAll {
		add("")
	}
	return rows
}

// prefixes10k are rows under some twenty lengths of prefix and as many of suffix.
func prefixes10k() []Row {
	var rows []Row
	for i := range 10_000 {
		n := fmt.Sprint(i * 7919)
		pad := strings.Repeat("1", i%20)
		row := Row{ID: int64(i + 1), Match: "chat_jid=telegram:-100" + pad + n + "*", Target: "acme"}
		if i%2 == 1 {
			row.Match = "room=*" + n + pad
		}
		rows = append(rows, row)
	}
	return rows
}

// oneChat10k are rows that share all but the sender's name.
func oneChat10k() []Row {
	var rows []Row
	for i := range 10_000 {
		match := fmt.Sprintf("platform=telegram verb=message chat_jid=telegram:-1001234 sender_name=u%05d*", i)
		rows = append(rows, Row{ID: int64(i + 1), Match: match, Target: "acme"})
	}
	return rows
}

// repeated10k are 10,000 times one condition, of which the event has half.
func repeated10k() []Row {
	var rows []Row
	for i := range 10_000 {
		rows = append(rows, Row{ID: int64(i + 1), Match: "platform=slack verb=mention", Target: "acme"})
	}
	return rows
}

type case10k struct {
	name string
	rows []Row
	ev   Event
	want int64 // id, 0 for none
}

func cases10k() []case10k {
	return []case10k{
		{"exact", table10k(true), EventOf("telegram:-100104242", "telegram:777", "Ann Lee", ""), 4243},
		{"prefix", table10k(true), EventOf("discord:946128838", "discord:777", "Ann Lee", "reply"), 9819},
		{"mention", table10k(true), EventOf("slack:C0ZZZ", "slack:U9999", "Ann Lee", "mention"), 9991},
		{"last", table10k(true), EventOf("telegram:-100999999", "telegram:777", "Ann Lee", ""), 10_000},
		{"none", table10k(false), EventOf("telegram:-100999999", "telegram:777", "Ann Lee", ""), 0},
		{"prefixes", prefixes10k(), EventOf("telegram:-100111111111111111111", "telegram:777", "Ann Lee", ""), 0},
		{"one place", oneChat10k(), EventOf("telegram:-1001234", "telegram:777", "u09999", ""), 10_000},
		{"repeated", repeated10k(), EventOf("slack:C0ZZZ", "slack:U9999", "Ann Lee", ""), 0},
	}
}

func TestFirst_10kRows(t *testing.T) {
	for _, tt := range cases10k() {
		t.Run(tt.name, func(t *testing.T) {
			ix, bad := Compile(tt.rows)
			if len(bad) > 0 {
				t.Fatal(bad)
			}
			var got *Route
			allocs := testing.AllocsPerRun(100, func() { got = ix.First(&tt.ev) })
			if allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
			if got == nil && tt.want != 0 || got != nil && got.ID != tt.want {
				t.Errorf("found %+v, want route %d", got, tt.want)
			}
		})
	}
}

// TestIndex_SharedLiterals_FewRowsTried: no event tries more than a handful of 10,000 rows, whatever the rows
// share.
func TestIndex_SharedLiterals_FewRowsTried(t *testing.T) {
	for _, tt := range cases10k() {
		ix, _ := Compile(tt.rows)
		longest := len(ix.unindexed)
		for _, s := range ix.byKey {
			for _, m := range []map[string][]position{s.whole, s.heads.rows, s.tails.rows} {
				for _, rows := range m {
					longest = max(longest, len(rows))
				}
			}
		}
		if longest > 8 {
			t.Errorf("%s: %d rows share a place in the index", tt.name, longest)
		}
	}
}

func BenchmarkFirst10k(b *testing.B) {
	for _, tt := range cases10k() {
		b.Run(tt.name, func(b *testing.B) {
			ix, _ := Compile(tt.rows)
			b.ReportAllocs()
			for b.Loop() {
				ix.First(&tt.ev)
			}
		})
	}
}

func BenchmarkCompile10k(b *testing.B) {
	rows := table10k(true)
	for b.Loop() {
		Compile(rows)
	}
}
