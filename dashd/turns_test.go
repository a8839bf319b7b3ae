package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
)

func newGated(t *testing.T) *fake {
	g := newFake(t, "gated")
	g.answer = map[string]string{"prompt": "<messages>secret plan</messages>"}
	return g
}

// turns stores a chat with turns, and returns their ids.
func storeTurns(t *testing.T, data string, states ...string) (ids []int64) {
	t.Helper()
	shell(t, data, `INSERT OR IGNORE INTO chats (jid, platform, kind, title) VALUES ('telegram:-7', 'telegram', 'group', 'Ops <b>')`)
	for _, state := range states {
		row := shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at)
			VALUES ('telegram:-7', 'in', 'telegram:42', 'Ada', 'is it <i>red</i>?', 5, 5)`)
		turn := shell(t, data, `INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at, error)
			VALUES ('conversation', 'main', 'telegram:-7', '', ?, 'telegram-group', 4000, ?, 5, 6, ?, 'exit status 1')`,
			row, state, map[bool]any{true: 9, false: nil}[state != "queued"])
		shell(t, data, `UPDATE messages SET turn_id = ?, disposition = 'routed', reason = 'route', routed_to = 'main', decided_at = 5, decision_seq = ? WHERE id = ?`, turn, turn, row)
		ids = append(ids, turn)
	}
	return ids
}

// An agent that has read its environment or its instance's files may repeat a secret anywhere.
func TestPages_SecretInTexts_IsHidden(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	ids := storeTurns(t, data, "failed", "done", "queued")
	shell(t, data, `UPDATE messages SET content = ?, error = ?, sender_name = ?`, "it is "+secret, secret, secret)
	shell(t, data, `UPDATE turns SET error = ?, topic = ?`, "exit: "+secret, "#"+secret)
	shell(t, data, `UPDATE chats SET title = ?`, secret)
	shell(t, data, `INSERT INTO turn_progress (turn_id, state, text, updated_at) VALUES (?, 'running', ?, 6)`, ids[1], strings.Repeat("é ", 1990)+secret)
	for _, path := range []string{"/", "/turns", fmt.Sprint("/turns/", ids[0]), fmt.Sprint("/turns/", ids[1]), "/messages", "/messages/1", "/chats", "/groups/main"} {
		if body := b.must(200, "GET", path, "").body; strings.Contains(body, secret[:12]) {
			i := strings.Index(body, secret[:12])
			t.Errorf("%s shows a secret: %s", path, body[max(0, i-200):i+40])
		}
	}
}

func TestTurns_List_FiltersAndPages(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	contains(t, b.must(200, "GET", "/turns", "").body, "No turns here")
	storeTurns(t, data, append(strings.Fields(strings.Repeat("cancelled ", 60)), "failed", "queued")...)
	rows := func(path string) (int, string) {
		t.Helper()
		page := b.must(200, "GET", path, "").body
		return strings.Count(page, `<th scope="row"><a href="/turns/`), page
	}
	for path, want := range map[string]int{
		"/turns": 50, "/turns?state=failed": 1, "/turns?state=queued": 1, "/turns?state=running": 0, "/turns?state=cancelled": 50,
		"/turns?chat=telegram:-7": 50, "/turns?chat=telegram:-8": 0, "/turns?group=main": 50, "/turns?group=eng": 0, "/turns?before=13": 12,
	} {
		n, page := rows(path)
		if n != want {
			t.Errorf("%s lists %d turns, want %d", path, n, want)
		}
		if n > 0 && !strings.Contains(page, "<bdi>Ops &lt;b&gt;</bdi>") {
			t.Errorf("%s does not show the chat's title", path)
		}
		if strings.Contains(page, ">Older turns<") != (want == 50) {
			t.Errorf("%s: older turns", path)
		}
	}
	_, page := rows("/turns?chat=telegram%3A-7")
	contains(t, page, `href="/turns?before=13&amp;chat=telegram%3A-7"`)
	b.must(400, "GET", "/turns?before=x", "")
}

func TestTurn_Page_ShowsAllOfIt(t *testing.T) {
	data := dataFolder(t)
	id := storeTurns(t, data, "failed")[0]
	shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, content, timestamp, received_at, turn_id, out_state) VALUES ('telegram:-7', 'out', 'agent:main', 'sorry <u>', 8, 8, ?, 'failed')`, id)
	shell(t, data, `INSERT INTO runs (id, folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES (77, 'main', '', 'telegram:-7', 'bwrap', 6, 8, 9)`)
	shell(t, data, `INSERT INTO session_log (run_id, started_at, ended_at, folder, topic, result, error) VALUES (77, 6, 9, 'main', '', 'error', 'exit status 1')`)
	logs := filepath.Join(data, "logs", "main")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(logs, "run-77.log"), []byte("panic: <script>alert(1)</script>\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	page := b.must(200, "GET", fmt.Sprintf("/turns/%d", id), "").body
	contains(t, page, "is it &lt;i&gt;red&lt;/i&gt;?", "sorry &lt;u&gt;", "bwrap", "panic: &lt;script&gt;", "telegram-group", `/retry"><button>Retry`,
		fmt.Sprintf(`href="/turns/%d/context"`, id), `href="/logs?group=main&amp;run=77"`)
	if a := b.must(200, "GET", "/logs?group=main&run=77", ""); a.Get("Content-Type") != "text/plain; charset=utf-8" || !strings.Contains(a.body, "<script>") {
		t.Errorf("the log: %v %s", a.Header, a.body)
	}
	contains(t, b.must(200, "GET", fmt.Sprintf("/turns/%d/context", id), "").body, "&lt;messages&gt;secret plan")
	for path, status := range map[string]int{"/turns/99": 404, "/turns/x": 400, "/turns/99/context": 404} {
		b.must(status, "GET", path, "")
	}
	g.Close()
	contains(t, b.must(200, "GET", fmt.Sprintf("/turns/%d/context", id), "").body, "gated does not answer")
}

func TestTurn_Buttons_AreDoneByGated(t *testing.T) {
	data := dataFolder(t)
	ids := storeTurns(t, data, "failed", "queued")
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	for path, want := range map[string]string{
		fmt.Sprintf("/turns/%d/retry", ids[0]):  fmt.Sprintf("Turn %d is in the queue again.", ids[0]),
		fmt.Sprintf("/turns/%d/cancel", ids[1]): fmt.Sprintf("Turn %d was cancelled.", ids[1]),
	} {
		contains(t, b.submit(path, url.Values{}).body, want)
		if last := g.calls[len(g.calls)-1]; last != "web:operator POST /v1"+path {
			t.Errorf("gated was asked: %s", last)
		}
	}
	g.refuse(apierr.Conflict, "turn 1 is done: <b> only failed ones")
	contains(t, b.submit(fmt.Sprintf("/turns/%d/retry", ids[0]), nil).body, "turn 1 is done: &lt;b&gt; only failed ones")
}

func TestTurn_TakenBack_IsShownAndChangedByGated(t *testing.T) {
	data := dataFolder(t)
	id := storeTurns(t, data, "done")[0]
	path := fmt.Sprintf("/turns/%d", id)
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	shows := func(words ...string) {
		t.Helper()
		page := b.must(200, "GET", path, "").body
		contains(t, page, words...)
		buttons := strings.Count(page, "do\"><button class=\"quiet\">") + strings.Count(page, `value="true"><button class="quiet">`)
		if want := strings.Count(strings.Join(words, ""), "<button class=\"quiet\">"); buttons != want {
			t.Errorf("%d buttons, want %d:\n%s", buttons, want, page)
		}
	}
	marked := func(want bool) {
		t.Helper()
		for _, list := range []string{"/turns", "/messages", path} {
			if page := b.must(200, "GET", list, "").body; strings.Contains(page, `<span class="state bad">taken back</span>`) != want {
				t.Errorf("%s: the mark is shown %t", list, !want)
			}
		}
		if page := b.must(200, "GET", "/messages/1", "").body; strings.Contains(page, "without a topic, taken back") != want {
			t.Errorf("the page of the message: marked %t", !want)
		}
	}
	put := func(redo int, state, by, answer string, message any, undone any) {
		t.Helper()
		shell(t, data, `INSERT INTO undos (turn_id, redo, rest, folder, topic, message_id, by, state, answer, created_at, ended_at)
			VALUES (?, ?, 0, 'main', '', ?, ?, ?, ?, 10, ?)`, id, redo, message, by, state, answer, map[bool]any{true: nil, false: 11}[state == "open"])
		shell(t, data, `UPDATE turns SET undone_at = ? WHERE id = ?`, undone, id)
	}
	shows(`/undo"><button class="quiet">Undo</button>`, "Undo takes back what the agent did")
	marked(false)
	put(0, "refused", "telegram:42", "Nothing is changed: these files have changed since: a&lt;b&gt;.txt.", 1, nil)
	shows(`/undo"><button class="quiet">Undo</button>`, `value="true"><button class="quiet">Undo the rest</button>`, "was not taken back for Ada (telegram:42): files have changed since", "a&amp;lt;b")
	put(0, "refused", "web:operator", "Nothing is changed: no space left", nil, nil)
	shows(`/undo"><button class="quiet">Undo</button>`, "was not taken back for web:operator<", "no space left")
	put(0, "open", "web:operator", "", nil, nil)
	shows("is being taken back for web:operator")
	shell(t, data, `DELETE FROM undos WHERE state = 'open'`)
	put(0, "done", "telegram:42", "Taken back: turn 1 <i>.\n- one file", 1, 11)
	shows(`/redo"><button class="quiet">Redo</button>`, "was taken back by Ada (telegram:42)", "Redo does the turn again", "turn 1 &lt;i&gt;.\n- one file")
	marked(true)
	contains(t, b.must(200, "GET", "/messages/1", "").body, "turn 1 was taken back by Ada (telegram:42)")
	put(1, "refused", "web:operator", "Nothing is changed: these files have changed since: a.txt.", nil, 11)
	shows(`/redo"><button class="quiet">Redo</button>`, `value="true"><button class="quiet">Redo the rest</button>`)
	for _, tt := range []struct{ verb, rest, want string }{{"undo", "", "is being taken back"}, {"redo", "?rest=true", "is being done again"}} {
		contains(t, b.submit(path+"/"+tt.verb, url.Values{"rest": {strings.TrimPrefix(tt.rest, "?rest=")}}).body, fmt.Sprintf("Turn %d %s.", id, tt.want))
		if last := g.calls[len(g.calls)-1]; last != "web:operator POST /v1"+path+"/"+tt.verb+tt.rest {
			t.Errorf("gated was asked: %s", last)
		}
	}
	g.refuse(apierr.Conflict, "Turn 9 came after it: take that one back <first>.")
	contains(t, b.submit(path+"/undo", nil).body, "Turn 9 came after it: take that one back &lt;first&gt;.")
}

func TestTurn_WorkOfItsAgent_IsShown(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	id := storeTurns(t, data, "done")[0]
	path := fmt.Sprint("/turns/", id)
	if page := b.must(200, "GET", path, "").body; strings.Contains(page, "What the agent says") || strings.Contains(page, "Used") {
		t.Error(page)
	}
	shell(t, data, `UPDATE turns SET input_tokens = 5120, output_tokens = 310, cost_usd = 0.021, context_used = 6000, context_size = 200000 WHERE id = ?`, id)
	shell(t, data, `INSERT INTO turn_progress (turn_id, state, text, plan, tools, updated_at) VALUES (?, 'running', 'It is <b>red</b>',
		'[{"content":"Read <i>it</i>","status":"completed"}]', '[{"id":"1","title":"go test","kind":"execute","status":"failed"},{"id":"x2","title":"","status":"running"}]', 8)`, id)
	page := b.must(200, "GET", path, "").body
	contains(t, page, "tokens read: 5120, written: 310; US dollars: 0.0210; conversation: 3 % of its room", "worked", "It is &lt;b&gt;red&lt;/b&gt;",
		`<bdi>Read &lt;i&gt;it&lt;/i&gt;</bdi> <span class="detail">done</span>`, `<bdi>go test</bdi> <span class="detail">failed</span>`, `<bdi>x2</bdi>`)
}

// storeRunning stores a turn that an agent works on.
func storeRunning(t *testing.T, data string) int64 {
	t.Helper()
	turn := storeTurns(t, data, "queued")[0]
	run := shell(t, data, `INSERT INTO runs (folder, topic, chat_jid, runtime, started_at) VALUES ('main', '', 'telegram:-7', 'bwrap', 6)`)
	shell(t, data, `UPDATE turns SET state = 'running', run_id = ?, started_at = 6 WHERE id = ?`, run, turn)
	return turn
}

// storeAsk stores a question of a turn, with the message that shows it; ended is its state and what goes with that.
func storeAsk(t *testing.T, data string, turn int64, who, ended string) (id, message int64) {
	t.Helper()
	message = shell(t, data, `INSERT INTO messages (chat_jid, platform_id, direction, sender, content, timestamp, received_at, turn_id, source, out_state)
		VALUES ('telegram:-7', 'q' || ?, 'out', 'agent:main', 'may I?', 8, 8, ?, 'tool', 'sent')`, who+ended, turn)
	id = shell(t, data, `INSERT INTO asks (turn_id, ask_id, message_id, question, options, payload_hash, who, state, option, answered_by, created_at, expires_at, ended_at)
		VALUES (?, ?, ?, 'Run <b>Bash</b>?' || char(10) || 'rm -r <i>x</i>', '["Allow <once>","Deny"]', '0123456789abcdef', ?, `+ended, turn, who+ended, message, who)
	return id, message
}

func TestTurn_Questions_AreShownAndAnsweredByGated(t *testing.T) {
	data := dataFolder(t)
	g := newGated(t)
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	turn := storeRunning(t, data)
	path := fmt.Sprintf("/turns/%d", turn)
	if page := b.must(200, "GET", path, "").body; strings.Contains(page, "Questions") {
		t.Error("a turn without questions has a list of them")
	}
	const operators, ann = `{"senders":["telegram:1","telegram:2"],"label":"operators"}`, `{"senders":["telegram:42"],"label":"Ann <u>"}`
	open, message := storeAsk(t, data, turn, operators, `'open', NULL, NULL, 9, 4000000000000, NULL)`)
	foreign, _ := storeAsk(t, data, turn, ann, `'open', NULL, NULL, 9, 4000000000000, NULL)`)
	storeAsk(t, data, turn, operators, `'answered', 'Allow <once>', 'telegram:1', 9, 4000000000000, 10)`)
	storeAsk(t, data, turn, operators, `'expired', NULL, NULL, 9, 10, 10)`)
	page := b.must(200, "GET", path, "").body
	contains(t, page, "<bdi>Run &lt;b&gt;Bash&lt;/b&gt;?</bdi>", "rm -r &lt;i&gt;x&lt;/i&gt;</pre>", "asks for permission", "<code>0123456789ab…</code>",
		fmt.Sprintf(`href="/messages/%d"`, message), fmt.Sprintf(`action="/turns/%d/asks/%d/answer"`, turn, open), `value="1" class="button"><bdi>Allow &lt;once&gt;</bdi>`,
		"Open</span> for <bdi>operators</bdi>", "You answer for Ann &lt;u&gt; (telegram:42), as an operator",
		"<bdi>Allow &lt;once&gt;</bdi> <strong>chosen</strong>", "answered by telegram:1", "expired without an answer: that counts as no")
	if n := strings.Count(page, "You answer for"); n != 1 {
		t.Errorf("%d questions are for others, want 1", n)
	}
	if strings.Index(page, `id="questions"`) > strings.Index(page, `id="messages"`) {
		t.Error("an open question is below the messages")
	}
	for _, id := range []int64{open, foreign} {
		contains(t, b.submit(fmt.Sprintf("%s/asks/%d/answer", path, id), url.Values{"option": {"2"}}).body, fmt.Sprintf("Question %d is answered.", id))
		want := fmt.Sprintf(`web:operator POST /v1/asks/%d/answer {"option":2}`, id)
		if last := g.calls[len(g.calls)-1]; last != want {
			t.Errorf("gated was asked: %s, want %s", last, want)
		}
	}
	calls := len(g.calls)
	for address, want := range map[string]string{
		fmt.Sprintf("%s/asks/%d/answer", path, open): "Choose one of the buttons", path + "/asks/x/answer?option=1": "needs the number of a question",
	} {
		address, query, _ := strings.Cut(address, "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		contains(t, b.submit(address, values).body, want)
	}
	if len(g.calls) != calls {
		t.Errorf("gated was asked: %v", g.calls[calls:])
	}
	g.refuse(apierr.Conflict, `question 1 is not open any more: telegram:1 answered "Deny" <b>`)
	contains(t, b.submit(fmt.Sprintf("%s/asks/%d/answer", path, open), url.Values{"option": {"1"}}).body, "telegram:1 answered &#34;Deny&#34; &lt;b&gt;")
}

func TestWhy_PressAndQuestion_LeadToEachOther(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	turn := storeRunning(t, data)
	ask, message := storeAsk(t, data, turn, `{"senders":["telegram:1"],"label":"Ann"}`, `'open', NULL, NULL, 9, 4000000000000, NULL)`)
	shell(t, data, `UPDATE messages SET platform_id = '501' WHERE id = ?`, message)
	press := shell(t, data, `INSERT INTO messages (chat_jid, platform_id, direction, sender, verb, target_id, content, timestamp, received_at, disposition, reason, decided_at, decision_seq)
		VALUES ('telegram:-7', 'cb1', 'in', 'telegram:42', 'answer', '501', ?, 9, 9, 'dropped', 'choice_denied', 9, 999)`, fmt.Sprintf(`{"ask":%d,"option":2,"text":"Deny <x>"}`, ask))
	page := b.must(200, "GET", fmt.Sprintf("/messages/%d", press), "").body
	contains(t, page, fmt.Sprintf(`<a href="/turns/%d"><bdi>question %d of turn %d, with &#34;Deny&#34;</bdi></a>`, turn, ask, turn), "it is for Ann (telegram:1)", "Deny &lt;x&gt;",
		fmt.Sprintf(`<a href="/messages/%d">`, message))
	page = b.must(200, "GET", fmt.Sprintf("/messages/%d", message), "").body
	contains(t, page, fmt.Sprintf(`<a href="/turns/%d"><bdi>%d, open, for Ann (telegram:1)</bdi></a>`, turn, ask), fmt.Sprintf(`<a href="/messages/%d">Message %d</a>, a press of a button of question %d`, press, press, ask))
}
