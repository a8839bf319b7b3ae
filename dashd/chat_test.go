package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

func TestChat_UnknownGroup_NotFound(t *testing.T) {
	p := serve(t, dataFolder(t))
	b := p.operator()
	const evil = "/chat/%3Cscript%3Ealert(1)%3C/script%3E/x"
	for _, path := range []string{"/chat/none", "/chat/none/", "/chat/main/eng", "/chat/main//", "/chat/..%2f", "/chat/none/messages", evil} {
		a := b.get(path)
		if a.status != 404 || !strings.Contains(a.body, "There is no group") || strings.Contains(a.body, "<script>alert") || !strings.HasPrefix(a.Get("Content-Type"), "text/html") {
			t.Errorf("%s as a page: %d %.300s", path, a.status, a.body)
		}
		if a := b.get(path, "Accept: application/json"); a.status != 404 || a.kind() != "not_found" {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, call := range []string{"POST /chat/none/messages", "GET /chat/none/topics", "GET /chat/none/events"} {
		method, path, _ := strings.Cut(call, " ")
		if a := b.do(method, path, `{"text":"x"}`, "Accept: */*"); a.status != 404 || a.kind() != "not_found" {
			t.Errorf("%s: %d %s", call, a.status, a.body)
		}
	}
	for _, call := range []string{"POST /chat/main", "POST /chat/", "PUT /chat/main/messages", "DELETE /chat/main"} {
		method, path, _ := strings.Cut(call, " ")
		if a := b.do(method, path, `{"text":"x"}`, "Accept: */*"); a.status != 400 || a.kind() != "bad_request" {
			t.Errorf("%s: %d %s", call, a.status, a.body)
		}
	}
	if a := b.get("/chat"); a.status != 303 || a.Get("Location") != "/chat/" {
		t.Errorf("/chat: %d to %s", a.status, a.Get("Location"))
	}
}

// Groups may have the names of a chat's endpoints.
func TestChat_Folders_Found(t *testing.T) {
	data := dataFolder(t)
	for _, folder := range []string{"a", "a/messages", "messages", "a/b/c"} {
		shell(t, data, `INSERT INTO registered_groups (folder, created_at) VALUES (?, 0)`, folder)
		shell(t, data, `INSERT INTO messages (chat_jid, direction, content, timestamp, received_at) VALUES (?, 'in', ?, 0, 0)`, "web:"+folder, "to "+folder)
	}
	b := serve(t, data).program()
	for path, folder := range map[string]string{
		"a": "a", "a/": "a", "a/messages/": "a/messages", "messages": "messages", "messages/": "messages", "a/b/c": "a/b/c", "a/b/c/": "a/b/c",
	} {
		contains(t, b.must(200, "GET", "/chat/"+path, "").body, `data-folder="`+folder+`"`)
	}
	for path, folder := range map[string]string{
		"a/messages": "a", "a/messages/messages": "a/messages", "messages/messages": "messages", "a/b/c/messages": "a/b/c",
	} {
		contains(t, b.must(200, "GET", "/chat/"+path, "").body, `"content":"to `+folder+`"`)
	}
	b.must(202, "POST", "/chat/a/messages/messages", `{"text":"new","client_id":"x"}`)
	contains(t, b.must(200, "GET", "/chat/a/messages/messages", "").body, `"content":"new"`)
}

func TestChats_ManyGroups_InPages(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 119) INSERT INTO registered_groups (folder, created_at) SELECT printf('g%03d', i), 0 FROM n`)
	b := serve(t, data).operator()
	var counts []int
	for path := "/chat/"; path != ""; {
		page := b.must(200, "GET", path, "").body
		counts = append(counts, strings.Count(page, `<span class="last">`))
		_, rest, more := strings.Cut(page, `href="/chat/?`)
		if path = ""; more {
			path = "/chat/?" + rest[:strings.Index(rest, `"`)]
		}
	}
	if !slices.Equal(counts, []int{50, 50, 20}) {
		t.Errorf("chats of each page: %v", counts)
	}
	contains(t, b.must(200, "GET", "/chat/?skip=120", "").body, "No more chats")
	b.must(200, "GET", "/chat/?skip=-1", "")
	if page := b.must(200, "GET", "/chat/?text=G11", "").body; strings.Count(page, `<span class="last">`) != 10 {
		t.Errorf("filtered: %s", page)
	}
	contains(t, b.must(200, "GET", "/chat/?text=none+such", "").body, "No chats match")
	b.must(202, "POST", "/chat/g077/messages", `{"text":"hi"}`)
	for _, path := range []string{"/chat/", "/chat/main/"} {
		page := b.must(200, "GET", path, "").body
		newest := strings.Index(page, `href="/chat/g077/"`)
		if other := strings.Index(page, `href="/chat/g001/"`); newest < 0 || newest > other {
			t.Errorf("%s: the newest chat is not the first", path)
		}
	}
}

func TestChats_Listed_WithLastMessage(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO registered_groups (folder, name, created_at) VALUES ('acme/eng', '<b>Eng</b>', 0)`)
	p := serve(t, data)
	b := p.operator()
	if page := b.must(200, "GET", "/chat/", "").body; !strings.Contains(page, "/chat/acme/eng") || strings.Contains(page, "<b>") || strings.Count(page, "No messages yet") != 2 {
		t.Errorf("the list: %s", page)
	}
	b.must(202, "POST", "/chat/main/messages", `{"text":"one\n<i>two</i>"}`)
	if page := b.must(200, "GET", "/chat/", "").body; !strings.Contains(page, "one &lt;i&gt;two&lt;/i&gt;") || strings.Count(page, "No messages yet") != 1 {
		t.Errorf("the list: %s", page)
	}
	shell(t, data, `UPDATE messages SET received_at = received_at - 3 * 3600 * 1000`)
	contains(t, b.must(200, "GET", "/chat/", "").body, ">3 h ago<")
	contains(t, b.must(200, "GET", "/chat/main", "").body, `data-last-id="1"`, `data-assistant="arizuko"`)
}

func TestPost_Sender_IsLogin(t *testing.T) {
	p := serve(t, dataFolder(t))
	for _, b := range []*browser{p.operator(), p.program()} {
		b.must(202, "POST", "/chat/main/messages", `{"text":"hi"}`)
	}
	got := p.program().must(200, "GET", "/chat/main/messages", "").body
	if strings.Count(got, `"sender":"web:operator","sender_name":"operator"`) != 2 {
		t.Error(got)
	}
}

// arrived is a message as a page receives it.
type arrived struct {
	ID        int64
	Direction string
	Content   string
	HTML      string
}

func message(t *testing.T, data string) (m arrived) {
	t.Helper()
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		t.Fatalf("%v: %q", err, data)
	}
	return m
}

func TestChat_Question_Answered(t *testing.T) {
	data := dataFolder(t)
	gated, err := wake.Listen(filepath.Join(data, "run"), "gated")
	if err != nil {
		t.Fatal(err)
	}
	defer gated.Close()
	p := serve(t, data)
	b := p.operator()
	next := b.events("/chat/main/events")
	if got := next("typing"); got != `{"topics":[]}` {
		t.Errorf("typing %s", got)
	}
	b.must(202, "POST", "/chat/main/messages", `{"text":"question"}`)
	<-gated.C()
	if m := message(t, next("message")); m.Content != "question" || m.Direction != "in" {
		t.Errorf("%+v", m)
	}
	id := queued(t, data, "the **answer**")
	if m := message(t, next("message")); m.ID != id || m.Direction != "out" || m.HTML != "<p>the <strong>answer</strong></p>\n" {
		t.Errorf("%+v", m)
	}
	p.wantDelivered(id)
}

// wantDelivered checks how a delivery was stored.
func (p *process) wantDelivered(id int64) {
	p.t.Helper()
	m, err := p.Store.Message(p.t.Context(), id)
	if err != nil || m.OutState != "sent" || m.PlatformID != fmt.Sprint(id) {
		p.t.Errorf("row %d: %+v (%v)", id, m, err)
	}
	parts, err := p.Store.Deliveries(p.t.Context(), id)
	if err != nil || len(parts) != 1 || parts[0].State != "sent" || parts[0].PlatformID != fmt.Sprint(id) || parts[0].Part != 0 {
		p.t.Errorf("deliveries of row %d: %+v (%v)", id, parts, err)
	}
}

func TestPoke_UpdatesStream(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data, "POLL_INTERVAL=1h")
	next := p.operator().events("/chat/main/events")
	next("typing")
	poker := wake.NewPoker(filepath.Join(data, "run"), func(_ string, err error) { t.Error(err) })
	defer poker.Close()
	id := queued(t, data, "answer")
	poker.Poke("dashd")
	if m := message(t, next("message")); m.ID != id {
		t.Errorf("%+v", m)
	}
}

func TestStart_InterruptedDelivery_Delivered(t *testing.T) {
	data := dataFolder(t)
	id := queued(t, data, "answer")
	shell(t, data, `UPDATE messages SET out_state = 'sending'`)
	shell(t, data, `INSERT INTO deliveries (message_id, part, seq, state, updated_at) VALUES (?, 0, 1, 'sending', 0)`, id)
	p := serve(t, data)
	if m := message(t, p.operator().events("/chat/main/events?after=0")("message")); m.ID != id {
		t.Errorf("%+v", m)
	}
	p.wantDelivered(id)
}

func TestStop_Streams_End(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	b := p.operator()
	chat, all := b.events("/chat/main/events"), b.events("/events")
	chat("typing")
	all("hello")
	start := time.Now()
	p.stop()
	if got := chat("stopping") + chat("none") + all("stopping") + all("none"); got != "{}{}" {
		t.Errorf("after the stop: %s", got)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	id := queued(t, data, "meanwhile")
	p = serve(t, data)
	b.base = "http://" + p.Addr
	if m := message(t, b.events("/chat/main/events?after=0")("message")); m.ID != id {
		t.Errorf("after the start: %+v", m)
	}
}

// fragment fetches what a page shows as an open page does, and returns its tag; nothing if it has not changed.
func (b *browser) fragment(path, tag string) (html, newTag string) {
	b.t.Helper()
	a := b.get(path, "Accept: application/json", "If-None-Match: "+tag)
	if a.status == 304 && a.body == "" {
		return "", a.Get("ETag")
	}
	var data struct{ HTML string }
	if err := json.Unmarshal([]byte(a.body), &data); a.status != 200 || err != nil || a.Get("ETag") == "" {
		b.t.Fatalf("GET %s: %d %v %.300s", path, a.status, err, a.body)
	}
	return data.HTML, a.Get("ETag")
}

func TestOverview_NewRow_ChangesFragment(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	b := p.operator()
	next := b.events("/events")
	next("hello")
	fragment := func() string {
		t.Helper()
		next("changed")
		html, _ := b.fragment("/", "")
		return html
	}
	if first, _ := b.fragment("/", ""); !strings.Contains(first, "<dt>Not decided yet</dt><dd>0</dd>") {
		t.Errorf("the first: %s", first)
	}
	shell(t, data, `INSERT INTO messages (chat_jid, direction, timestamp, received_at) VALUES ('telegram:<b>7', 'in', 0, 0)`)
	now := fragment()
	for !strings.Contains(now, "<dt>Not decided yet</dt><dd>1") {
		now = fragment()
	}
	page := b.must(200, "GET", "/", "").body
	for _, shown := range []string{now, page} {
		if !strings.Contains(shown, "telegram:&lt;b&gt;7") || !strings.Contains(shown, `<th scope="row">dashd</th>`) {
			t.Errorf("the overview: %s", shown)
		}
	}
}

// TestOverview_Failures_NeedAttention: what fails or waits is on the overview, with what to do about it and where.
func TestOverview_Failures_NeedAttention(t *testing.T) {
	data := dataFolder(t)
	lostRows(t, data)
	storeTurns(t, data, "failed")
	request(t, data, "ABCD-1234", "telegram:-5")
	now := time.Now()
	shell(t, data, `UPDATE onboarding_requests SET created_at = ?`, now.Add(-2*time.Hour).UnixMilli())
	shell(t, data, `UPDATE messages SET received_at = ?`, now.UnixMilli())
	shell(t, data, `UPDATE turns SET ended_at = ?, error = 'exit <b>1</b>'`, now.UnixMilli())
	for _, name := range []string{"gated", "routd", "onbod"} {
		shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES (?, 1, ?, 'connected')`, name, now.UnixMilli())
	}
	shell(t, data, `INSERT INTO daemons (name, started_at, heartbeat_at, connection) VALUES ('teled', 1, 1, 'connected'), ('discd', 1, 1, 'connecting')`)
	page := serve(t, data).operator().must(200, "GET", "/", "").body
	_, page, _ = strings.Cut(page, "Needs attention")
	contains(t, page, "1 turn failed within a day", "exit &lt;b&gt;1&lt;/b&gt;", "fix the cause, then retry them together", `<a href="/turns/retry">`,
		`<form method="post" action="/turns/1/retry"><button>Retry turn 1</button></form>`, `<a href="/turns?state=failed">`, "delivered within a day", `<a href="/lost">`,
		"1 request of a chat waits for an operator", `<a href="/approvals">`, `<span class="state good">running</span>`, "<bdi>teled ", "<bdi>discd ")
	if n := strings.Count(page, `<span class="state bad">not answering</span> <a href="#attention">`); n != 2 {
		t.Errorf("%d daemons do not answer", n)
	}
	for _, wrong := range []string{"has never run", "`gated "} { // all run, and pages do what is to be done
		if strings.Contains(page, wrong) {
			t.Errorf("the overview says %q", wrong)
		}
	}
}

func TestStatus_EachChat_HasAllFields(t *testing.T) {
	data := dataFolder(t)
	p := serve(t, data)
	st := storetest.OpenAt(t, filepath.Join(data, "arizuko.db"), nil)
	for daemons, err := rows.Daemons(t.Context(), st.Reader); len(daemons) == 0 || daemons[0].Connection != "connected"; daemons, err = rows.Daemons(t.Context(), st.Reader) {
		if err != nil {
			t.Fatal(err)
		}
	}
	b := p.operator()
	for query, want := range map[string]map[string]any{
		"":                                 {"group": nil, "topic": "", "session": nil, "engaged_until": nil, "queue_place": nil},
		"?chat_jid=web:main":               {"group": "main", "topic": "", "session": nil, "engaged_until": nil, "queue_place": nil},
		"?chat_jid=telegram:404":           {"group": nil, "topic": "", "session": nil, "engaged_until": nil, "queue_place": nil},
		"?chat_jid=slack:C1&thread_id=5.6": {"group": nil, "topic": "5.6", "session": nil, "engaged_until": nil, "queue_place": nil},
	} {
		text := b.must(200, "GET", "/status"+query, "")
		if !strings.HasPrefix(text.Get("Content-Type"), "text/plain") || text.body == "" {
			t.Errorf("%s: %v %s", query, text.Header, text.body)
		}
		var got map[string]any
		a := b.must(200, "GET", "/status"+query, "", "Accept: application/json")
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if shown, ok := got[name]; !ok || shown != value {
				t.Errorf("%s: %s is %v, want %v", query, name, shown, value)
			}
		}
		daemons, _ := got["daemons"].([]any)
		if len(daemons) != 1 {
			t.Fatalf("%s: daemons %v", query, got["daemons"])
		}
		row, _ := daemons[0].(map[string]any)
		if _, beats := row["heartbeat_at"].(float64); row["name"] != "dashd" || row["connection"] != "connected" || row["ok"] != true || !beats || len(row) != 4 {
			t.Errorf("%s: daemon %v", query, row)
		}
	}
	b.must(400, "GET", "/status?chat_jid=nowhere", "")
	p.program().must(200, "GET", "/status", "")
}

func TestOverview_RoutdsProblems_Listed(t *testing.T) {
	data := dataFolder(t)
	shell(t, data, `INSERT INTO daemons (name, version, started_at, heartbeat_at, connection, detail)
		VALUES ('routd', 'v1', 1, ?, 'connected', ?)`, time.Now().UnixMilli(), "route 1 matches nothing\nroute 2 lets <any> user in")
	page := serve(t, data).operator().must(200, "GET", "/", "").body
	contains(t, page, "Routes and groups to check", "<li>route 1 matches nothing</li>", "<li>route 2 lets &lt;any&gt; user in</li>")
	if _, table, _ := strings.Cut(page, `<h2 id="daemons">`); strings.Contains(table, `class="detail"`) {
		t.Errorf("the problems are listed beside routd, too:\n%s", page)
	}
}
