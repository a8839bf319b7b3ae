package events

import (
	"fmt"
	"strings"
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/store"
)

// said is an update with a text of a user at a second.
func said(id, user, second int, text string) string {
	return fmt.Sprintf(`{"update_id":%d,"message":{"message_id":%d,"date":%d,"chat":{"id":-5,"type":"group","title":"Team"},
		"from":{"id":%d,"first_name":"U"},"text":%q}}`, id, id, 1764000000+second, user, text)
}

// groups returns the group keys of the rows of the chat, by their platform ids.
func (f *fixture) groups() map[string]string {
	f.t.Helper()
	rows, err := gatedtest.Undecided(f.t.Context(), f.store.Reader, chat, 0, 100)
	if err != nil {
		f.t.Fatal(err)
	}
	keys := map[string]string{}
	for _, m := range rows {
		if m.GroupKey != "" {
			keys[m.PlatformID] = m.GroupKey
		}
	}
	return keys
}

func TestListen_PiecesOfAPaste_HaveOneGroupKey(t *testing.T) {
	long := strings.Repeat("😀", 2048)
	f := newFixture(t, strings.Join([]string{
		said(11, 7, 0, long), said(12, 8, 0, long), said(13, 7, 1, long), said(14, 7, 2, "the end"), said(15, 7, 3, "another"),
		said(16, 8, 5, "much later"), said(17, 9, 6, strings.Repeat("x", minPiece-1)), said(18, 9, 6, "short"),
	}, ","))
	f.run()
	want := map[string]string{"11": "paste:11", "13": "paste:11", "14": "paste:11", "12": "paste:12"}
	if diff := cmp.Diff(want, f.groups()); diff != "" {
		t.Errorf("group keys (-want +got):\n%s", diff)
	}
}

func TestListen_WordToTheGatewayAfterALongText_IsNoPiece(t *testing.T) {
	long := strings.Repeat("x", 4096)
	for text, piece := range map[string]bool{
		"/stop": false, "/Stop@arizuko_bot now": false, "/new #plan": false, "@acme/eng": false, "#plan": false, "@": false, "#": false,
		"/usr/bin is the end": true, "/stopped": true, "@acme/eng asked for it": true, "#plan, the end": true, "#!": true,
	} {
		f := newFixture(t, strings.Join([]string{said(11, 7, 0, long), said(12, 7, 1, text), said(13, 7, 2, "the end")}, ","))
		f.run()
		want := map[string]string{"11": "paste:11", "12": "paste:11"}
		if !piece {
			want = map[string]string{"11": "paste:11", "13": "paste:11"}
		}
		if diff := cmp.Diff(want, f.groups()); diff != "" {
			t.Errorf("%q: group keys (-want +got):\n%s", text, diff)
		}
	}
}

func TestListen_RestartBetweenPieces_KeepsTheGroupKey(t *testing.T) {
	long := strings.Repeat("x", 4096)
	for firstBot, mark := range map[string]string{"99": "", "98": "b99."} {
		f := newFixture(t, said(11, 7, 0, long)+","+said(12, 8, 0, "of another user"))
		if err := f.store.Write(t.Context(), func(tx *store.Tx) error { return tx.PutBot("teled", firstBot, 1) }); err != nil {
			t.Fatal(err)
		}
		f.run()
		f.batches = []string{
			said(13, 8, 0, "and one more") + "," + said(14, 7, 1, long) + "," + said(15, 8, 1, "of another user") + "," + said(16, 7, 1, "the end"),
			said(17, 7, 1, "more"),
		}
		f.run()
		piece := "paste:" + mark + "11"
		want := map[string]string{mark + "11": piece, mark + "14": piece, mark + "16": piece}
		if diff := cmp.Diff(want, f.groups()); diff != "" {
			t.Errorf("first bot %s: group keys (-want +got):\n%s", firstBot, diff)
		}
	}
}
