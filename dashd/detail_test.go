package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/dashd/internal/pages"
)

func TestChat_Page_GathersItsRows(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	b.must(404, "GET", "/chats/telegram:-7", "")
	storeTurns(t, data, append(strings.Fields(strings.Repeat("done ", 11)), "failed")...)
	shell(t, data, `INSERT INTO routes (seq, match, target) VALUES (1, 'room=-8', 'other'), (2, 'room=-7 verb=mention', 'main'), (3, '', 'builtin:drop'), (4, 'room=-7', 'main')`)
	now := time.Now().UnixMilli()
	shell(t, data, `INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES ('telegram:-7', 'open', ?, 'main', 5), ('telegram:-7', 'over', 9, 'main', 5)`, now+600_000)
	shell(t, data, `INSERT INTO reminders (folder, chat_jid, topic, kind, body, cron, time_zone, next_slot, created_by, state, created_at, updated_at) VALUES ('main', 'telegram:-7', '', 'prompt', 'water <b>', '', 'UTC', ?, 'telegram:42', 'active', 5, 5)`, now+600_000)
	shell(t, data, `INSERT INTO polls (message_id, folder, chat_jid, question, options, state, created_at) VALUES (1, 'main', 'telegram:-7', 'Tea <i>?', '["yes","no"]', 'open', 6), (2, 'main', 'telegram:-8', 'elsewhere', '["a","b"]', 'open', 6)`)
	shell(t, data, `INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, thread_id, state, reason, created_at) VALUES ('ABCD-1234', 'telegram:-7', 'group', 'telegram:42', 'Ada', 'Ops', 'hi', '', 'pending', '', 5)`)
	page := b.must(200, "GET", "/chats/telegram:-7", "").body
	contains(t, page, "<h1><bdi>Ops &lt;b&gt;</bdi></h1>", "All its messages", `href="/turns?chat=telegram%3A-7">All its turns`, `href="/senders/telegram:42"`,
		`<span class="place">2</span>`, `<span class="place">3</span>`, "water &lt;b&gt;", "Tea &lt;i&gt;?", ">ABCD-1234</a>, pending", ">End now<", `action="/polls/1/close"`)
	for _, absent := range []string{"elsewhere", `<span class="place">1</span>`, `<span class="place">4</span>`, "thread over"} {
		if strings.Contains(page, absent) {
			t.Errorf("the page has %q", absent)
		}
	}
	if n := strings.Count(page, `<th scope="row"><a href="/turns/`); n != 10 {
		t.Errorf("%d turns", n)
	}
	storeChat(t, data, "web:main", "", 5)
	contains(t, b.must(200, "GET", "/chats/web:main", "").body, "Its address belongs to a group")
	contains(t, b.must(200, "GET", "/messages/1", "").body, `href="/chats/telegram:-7"`, `href="/senders/telegram:42"`)
}

// The address of a chat is what its platform made it, and so is a sender's id.
func TestDetail_OddAddresses_AreFound(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data).operator()
	for i, odd := range []string{"%41", "a/b?c#d", "ü ;x", "..", "a%2Fb", "\xff"} {
		shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at) VALUES (?, 'in', ?, 'Ada', ?, 5, 5)`, "x:"+odd, "y:"+odd, fmt.Sprint("hello ", i))
		for _, path := range []string{pages.ChatPath("x:" + odd), pages.PersonPath("y:" + odd)} {
			if page := b.must(200, "GET", path, "").body; !strings.Contains(page, fmt.Sprint("hello ", i)) {
				t.Errorf("%s does not have the message", path)
			}
		}
	}
}

func TestPerson_Page_GathersItsRows(t *testing.T) {
	data := dataFolder(t)
	b := serve(t, data, "OPERATORS=telegram:7").operator()
	b.must(404, "GET", "/senders/telegram:42", "")
	ids := storeTurns(t, data, "done", "failed")
	now := time.Now().UnixMilli()
	shell(t, data, `UPDATE turns SET cost_usd = 0.25, created_at = ? WHERE id = ?`, now, ids[1])
	shell(t, data, `INSERT INTO messages (chat_jid, direction, sender, sender_name, content, timestamp, received_at) VALUES ('telegram:42', 'in', 'telegram:42', 'ada <b>', 'alone', 5, 6)`)
	shell(t, data, `INSERT INTO routes (match, target) VALUES ('room=-7', 'main')`)
	shell(t, data, `UPDATE registered_groups SET config = '{"rate":7,"roles":{"ask":["telegram:42"],"approve":["telegram:43"]}}' WHERE folder = 'main'`)
	page := b.must(200, "GET", "/senders/telegram:42", "").body
	contains(t, page, "<h1><bdi>ada &lt;b&gt;</bdi></h1>", "<bdi>ada &lt;b&gt;</bdi>, <bdi>Ada</bdi>", `href="/chats/telegram:-7"`, "7 turns an hour", "$0.25 in 2 turns", "<dd>1</dd>",
		`href="/messages?chat=telegram%3a-7&amp;sender=telegram%3a42">2</a>`, `<bdi>main</bdi></a>: ask (write to the agent)</li>`, "alone", fmt.Sprintf(`href="/turns/%d"`, ids[0]))
	contains(t, b.must(200, "GET", "/senders/telegram:7", "").body, "yes: can do everything", "No message of this sender is stored")
	contains(t, b.must(200, "GET", "/senders/telegram:43", "").body, "approve (answer its permission requests)")
	contains(t, b.must(200, "GET", "/search?"+url.Values{"q": {"ada"}}.Encode(), "").body, `href="/senders/telegram:42"`)
}
