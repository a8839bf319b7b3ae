package rows_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

const (
	webChat = "web:acme"
	newest  = math.MaxInt64 // a row id after all others
)

func texts(rows []*msg.Message) (all []string) {
	for _, m := range rows {
		all = append(all, m.Content)
	}
	return all
}

// web stores a row of the web chat.
func web(t testing.TB, s *store.Store, m msg.Message) *msg.Message {
	t.Helper()
	m.ChatJID = webChat
	if m.Direction == "" {
		m.Direction = msg.In
	}
	return storetest.Stored(t, s, &m)
}

// setOut changes the state of an outbound row.
func setOut(t testing.TB, s *store.Store, id int64, state msg.OutState) {
	t.Helper()
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.Exec(`UPDATE messages SET out_state = ? WHERE id = ?`, state, id) })
}

func TestWebReadableRows(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, state := range outStates {
		web(t, s, msg.Message{Content: "out " + string(state), Direction: msg.Out, OutState: state})
	}
	asked := web(t, s, msg.Message{Content: "#deploy ship it"})
	web(t, s, msg.Message{Content: "derived, other topic", DerivedFrom: asked.ID, Topic: "#deploy"})
	web(t, s, msg.Message{Content: "derived, same topic", DerivedFrom: asked.ID})
	first := web(t, s, msg.Message{Content: "taken back", Direction: msg.Out, OutState: msg.OutSent})
	web(t, s, msg.Message{Content: "sent again", Direction: msg.Out, OutState: msg.OutSent, DerivedFrom: first.ID, Source: msg.SourceReplay})
	storetest.Stored(t, s, &msg.Message{ChatJID: "web:acme/eng", Direction: msg.In, Content: "another group's"})
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: "another platform's"})
	storetest.Decide(t, s, web(t, s, msg.Message{Content: "dropped"}).ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	want := []string{"out ", "out sent", "out ambiguous", "#deploy ship it", "derived, other topic", "taken back", "sent again", "dropped"}
	if diff := cmp.Diff(want, texts(webHistory(t, s, webChat, nil, newest, 100))); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if got := storetest.Must(rows.LastWebMessage(t.Context(), s.Reader, webChat))(t); got == nil || got.Content != "dropped" {
		t.Errorf("last: %+v", got)
	}
	for _, topic := range []string{"", "#deploy", "#none"} {
		want := map[string][]string{
			"": {"out ", "out sent", "out ambiguous", "#deploy ship it", "taken back", "sent again", "dropped"}, "#deploy": {"derived, other topic"},
		}[topic]
		if diff := cmp.Diff(want, texts(webHistory(t, s, webChat, &topic, newest, 100))); diff != "" {
			t.Errorf("history of %q (-want +got):\n%s", topic, diff)
		}
	}
	// Rows of other platforms are not readable, even if requested.
	if got := webHistory(t, s, storetest.Chat, nil, newest, 100); got != nil {
		t.Errorf("history of %s: %v", storetest.Chat, texts(got))
	}
	if got, next, more, err := rows.WebAfter(t.Context(), s.Reader, storetest.Chat, 0, 100); got != nil || next != 0 || more || err != nil {
		t.Errorf("rows of %s: %v, %d, %v", storetest.Chat, texts(got), next, err)
	}
	if got, err := rows.LastWebMessage(t.Context(), s.Reader, storetest.Chat); got != nil || err != nil {
		t.Errorf("last of %s: %+v, %v", storetest.Chat, got, err)
	}
}

func webHistory(t testing.TB, s *store.Store, chatJID string, topic *string, before int64, limit int) []*msg.Message {
	t.Helper()
	rows, _, err := rows.WebHistory(t.Context(), s.Reader, chatJID, topic, before, limit)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestWebRows_Large_ReadInSmallBatches reads rows that together would make their reader large.
func TestWebRows_Large_ReadInSmallBatches(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const list = 6
	for range list {
		web(t, s, msg.Message{Content: strings.Repeat("x", 300<<10)})
	}
	read := func(what string, next func(at int64) ([]*msg.Message, bool, error)) {
		t.Helper()
		var seen []int64
		for at, more := int64(0), true; more; at = seen[len(seen)-1] {
			batch, again, err := next(at)
			if more = again; err != nil || len(batch) > 2 || len(batch) == 0 && len(seen) < list {
				t.Fatalf("%s: %d rows at once, %v", what, len(batch), err)
			}
			for _, m := range batch {
				seen = append(seen, m.ID)
			}
		}
		if len(seen) != list {
			t.Errorf("%s: rows %v", what, seen)
		}
	}
	read("after", func(at int64) ([]*msg.Message, bool, error) {
		batch, _, more, err := rows.WebAfter(t.Context(), s.Reader, webChat, at, 100)
		return batch, more, err
	})
	read("before", func(at int64) ([]*msg.Message, bool, error) {
		if at == 0 {
			at = newest
		}
		batch, more, err := rows.WebHistory(t.Context(), s.Reader, webChat, nil, at, 100)
		slices.Reverse(batch)
		return batch, more, err
	})
}

func TestWebNews_EachChat_NewestRow(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(jid string, state msg.OutState) int64 {
		m := msg.Message{ChatJID: jid, Direction: msg.In}
		if state != "" {
			m.Direction, m.OutState = msg.Out, state
		}
		return storetest.Stored(t, s, &m).ID
	}
	put("web:a", "")
	other := put(storetest.Chat, "")
	first := put("web:a", "queued")
	put("web:a", "sending")
	b := put("web:b", "sent")
	sending := put("web:c", "sending")
	last := put("webs:a", "queued")
	type news struct {
		Newest map[string]int64
		Next   int64
		More   bool
	}
	for _, test := range []struct {
		after int64
		limit int
		want  news
	}{
		{0, 2, news{map[string]int64{"web:a": 1}, other, true}},
		{other, 3, news{map[string]int64{"web:a": 4, "web:b": b}, b, true}},
		{b, 3, news{map[string]int64{"web:c": sending}, last, false}},
		{last, 3, news{map[string]int64{}, last, false}},
	} {
		var got news
		var err error
		floor := &store.Floor{At: test.after}
		if got.Newest, got.More, err = rows.WebNews(t.Context(), s.Reader, floor, test.limit); err != nil {
			t.Fatal(err)
		}
		if got.Next = floor.At; storetest.Server() != "" { // which raises it with the next look
			got.Next = test.want.Next
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", test.after, diff)
		}
	}
	if diff := cmp.Diff(map[string]int64{"web:a": first, "web:c": sending}, storetest.Must(rows.WebUndelivered(t.Context(), s.Reader))(t)); diff != "" {
		t.Errorf("undelivered (-want +got):\n%s", diff)
	}
}

func TestWebHistoryPages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i := range 10 {
		web(t, s, msg.Message{Content: fmt.Sprint(i), Topic: []string{"", "#a"}[i%2]})
		web(t, s, msg.Message{Content: "unreadable", Direction: msg.Out, OutState: msg.OutFailed})
	}
	topic := "#a"
	for _, tt := range []struct {
		topic *string
		want  [][]string
	}{
		{nil, [][]string{{"6", "7", "8", "9"}, {"2", "3", "4", "5"}, {"0", "1"}, nil}},
		{&topic, [][]string{{"3", "5", "7", "9"}, {"1"}, nil}},
	} {
		before := int64(newest)
		for i, want := range tt.want {
			page := webHistory(t, s, webChat, tt.topic, before, 4)
			if diff := cmp.Diff(want, texts(page)); diff != "" {
				t.Errorf("page %d (-want +got):\n%s", i, diff)
			}
			if len(page) > 0 {
				before = page[0].ID
			}
		}
	}
}

func TestWebAfter(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	expect := func(what string, after int64, limit int, wantNext int64, want ...string) {
		t.Helper()
		rows, next, _, err := rows.WebAfter(t.Context(), s.Reader, webChat, after, limit)
		if !slices.Equal(texts(rows), want) || next != wantNext || err != nil {
			t.Errorf("%s: %v, %d, %v; want %v, %d", what, texts(rows), next, err, want, wantNext)
		}
	}
	end := func(want int64) {
		t.Helper()
		if got := storetest.Must(rows.WebEnd(t.Context(), s.Reader, webChat))(t); got != want {
			t.Errorf("the end is %d, want %d", got, want)
		}
	}
	expect("an empty table", 0, 10, 0)
	end(0)
	first := web(t, s, msg.Message{Content: "1"})
	second := web(t, s, msg.Message{Content: "2"})
	expect("all", 0, 10, second.ID, "1", "2")
	expect("one", 0, 1, first.ID, "1")
	expect("the rest", first.ID, 10, second.ID, "2")
	expect("nothing new", second.ID, 10, second.ID)
	end(second.ID)

	answer := web(t, s, msg.Message{Content: "3", Direction: msg.Out, OutState: msg.OutQueued})
	failing := web(t, s, msg.Message{Content: "4", Direction: msg.Out, OutState: msg.OutSending})
	last := web(t, s, msg.Message{Content: "5"})
	outbound(t, s, "web:acme/eng", "", msg.OutQueued)
	for _, state := range []msg.OutState{msg.OutQueued, msg.OutSending} {
		setOut(t, s, answer.ID, state)
		expect("after an answer that is "+string(state), 0, 10, second.ID, "1", "2")
		expect("only that", second.ID, 10, second.ID)
		end(answer.ID - 1)
	}
	setOut(t, s, answer.ID, msg.OutSent)
	expect("up to the next answer", second.ID, 10, answer.ID, "3")
	end(failing.ID - 1)
	setOut(t, s, failing.ID, msg.OutFailed)
	expect("a failed answer", second.ID, 10, last.ID, "3", "5")
	end(last.ID) // rows of other chats say nothing of this one's: on a server they may be visible before
}

func TestWebTopics(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	if got := storetest.Must(rows.WebTopics(t.Context(), s.Reader, webChat))(t); got != nil {
		t.Errorf("in an empty chat: %v", got)
	}
	topics := map[string]rows.WebTopic{}
	for i, topic := range []string{"#b", "", "#a", "#b", "#ü", "", "\x01", "#a#fix"} {
		m := web(t, s, msg.Message{Topic: topic, ReceivedAt: int64(100 - i)})
		topics[topic] = rows.WebTopic{Topic: topic, LastID: m.ID, LastAt: m.ReceivedAt}
	}
	storetest.Stored(t, s, &msg.Message{ChatJID: "web:acme/eng", Direction: msg.In, Topic: "#other"})
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Topic: "#platform"})
	got := map[string]rows.WebTopic{}
	list := storetest.Must(rows.WebTopics(t.Context(), s.Reader, webChat))(t)
	for _, topic := range list {
		got[topic.Topic] = topic
	}
	if diff := cmp.Diff(topics, got); diff != "" || len(list) != len(topics) {
		t.Errorf("%d topics (-want +got):\n%s", len(list), diff)
	}
	if got := storetest.Must(rows.WebTopics(t.Context(), s.Reader, storetest.Chat))(t); got != nil {
		t.Errorf("of another platform: %v", got)
	}
	// A chat may lack the default topic.
	storetest.Stored(t, s, &msg.Message{ChatJID: "web:named", Direction: msg.In, Topic: "#only"})
	if got := storetest.Must(rows.WebTopics(t.Context(), s.Reader, "web:named"))(t); len(got) != 1 || got[0].Topic != "#only" {
		t.Errorf("without the default topic: %v", got)
	}
}
