package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// A message that has a row and is not shown was deleted, unless that is not certain.
func TestReader_MessagesNotShown_AreDeleted(t *testing.T) {
	for what, tt := range map[string]struct {
		remove       []int // minutes before now
		odd          string
		unknown, all bool
		want         []int
	}{
		"none":                          {},
		"in the middle":                 {remove: []int{4, 7}, want: []int{7, 4}},
		"the last":                      {remove: []int{1, 2}, want: []int{2, 1}},
		"older than all that are shown": {remove: []int{9}},
		"all":                           {all: true},
		"Slack's time is not known":     {remove: []int{4}, unknown: true},
		"one that is shown has no id":   {remove: []int{4}, odd: `{"text":"?"}`},
		"one that is shown is odd":      {remove: []int{4}, odd: `"odd"`},
		"just now":                      {remove: []int{0}},
	} {
		for _, oldFirst := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", oldest page first ", oldFirst), func(t *testing.T) {
				s, a, now := newShell(t), &api{size: 3, oldFirst: oldFirst}, time.Now()
				at := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
				for minutes := range 10 {
					a.add(at(minutes), "U1", "")
				}
				r := newReader(s, a)
				r.began = now.Add(-24 * time.Hour).UnixMicro()
				if !tt.unknown {
					r.SetSlackTime(now)
				}
				reply := &msg.Message{ChatJID: "slack:C1", PlatformID: timestamp(at(5).UnixMicro() + 7), ThreadID: timestamp(at(5).UnixMicro()), Direction: msg.In, Sender: "slack:U1"}
				if _, _, err := storetest.Put(t.Context(), s.Store, reply); err != nil {
					t.Fatal(err)
				}
				read := func() {
					t.Helper()
					if err := r.readConversation(t.Context(), s, "C1", 1); err != nil {
						t.Fatal(err)
					}
				}
				read()
				if tt.all {
					a.at, a.messages = nil, nil
				}
				for _, minutes := range tt.remove {
					i := slices.Index(a.at, at(minutes).UnixMicro())
					a.at, a.messages = slices.Delete(a.at, i, i+1), slices.Delete(a.messages, i, i+1)
				}
				if tt.odd != "" {
					a.at, a.messages = slices.Insert(a.at, 0, now.UnixMicro()), slices.Insert(a.messages, 0, tt.odd)
				}
				read()
				read()
				var got, want []string
				rows, err := gatedtest.Undecided(t.Context(), s.Store.Reader, "slack:C1", 0, 100)
				for _, m := range rows {
					if m.Verb == msg.VerbDelete {
						got = append(got, m.PlatformID)
					}
				}
				for _, minutes := range tt.want {
					want = append(want, timestamp(at(minutes).UnixMicro())+":d")
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("deletions, %v (-want +got):\n%s", err, diff)
				}
			})
		}
	}
}

// Where Slack leaves out users of a reaction, a row of one of them stays as it is.
func TestReader_UsersLeftOut_HaveNotReactedLess(t *testing.T) {
	s, a, now := newShell(t), &api{size: 3}, time.Now()
	a.add(now.Add(-time.Hour), "U1", "")
	ts := timestamp(now.Add(-time.Hour).UnixMicro())
	r := newReader(s, a)
	r.began = now.Add(-24 * time.Hour).UnixMicro()
	react := func(user, content string) {
		row := &msg.Message{
			ChatJID: "slack:C1", PlatformID: ts + ":r:" + user + ":" + content + ":" + ts, TargetID: ts, Direction: msg.In, Sender: "slack:" + user,
			Verb: msg.VerbReaction, Content: content,
		}
		if err := s.Store.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err }); err != nil {
			t.Fatal(err)
		}
	}
	react("U1", "👍")
	react("U2", "👍")
	react("U2", "🎉")
	react("U3", "🎉")
	react("U3", "-🎉")
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(a.messages[0]), &fields); err != nil {
		t.Fatal(err)
	}
	fields["reactions"] = []map[string]any{{"name": "+1", "users": []string{"U1"}, "count": 2}}
	changed, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	a.messages[0] = string(changed)
	for range 2 {
		if err := r.readConversation(t.Context(), s, "C1", 1); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	rows, err := gatedtest.Undecided(t.Context(), s.Store.Reader, "slack:C1", 0, 100)
	for _, m := range rows[5:] {
		got = append(got, m.Verb+" "+m.Sender+" "+m.Content)
	}
	if diff := cmp.Diff([]string{"message slack:U1 by U1", "reaction slack:U2 -🎉"}, got); diff != "" || err != nil {
		t.Errorf("rows, %v (-want +got):\n%s", err, diff)
	}
}

// Replies of a thread before the bookmark are read again, as many as mostly fit into its page.
func TestReader_RepliesBeforeTheBookmark_AreReadAgain(t *testing.T) {
	s, now := newShell(t), time.Now()
	r := newReader(s, &api{})
	g := &gathering{channel: "C1", since: now.UnixMicro(), floor: now.Add(-24 * time.Hour).UnixMicro()}
	at := func(i int) int64 { return now.Add(-time.Duration(i) * time.Minute).UnixMicro() }
	for i := range 2 * maxReread {
		row := &msg.Message{ChatJID: "slack:C1", PlatformID: timestamp(at(2*maxReread - i)), ThreadID: "1.1", Direction: msg.In, Sender: "slack:U1"}
		if _, _, err := storetest.Put(t.Context(), s.Store, row); err != nil {
			t.Fatal(err)
		}
	}
	if from, err := r.rereadFrom(t.Context(), g, "1.1"); from != at(maxReread)-1 || err != nil {
		t.Errorf("from %v, %v, want %v", time.UnixMicro(from), err, time.UnixMicro(at(maxReread)))
	}
	if from, err := r.rereadFrom(t.Context(), g, "2.2"); from != g.since || err != nil {
		t.Errorf("of another thread from %v, %v", time.UnixMicro(from), err)
	}
	g.floor = at(3)
	if from, err := r.rereadFrom(t.Context(), g, "1.1"); from != g.floor || err != nil {
		t.Errorf("from %v, %v, want what is not too old", time.UnixMicro(from), err)
	}
}
