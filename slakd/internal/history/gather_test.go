package history

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
	"arizuko/slakd/internal/inbound"
	"arizuko/slakd/internal/slackapi"
)

// api is a Slack with one channel, whose messages are numbered by their seconds.
type api struct {
	messages []string // JSON, newest first
	at       []int64  // of each
	size     int      // of a page
	oldFirst bool     // the oldest page comes first
}

func (a *api) add(at time.Time, user, subtype string) {
	a.at = append(a.at, at.UnixMicro())
	a.messages = append(a.messages, post(at, user, subtype))
}

func (a *api) Patiently(_ context.Context, call func() error) error { return call() }

func (a *api) Conversations(context.Context) ([]slackapi.Conversation, error, error) {
	return []slackapi.Conversation{{ID: "C1"}}, nil, nil
}

func (a *api) History(_ context.Context, _ string, w slackapi.Window, cursor string) (page slackapi.Page, err error) {
	from, count := 0, 0
	_, _ = fmt.Sscan(cursor, &from)
	for count < len(a.at) && a.at[count] > micros(w.Oldest) {
		count++
	}
	end := min(from+a.size, count)
	part := a.messages[from:end]
	if a.oldFirst {
		part = a.messages[count-end : count-from]
	}
	for _, m := range part {
		page.Messages = append(page.Messages, json.RawMessage(m))
	}
	if end < count {
		page.Next = fmt.Sprint(end)
	}
	return page, nil
}

func (a *api) Replies(context.Context, string, string, slackapi.Window, string) (slackapi.Page, error) {
	return slackapi.Page{}, nil
}

func (a *api) Reactions(context.Context, string, string) (json.RawMessage, error) { return nil, nil }

func newShell(t *testing.T) *adapter.Shell {
	log := slog.New(slog.DiscardHandler)
	return adapter.New(nil, adapter.Options{
		Platform: "slack", Daemon: "slakd", Store: storetest.Open(t), Log: log, Metrics: prometheus.NewRegistry(), Now: time.Now,
		Settings:  adapter.Settings{MaxAge: 24 * time.Hour},
		Heartbeat: daemon.NewHeartbeat("slakd", "", log, func(context.Context, daemonrows.Daemon) error { return nil }),
	})
}

func newReader(s *adapter.Shell, from API) *Reader {
	return &Reader{
		Bookmarks: NewBookmarks(s.Store, "slakd", time.Now), API: from, Store: s.Store, Platform: "slack",
		Self: func() inbound.Self { return inbound.Self{Platform: "slack", User: "UBOT"} },
		Convert: func(_ context.Context, e *inbound.Event) (adapter.Inbound, error) {
			m := e.Message
			row := &msg.Message{ChatJID: "slack:C1", PlatformID: m.TS, Sender: "slack:U1", Verb: msg.VerbMessage, Content: m.Text}
			return adapter.Inbound{Messages: []*msg.Message{row}}, nil
		},
	}
}

func post(at time.Time, user, subtype string) string {
	return fmt.Sprintf(`{"ts":%q,"user":%q,"subtype":%q,"text":%q}`, timestamp(at.UnixMicro()), user, subtype, subtype+"by "+user)
}

func TestGather_MembershipOfTheBot(t *testing.T) {
	at := func(n int) message { return message{head: head{TS: fmt.Sprint(n), User: "U1"}, at: int64(n)} }
	own := func(n int, subtype string) message {
		return message{head: head{TS: fmt.Sprint(n), User: "UBOT", Subtype: subtype}, at: int64(n)}
	}
	for what, tt := range map[string]struct {
		bookmark int64
		found    []message
		want     string
	}{
		"member all the time":       {1, []message{at(1), at(2)}, "1 2 "},
		"new, never seen to join":   {0, []message{at(1), at(2)}, "1 2 "},
		"joined":                    {0, []message{at(1), own(2, "channel_join"), at(3)}, "2 3 "},
		"in it before, joins again": {1, []message{at(1), own(2, "channel_join"), at(3)}, "1 2 3 "},
		"joined at the bookmark":    {2, []message{at(1), own(2, "channel_join"), at(3)}, "2 3 "},
		"joined before it":          {3, []message{at(1), own(2, "group_join"), at(3), at(4)}, "2 3 4 "},
		"away for a while":          {9, []message{at(1), own(2, "channel_leave"), at(3), own(4, "channel_join"), at(5)}, "1 4 5 "},
	} {
		g, got := &gathering{bookmark: tt.bookmark, found: tt.found}, ""
		for _, m := range tt.found {
			if m.User == "UBOT" {
				g.moves = append(g.moves, m)
			}
		}
		for _, m := range g.asMember() {
			got += m.TS + " "
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", what, got, tt.want)
		}
	}
}

// Of more messages than are held the oldest come first, and none is left out.
func TestReader_MoreMessagesThanAreHeld(t *testing.T) {
	s := newShell(t)
	a := &api{size: 200}
	now := time.Now()
	const count = 2*maxHeld + maxHeld/2
	for i := range count {
		a.add(now.Add(-time.Duration(i)*time.Second), "U1", "")
	}
	r := newReader(s, a)
	r.began = now.Add(-24 * time.Hour).UnixMicro()
	g := &gathering{channel: "C1", since: r.began, floor: r.began}
	found, err := r.gather(t.Context(), s, g)
	if err != nil || g.limit == 0 || len(found) > 2*maxHeld || found[0].at != now.Add(-(count-1)*time.Second).UnixMicro() {
		t.Fatalf("%d found, up to %d, %v", len(found), g.limit, err)
	}
	seen := len(found)
	for g.limit != 0 {
		if found, err = r.gather(t.Context(), s, g); err != nil {
			t.Fatal(err)
		}
		seen += len(found)
	}
	if seen != count {
		t.Errorf("%d found, want %d", seen, count)
	}
}

// Long messages are held up to a number of bytes, and none is left out.
func TestAdd_LongMessages_AreHeldInParts(t *testing.T) {
	const count = 100
	long := make(json.RawMessage, maxHeldBytes/20)
	g, seen, parts := &gathering{}, 0, 0
	for ; parts == 0 || g.limit != 0; parts++ {
		g.since, g.limit = g.limit, 0
		g.found, g.bytes = nil, 0
		for i := int64(count); i > g.since; i-- { // newest first
			if g.add(message{raw: long, at: i}); g.bytes >= 2*maxHeldBytes {
				t.Fatalf("part %d holds %d bytes", parts, g.bytes)
			}
		}
		g.sort()
		for _, m := range g.found {
			if seen++; m.at != int64(seen) {
				t.Fatalf("part %d has message %d in place of %d", parts, m.at, seen)
			}
		}
	}
	if seen != count || parts < 3 {
		t.Errorf("%d found in %d parts, want %d", seen, parts, count)
	}
}

// A part of the messages may have none of the time when the bot was in the conversation.
func TestReader_LeftWithinTheOldestPart_GoesOn(t *testing.T) {
	for what, tt := range map[string]struct {
		bookmarked bool
		joins      int // seconds before now, 0 for never
		want       int
	}{
		"leaves": {true, 0, 9}, "leaves and returns": {true, 5, 9 + 6}, "joined later": {false, 5, 6},
	} {
		s, a, now := newShell(t), &api{size: 1000}, time.Now()
		const count = 2*maxHeld + maxHeld/2
		for i := range count {
			switch {
			case tt.joins != 0 && i == tt.joins:
				a.add(now.Add(-time.Duration(i)*time.Second), "UBOT", "channel_join")
			case tt.bookmarked && i == count-10:
				a.add(now.Add(-time.Duration(i)*time.Second), "UBOT", "channel_leave")
			default:
				a.add(now.Add(-time.Duration(i)*time.Second), "U1", "")
			}
		}
		r := newReader(s, a)
		r.began = now.Add(-24 * time.Hour).UnixMicro()
		if tt.bookmarked {
			r.last["C1"] = now.Add(-count * time.Second).UnixMicro()
		}
		stored := 0
		r.Convert = func(context.Context, *inbound.Event) (adapter.Inbound, error) {
			stored++
			return adapter.Inbound{}, nil
		}
		if err := r.readConversation(t.Context(), s, "C1", 1); err != nil || stored != tt.want {
			t.Errorf("%s: %d of the time in it, want %d, %v", what, stored, tt.want, err)
		}
	}
}

// A gap that is open begins again at the next break, and a bookmark moves only beyond it.
func TestBookmarks_MoveBehindNoGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBookmarks(nil, "slakd", func() time.Time { return time.Unix(1764000000, 0) })
		if c := b.Move("C1", "1764000000.000100"); c != nil {
			t.Errorf("moved to %+v before the first connection", c)
		}
		b.Connected()
		gap := b.current()
		if c := b.Move("C1", "1764000001.000100"); c != nil {
			t.Errorf("moved to %+v beyond a gap", c)
		}
		b.settle("C1", gap)
		if c := b.Move("C1", "1764000002.000100"); c == nil || *c != (adapter.Cursor{Key: "read C1", Value: "1764000002.000100"}) {
			t.Errorf("moved to %+v where the gap is read", c)
		}
		if !b.close(gap) || b.current() != 0 {
			t.Error("the gap is still open")
		}
		b.Connected()
		if next := b.current(); next == 0 || b.close(gap) || b.Move("C1", "1764000003.000100") != nil {
			t.Error("a new connection opened no gap")
		}
	})
}

// Posted events show by repetition, or by a silence before, that others may have been given up.
func TestBookmarks_PostedEvents_OpenGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBookmarks(nil, "slakd", time.Now)
		read := func(what string) {
			t.Helper()
			select {
			case <-b.opened:
			default:
				t.Errorf("%s: the reader is not woken", what)
			}
			gap := b.current()
			b.settle("C1", gap)
			if gap == 0 || !b.close(gap) {
				t.Errorf("%s: gap %d", what, gap)
			}
		}
		b.Connected()
		read("at the start")
		for range 100 {
			time.Sleep(maxQuiet - time.Second) //nolint:forbidigo // in a bubble
			b.Posted(false)
			b.Look()
		}
		if b.current() != 0 {
			t.Error("events opened a gap")
		}
		b.Posted(true)
		if b.Move("C1", "1764000001.000100") != nil {
			t.Error("an event that is repeated moved the bookmark")
		}
		read("repeated")
		time.Sleep(maxQuiet + time.Second) //nolint:forbidigo // in a bubble
		b.Posted(false)
		if b.Move("C1", "1764000001.000100") != nil {
			t.Error("an event after a silence moved the bookmark")
		}
		read("after a silence")
		for range 3 {
			time.Sleep(lookInterval) //nolint:forbidigo // in a bubble
			b.Look()
			read("no event for long")
			b.Look()
			if b.current() != 0 {
				t.Error("read twice")
			}
		}
	})
}

// What may have been missed while a gap is read is read after it, and delays no conversation of that gap.
func TestBookmarks_MissedDuringGap_IsReadAgain(t *testing.T) {
	b := NewBookmarks(nil, "slakd", time.Now)
	b.Connected()
	gap := b.current()
	b.settle("C1", gap)
	b.Missed()
	if b.current() != gap || len(b.left([]string{"C1", "C2"})) != 1 {
		t.Error("the gap began again")
	}
	if c := b.Move("C1", "1764000001.000100"); c != nil {
		t.Errorf("moved to %+v", c)
	}
	b.settle("C2", gap)
	if b.close(gap) || b.current() == 0 || len(b.left([]string{"C1", "C2"})) != 2 {
		t.Error("nothing is read again")
	}
	if gap = b.current(); !b.close(gap) {
		t.Error("it does not end")
	}
}

func TestMicros_AndBack(t *testing.T) {
	for ts, want := range map[string]int64{"1764000000.000100": 1764000000000100, "1764000000": 1764000000000000, "1764000000.1": 1764000000100000, "": 0, "x.y": 0, "-1.0": 0} {
		if got := micros(ts); got != want {
			t.Errorf("%q is %d, want %d", ts, got, want)
		}
	}
	if diff := cmp.Diff("1764000000.000100", timestamp(1764000000000100)); diff != "" {
		t.Error(diff)
	}
}

// Rows are stored oldest first whatever the order of the page, and the bookmark with them.
func TestReader_StoresOldestFirst_WithBookmark(t *testing.T) {
	s := newShell(t)
	a, now := &api{size: 200}, time.Now()
	for _, ago := range []time.Duration{3, 1, 2} {
		a.add(now.Add(-ago*time.Minute), "U1", "")
	}
	r := newReader(s, a)
	r.began = now.Add(-time.Hour).UnixMicro()
	if err := r.readConversation(t.Context(), s, "C1", 0); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for id := range int64(3) {
		m, err := s.Store.Message(t.Context(), id+1)
		if err != nil || m == nil {
			t.Fatal(m, err)
		}
		got, want = append(got, m.PlatformID), append(want, timestamp(now.Add(-time.Duration(3-id)*time.Minute).UnixMicro()))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if mark, err := s.Store.DaemonCursor(t.Context(), "slakd", "read C1"); err != nil || micros(mark) != now.Add(-time.Minute).UnixMicro() {
		t.Errorf("the bookmark is %q, %v, want the time of the last message", mark, err)
	}
}

// All pages are read whatever their order, and only what is new is counted.
func TestReader_OldestPageFirst_ReadsAll(t *testing.T) {
	for _, oldFirst := range []bool{true, false} {
		s, a, now := newShell(t), &api{size: 2, oldFirst: oldFirst}, time.Now()
		var log strings.Builder
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		for i := range 5 {
			a.add(now.Add(-time.Duration(1+i)*time.Second), "U1", "")
		}
		for i := range 40 {
			a.add(now.Add(-time.Duration(30+i)*time.Minute), "U1", "")
		}
		r := newReader(s, a)
		r.began = now.Add(-24 * time.Hour).UnixMicro()
		r.last["C1"] = now.Add(-15 * time.Minute).UnixMicro()
		for range 2 {
			if err := r.readConversation(t.Context(), s, "C1", 1); err != nil {
				t.Fatal(err)
			}
		}
		if rows, err := gatedtest.Undecided(t.Context(), s.Store.Reader, "slack:C1", 0, 100); err != nil || len(rows) != 5 {
			t.Errorf("oldest first %v: %d rows, want 5, %v", oldFirst, len(rows), err)
		}
		if strings.Count(log.String(), "missed messages read") != 1 || !strings.Contains(log.String(), "count=5") {
			t.Errorf("the log:\n%s", log.String())
		}
	}
}
