package webchat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func TestPost_Text_StoredUnchanged(t *testing.T) {
	r := newFixture(t)
	before := time.Now().UnixMilli()
	id := r.post(t, map[string]string{"text": "  hi \n", "topic": "#deploy", "client_id": "x 1"})
	got, err := r.st.Message(t.Context(), id)
	if err != nil || got == nil {
		t.Fatal(got, err)
	}
	if got.Timestamp < before || got.Timestamp > time.Now().UnixMilli() || got.ReceivedAt != got.Timestamp {
		t.Errorf("times %d %d", got.Timestamp, got.ReceivedAt)
	}
	want := &msg.Message{
		ID: id, ChatJID: "web:main", PlatformID: "c:x 1", Direction: msg.In, Kind: msg.KindMessage, Sender: "web:operator", SenderName: "operator",
		Verb: msg.VerbMessage, Content: "  hi \n", Topic: "#deploy", Source: "dashd", Timestamp: got.Timestamp, ReceivedAt: got.ReceivedAt,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	chat, err := r.st.Chat(t.Context(), "web:main")
	if diff := cmp.Diff(&msg.Chat{JID: "web:main", Kind: msg.ChatWeb, Title: "The main"}, chat); err != nil || diff != "" {
		t.Errorf("chat (-want +got):\n%s%v", diff, err)
	}
}

func TestPost_Topics(t *testing.T) {
	r := newFixture(t)
	for topic, want := range map[string]string{
		"": "", "#a": "#a", "#a#b": "#a#b", "deploy": "#deploy", "#A_-9": "#A_-9", "#d": "#d", "#dx1": "#dx1", "#12": "#12",
	} {
		got, err := r.st.Message(t.Context(), r.post(t, map[string]string{"text": "x", "topic": topic}))
		if err != nil || got.Topic != want {
			t.Errorf("topic %q became %q (%v)", topic, got.Topic, err)
		}
	}
}

func TestPost_Invalid_Refused(t *testing.T) {
	r := newFixture(t)
	for body, reason := range map[string]string{
		``:                       "body: empty",
		`{"text":"x"`:            "cut off",
		`[]`:                     "array",
		`{"text":1}`:             "text",
		`{"text":"x"} {}`:        "more than one",
		`{"text":"x","a":1}`:     "unknown field",
		`{"text":""}`:            "text: is empty",
		`{}`:                     "text: is empty",
		`{"text":" \n\t\u00a0"}`: "text: is empty",
		`{"text":"` + strings.Repeat("x", maxText+1) + `"}`:                     "text: has more than 204800 bytes",
		`{"text":"` + strings.Repeat("x", 1<<20) + `"}`:                         "larger than 1048576 bytes",
		`{"text":"x","client_id":"` + strings.Repeat("x", maxClientID+1) + `"}`: "client_id",
		`{"text":"x","client_id":"a\nb"}`:                                       "client_id",
		`{"text":"x","client_id":"\u0000"}`:                                     "client_id",
		"{\"text\":\"x\",\"client_id\":\"\xff\"}":                               "client_id",
		`{"text":"x","topic":"#"}`:                                              "topic",
		`{"text":"x","topic":"##"}`:                                             "topic",
		`{"text":"x","topic":"#a#"}`:                                            "topic",
		`{"text":"x","topic":"#a b"}`:                                           "topic",
		`{"text":"x","topic":" #a"}`:                                            "topic",
		`{"text":"x","topic":"#-a"}`:                                            "topic",
		`{"text":"x","topic":"#\u00e4"}`:                                        "topic",
		`{"text":"x","topic":"#a\n"}`:                                           "topic",
		`{"text":"x","topic":"#d12"}`:                                           "topic", // a delegated turn's
		`{"text":"x","topic":"d12"}`:                                            "topic",
		`{"text":"x","topic":"#a#d12"}`:                                         "topic",
	} {
		status, answer := r.ask(t, "POST", "/main/messages", body)
		var refused struct {
			Error struct{ Kind, Message string }
		}
		if err := json.Unmarshal([]byte(answer), &refused); err != nil || status != 400 || refused.Error.Kind != "bad_request" ||
			!strings.Contains(refused.Error.Message, reason) {
			t.Errorf("%.60s: %d %.300s, want %q", body, status, answer, reason)
		}
	}
	if last, err := r.st.LastMessageID(t.Context()); last != 0 || err != nil {
		t.Errorf("row %d was stored (%v)", last, err)
	}
	r.post(t, map[string]string{"text": strings.Repeat("x", maxText), "client_id": strings.Repeat("é", maxClientID/2)})
}

func TestPost_SameClientID_SameRow(t *testing.T) {
	r := newFixture(t)
	id := r.post(t, map[string]string{"text": "one", "client_id": "7"})
	if again := r.post(t, map[string]string{"text": "two", "topic": "#a", "client_id": "7"}); again != id {
		t.Errorf("row %d, then row %d", id, again)
	}
	if m, err := r.st.Message(t.Context(), id); err != nil || m.Content != "one" || m.Topic != "" {
		t.Errorf("the repeat changed the row: %+v (%v)", m, err)
	}
	if _, answer := r.ask(t, "POST", "/other/messages", `{"text":"one","client_id":"7"}`); answer == fmt.Sprintf(`{"id":%d}`, id) {
		t.Error("it is the row of another chat")
	}
	if one, two := r.post(t, map[string]string{"text": "x"}), r.post(t, map[string]string{"text": "x"}); one == two {
		t.Error("without a client_id a repeat is not a new row")
	}
}

func TestHistory_HostileText_Escaped(t *testing.T) {
	r := newFixture(t)
	texts := []string{
		`<script>alert(1)</script>`, `<img src=x onerror=alert(1)>`, "[x](javascript:alert(1))", "<!-- ", "\"'`<b", "\n\nevent: x\ndata: {}",
		"a\u2028b\u0000c\u202ed", "'; DROP TABLE messages; --", "/status", "@main #x", "![](http://evil.example/p.png)", "</template>",
	}
	for _, text := range texts {
		r.post(t, map[string]string{"text": text})
		r.answered(t, text, msg.OutSent)
	}
	_, body := r.ask(t, "GET", "/main/messages", "")
	if strings.ContainsAny(body, "<>\u2028\n") {
		t.Error("the answer is more than JSON for who reads it as something else")
	}
	s := r.follow(t, "main", after(0), "")
	defer s.close()
	for i, m := range get[history](t, r, "/main/messages").Messages {
		want := texts[i/2]
		if i%2 == 0 { // posted; the store removes NUL, which the answer has from SQL
			want = strings.ReplaceAll(want, "\x00", "")
		}
		if m.Content != want {
			t.Errorf("%q became %q", want, m.Content)
		}
		if diff := cmp.Diff(m, s.message()); diff != "" {
			t.Errorf("as an event (-history +event):\n%s", diff)
		}
		switch {
		case m.Direction == "in" && m.HTML != nil:
			t.Errorf("text of users is markup: %s", *m.HTML)
		case m.Direction == "out" && m.HTML == nil:
			t.Errorf("no html of %q", m.Content)
		case m.Direction == "out":
			for _, bad := range []string{"<script", "<img", "<!--", "</template", "href=\"javascript"} {
				if strings.Contains(*m.HTML, bad) {
					t.Errorf("html of %q: %s", m.Content, *m.HTML)
				}
			}
		}
	}
}

func TestHistory_JSON_Shape(t *testing.T) {
	r := newFixture(t)
	r.said(t, "#a", "hi *you*")
	r.sql(t, `UPDATE messages SET turn_id = 3 WHERE id = ?`, r.answered(t, "hi *you*", msg.OutSent))
	r.sql(t, `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('web:notices', 'out', 7, 8), ('web:notices', 'in', 7, 8)`)
	for path, want := range map[string]string{
		"/main/messages": `{"messages":[
			{"id":1,"direction":"in","topic":"#a","sender":"agent:main","sender_name":"main","source":"agent","content":"hi *you*","timestamp":5,"turn_id":null},
			{"id":2,"direction":"out","topic":"","sender":"agent:main","sender_name":"main","source":"agent","content":"hi *you*",
			 "html":"<p>hi <em>you</em></p>\n","timestamp":5,"turn_id":3}],"more":false}`,
		"/main/topics": `{"topics":[{"topic":"","last_id":2,"last_at":6},{"topic":"#a","last_id":1,"last_at":6}]}`,
		"/notices/messages": `{"messages":[
			{"id":3,"direction":"out","topic":"","sender":"","sender_name":"Robot","source":"","content":"","timestamp":7,"turn_id":null},
			{"id":4,"direction":"in","topic":"","sender":"","sender_name":"","source":"","content":"","timestamp":7,"turn_id":null}],"more":false}`,
		"/empty/messages": `{"messages":[],"more":false}`,
		"/empty/topics":   `{"topics":[{"topic":"","last_id":0,"last_at":0}]}`,
	} {
		var wanted any
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, get[any](t, r, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestHistory_Queries_ReturnRowsOfTopic(t *testing.T) {
	r := newFixture(t)
	for range 3 { // rows 1 to 9
		r.said(t, "", "x")
		r.said(t, "#a", "x")
		r.put(t, row{folder: "other", direction: "in", content: "x"})
	}
	for query, want := range map[string]struct {
		ids  []int64
		more bool
	}{
		"":                     {[]int64{1, 2, 4, 5, 7, 8}, false},
		"?limit=6":             {[]int64{1, 2, 4, 5, 7, 8}, false},
		"?limit=5":             {[]int64{2, 4, 5, 7, 8}, true},
		"?limit=2&before=5":    {[]int64{2, 4}, true},
		"?limit=2&before=3":    {[]int64{1, 2}, false},
		"?before=1":            {[]int64{}, false},
		"?before=-9":           {[]int64{}, false},
		"?before=&limit=":      {[]int64{1, 2, 4, 5, 7, 8}, false},
		"?topic=":              {[]int64{1, 4, 7}, false},
		"?topic=%23a":          {[]int64{2, 5, 8}, false},
		"?topic=%23a&limit=2":  {[]int64{5, 8}, true},
		"?topic=%23a&before=8": {[]int64{2, 5}, false},
		"?topic=%23A":          {[]int64{}, false},
		"?topic=" + url.QueryEscape("' OR 1=1 --"): {[]int64{}, false},
		"?limit=0":  {[]int64{8}, true},
		"?limit=-1": {[]int64{8}, true},
	} {
		got := get[history](t, r, "/main/messages"+query)
		if diff := cmp.Diff(want.ids, got.ids()); diff != "" || got.More != want.more {
			t.Errorf("%s: more %v (-want +got):\n%s", query, got.More, diff)
		}
	}
	for _, query := range []string{"?before=x", "?limit=x", "?before=1.5", "?limit=99999999999999999999", "?before=0x10"} {
		if status, answer := r.ask(t, "GET", "/main/messages"+query, ""); status != 400 || !strings.Contains(answer, "bad_request") {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
}

func TestHistory_Limits_BoundAPage(t *testing.T) {
	r := newFixture(t)
	r.sql(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 201)
		INSERT INTO messages (chat_jid, direction, timestamp, received_at, topic) SELECT 'web:main', 'in', 0, 0, '' FROM n`)
	for query, want := range map[string]int{"": 50, "?topic=": 50, "?limit=200": 200, "?limit=201": 200, "?limit=9000": 200} {
		if got := get[history](t, r, "/main/messages"+query); len(got.Messages) != want || !got.More {
			t.Errorf("%s: %d messages, more %v; want %d", query, len(got.Messages), got.More, want)
		}
	}
}

func TestTopics_OrderOfUse(t *testing.T) {
	r := newFixture(t)
	for _, topic := range []string{"#b", "#a", "#c#x", "#b"} {
		r.said(t, topic, "x")
	}
	type list struct{ Topics []rows.WebTopic }
	want := list{[]rows.WebTopic{{Topic: "#b", LastID: 4, LastAt: 6}, {Topic: "#c#x", LastID: 3, LastAt: 6}, {Topic: "#a", LastID: 2, LastAt: 6}, {Topic: "", LastID: 0, LastAt: 0}}}
	if diff := cmp.Diff(want, get[list](t, r, "/main/topics")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEditTopic(t *testing.T) {
	r := newFixture(t)
	r.said(t, "#a", "x")
	edit := func(body string, status int, want string) {
		t.Helper()
		if got, answer := r.ask(t, http.MethodPost, "/main/topics", body); got != status || !strings.Contains(answer, want) {
			t.Errorf("%s: %d %s", body, got, answer)
		}
	}
	topics := func(want ...rows.WebTopic) {
		t.Helper()
		type list struct{ Topics []rows.WebTopic }
		if diff := cmp.Diff(list{append(want, rows.WebTopic{})}, get[list](t, r, "/main/topics")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	edit(`{"topic":"#a","title":" The  <b> plan ","archived":true}`, 200, `"The \u003cb\u003e plan"`)
	topics(rows.WebTopic{Topic: "#a", LastID: 1, LastAt: 6, Title: "The <b> plan", Archived: true})
	for body, want := range map[string]string{
		`{"topic":"#b","archived":true}`:                            "409 no message yet",
		`{"topic":"no topic","title":"x"}`:                          "400 is none",
		`{"topic":"#a","title":"` + strings.Repeat("x", 101) + `"}`: "400 at most 100",
		`{"topic":"#a","title":"a\u202eb"}`:                         "400 printable",
		`{"archived":true}`:                                         "400 main topic stays",
		`{"topic":7}`:                                               "400 topic",
	} {
		status, text, _ := strings.Cut(want, " ")
		code, _ := strconv.Atoi(status)
		edit(body, code, text)
	}
	r.said(t, "#a", "y") // brings it back
	topics(rows.WebTopic{Topic: "#a", LastID: 2, LastAt: 6, Title: "The <b> plan"})
	edit(`{"topic":"#a","archived":true}`, 200, `""`)
	topics(rows.WebTopic{Topic: "#a", LastID: 2, LastAt: 6, Archived: true})
	edit(`{"topic":"#a","title":"👩\u200d💻"}`, 200, "👩\u200d💻")
	edit(`{"topic":"#a"}`, 200, "")
	topics(rows.WebTopic{Topic: "#a", LastID: 2, LastAt: 6})
	edit(`{"topic":"#on-call","title":"On call"}`, 200, "On call") // before its first message
	r.said(t, "#on-call", "z")
	topics(rows.WebTopic{Topic: "#on-call", LastID: 3, LastAt: 6, Title: "On call"}, rows.WebTopic{Topic: "#a", LastID: 2, LastAt: 6})
}

func TestHandlers_DatabaseFails_HideError(t *testing.T) {
	r := newFixture(t)
	r.sql(t, `ALTER TABLE messages RENAME TO gone`)
	for call, want := range map[string]int{
		"POST /main/messages": 503, "GET /main/messages": 500, "GET /main/topics": 500, "GET /main/events": 500,
	} {
		method, path, _ := strings.Cut(call, " ")
		if status, answer := r.ask(t, method, path, `{"text":"x"}`); status != want || strings.Contains(answer, "no such table") {
			t.Errorf("%s: %d %s, want %d", call, status, answer, want)
		}
	}
}

// outbound stores rows as an agent whose results are not bounded did.
func (r *fixture) outbound(t testing.TB, count, size int) {
	t.Helper()
	r.sql(t, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < ?1)
		INSERT INTO messages (chat_jid, direction, kind, sender, content, timestamp, received_at, source, out_state)
		SELECT 'web:main', 'out', 'message', 'agent:main', replace(hex(zeroblob(?2/2)), '0', '<'), i, i, 'agent', 'sent' FROM n`, count, size)
}

func TestHistory_HugeRows_AnswersBounded(t *testing.T) {
	r := newFixture(t)
	const count = 4
	r.outbound(t, count, 1_000_000)
	for _, view := range []string{"", "&view=page"} {
		before := int64(count + 1)
		for before > 1 {
			status, body := r.ask(t, "GET", fmt.Sprintf("/main/messages?limit=200&before=%d%s", before, view), "")
			var page history
			if err := json.Unmarshal([]byte(body), &page); err != nil || status != 200 || len(page.Messages) == 0 {
				t.Fatalf("%d: %v", status, err)
			}
			if len(body) > 4<<20 {
				t.Errorf("an answer has %d bytes", len(body))
			}
			newest := page.Messages[len(page.Messages)-1]
			if newest.ID != before-1 || !strings.Contains(*newest.HTML, "[cut: the message has 1000000 bytes]") {
				t.Errorf("row %d before %d: …%.60s", newest.ID, before, (*newest.HTML)[len(*newest.HTML)-60:])
			}
			if before = page.Messages[0].ID; page.More != (before > 1) {
				t.Errorf("more is %t at row %d", page.More, before)
			}
		}
	}
}

func TestHistory_PageView_HasNoContentBesideHTML(t *testing.T) {
	r := newFixture(t)
	r.said(t, "", "question")
	r.answered(t, "answer", msg.OutSent)
	for path, want := range map[string]bool{"/main/messages": true, "/main/messages?view=page": false} {
		_, body := r.ask(t, "GET", path, "")
		if got := strings.Contains(body, `"content":"answer"`); got != want || !strings.Contains(body, `"html":`) {
			t.Errorf("%s: %s", path, body)
		}
	}
	s := r.follow(t, "main", after(0)+"&view=page", "")
	defer s.close()
	if in, out := s.message(), s.message(); in.Content != "question" || out.Content != "" || out.HTML == nil {
		t.Errorf("as events: %+v, %+v", in, out)
	}
}

func TestHistory_AnyPageSize_EveryRowOnce(t *testing.T) {
	r := newFixture(t)
	const count = 3*readAtOnce + 1
	r.outbound(t, count, 10)
	for limit := 1; limit <= count+1; limit++ {
		var seen []int64
		for before, more := int64(count+1), true; more; {
			page := get[history](t, r, fmt.Sprintf("/main/messages?limit=%d&before=%d", limit, before))
			if len(page.Messages) > limit {
				t.Fatalf("%d rows, limit %d", len(page.Messages), limit)
			}
			seen = append(page.ids(), seen...)
			before, more = seen[0], page.More
		}
		if len(seen) != count || !slices.IsSorted(seen) {
			t.Errorf("limit %d: %v", limit, seen)
		}
	}
}

// A notice stands at the end of the log, maybe far below the message that it is about.
func TestHistory_NoticeAboutAMessage_QuotesIt(t *testing.T) {
	r := newFixture(t)
	long := "first\n\nsecond <b> " + strings.Repeat("ä", 100)
	asked := r.row(t, r.post(t, map[string]string{"text": long, "client_id": "1"}))
	for _, m := range []*msg.Message{
		{Source: msg.SourceNotice, ReplyToID: asked.PlatformID, Content: "sorry"},
		{Source: msg.SourceAgent, ReplyToID: asked.PlatformID, Content: "answer"},
		{Source: msg.SourceNotice, ReplyToID: "of a row that is gone", Content: "sorry"},
	} {
		m.ChatJID, m.Direction, m.OutState, m.Timestamp, m.ReceivedAt = "web:main", msg.Out, msg.OutSent, 1, 1
		if err := r.st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(m); return err }); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, m := range get[struct{ Messages []message }](t, r, "/main/messages").Messages {
		got = append(got, m.Quote)
	}
	if want := []string{"", "first second <b> " + strings.Repeat("ä", 51) + "…", "", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
