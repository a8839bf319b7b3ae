package tour_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/wake"
)

// worker is an agent with the answers of the web chat.
const worker = `#!/bin/sh
while read -r line; do
  case "$line" in
    *brakes*) text='Three cargo bikes wait for brakes:\n\n| bike | since | parts |\n|---|---|---|\n| Bullitt, Mrs Okafor | Tuesday | arrived |\n| Urban Arrow, bakery | today | ordered |\n| Omnium, post | today | in stock |\n\nI would begin with the **Bullitt**: its parts are here and it is promised for tomorrow.' ;;
    *) text='Done. The workshop has the list, and a reminder tomorrow at 8.' ;;
  esac
  printf '%s\n{"status":"ok","result":"%s"}\n%s\n' ---ARIZUKO_OUTPUT_START--- "$text" ---ARIZUKO_OUTPUT_END---
done
`

// The chats of the company, a bicycle workshop.
const (
	workshop = "telegram:-1002214480113"
	maja     = "telegram:50114"
	orders   = "slack:C04ORDERS"
	nordvik  = "telegram:-1003377219045"
)

// company fills an instance with some days of a small company.
type company struct {
	*harness.LauncherFixture
	now      int64 // unix ms
	decision int   // the last decision's number
}

func (c *company) ago(d time.Duration) int64 { return c.now - d.Milliseconds() }

// message is a message of a user, and its outcome.
type message struct {
	ago                time.Duration
	chat, sender, name string
	verb, text         string
	folder             string // that took it
	answer             string // "" for none
	problem            string // why the answer was not delivered
	failed             string // why the turn failed
	dropped            string // the reason that it was dropped for
}

func (c *company) query(query string, args ...any) string {
	c.T.Helper()
	found := c.Query(query, args...)
	if len(found) != 1 {
		c.T.Fatalf("%s: %q", query, found)
	}
	return found[0]
}

// say stores a message with its turn and answer.
func (c *company) say(m message) (id string) {
	c.T.Helper()
	at := c.ago(m.ago)
	c.decision++
	disposition, reason, folder := "routed", "route", any(m.folder)
	switch {
	case m.dropped == "awaiting_approval":
		disposition, reason, folder = "onboarding", m.dropped, nil
	case m.dropped != "":
		disposition, reason, folder = "dropped", m.dropped, nil
	case m.answer == "" && m.failed == "":
		disposition, reason = "observed", "route_observe"
	}
	c.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, sender, sender_name, verb, content, timestamp, received_at, source, disposition, reason, routed_to, decided_at, decision_seq)
		VALUES (?, ?, 'in', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, m.chat, fmt.Sprint(4000+c.decision), m.sender, m.name, m.verb, m.text, at, at+210, adapterOf(m.chat), disposition, reason, folder, at+216, 100_000+c.decision)
	id = c.query(`SELECT max(id) FROM messages`)
	if disposition == "routed" {
		c.turn(m, id, at)
	}
	return id
}

func adapterOf(chat string) string {
	if chat[0] == 's' {
		return "slakd"
	}
	return "teled"
}

func (c *company) turn(m message, row string, at int64) {
	c.T.Helper()
	state, result, problem := "done", "ok", ""
	if m.failed != "" {
		state, result, problem = "failed", "error", m.failed
	}
	c.Exec(`INSERT INTO runs (folder, topic, chat_jid, runtime, pid, started_at, closed_at, ended_at) VALUES (?, '', ?, 'bwrap', 4410, ?, ?, ?)`, m.folder, m.chat, at+240, at+9400, at+9410)
	run := c.query(`SELECT max(id) FROM runs`)
	c.Exec(`INSERT INTO session_log (run_id, started_at, ended_at, folder, topic, session_id, result, error, message_count) VALUES (?, ?, ?, ?, '', '3f2a9c01-7d1e', ?, ?, 1)`, run, at+240, at+9400, m.folder, result, problem)
	c.Exec(`INSERT INTO turns (run_id, kind, folder, chat_jid, topic, reply_to, trigger_message_id, claims_engagement, surface, ceiling, state, reason, attempts, created_at, started_at, ended_at, error)
		VALUES (?, 'conversation', ?, ?, '', ?, ?, 1, ?, 4000, ?, ?, ?, ?, ?, ?, ?)`, run, m.folder, m.chat, fmt.Sprint(4000+c.decision), row, surfaceOf(m.chat), state,
		map[bool]string{true: "agent_error"}[m.failed != ""], map[bool]int{true: 3}[m.failed != ""], at+230, at+260, at+9300, problem)
	turn := c.query(`SELECT max(id) FROM turns`)
	c.Exec(`UPDATE messages SET turn_id = ? WHERE id = ?`, turn, row)
	if m.answer == "" {
		return
	}
	out, class := "sent", any(nil)
	if m.problem != "" {
		out, class = "failed", "permanent"
	}
	c.Exec(`INSERT INTO messages (chat_jid, direction, sender, sender_name, content, reply_to_id, timestamp, received_at, source, turn_id, out_state) VALUES (?, 'out', ?, 'Ada', ?, ?, ?, ?, 'agent', ?, ?)`,
		m.chat, "agent:"+m.folder, m.answer, fmt.Sprint(4000+c.decision), at+9300, at+9300, turn, out)
	c.Exec(`INSERT INTO deliveries (message_id, part, state, attempts, platform_id, error_class, error, updated_at) SELECT max(id), 0, ?, 1, ?, ?, ?, ? FROM messages`,
		out, map[bool]any{true: fmt.Sprint(8000 + c.decision)}[m.problem == ""], class, m.problem, at+9520)
}

func surfaceOf(chat string) string {
	switch {
	case chat[0] == 's':
		return "slack-channel"
	case chat == maja:
		return "telegram-dm"
	}
	return "telegram-group"
}

// fill stores the days before today.
func (c *company) fill() {
	c.T.Helper()
	c.groups()
	for chat, title := range map[string]string{workshop: "Workshop", maja: "Maja Lindgren", orders: "orders", nordvik: "Nordvik Cycles and Lindgren"} {
		kind := map[bool]string{true: "dm", false: "group"}[chat == maja]
		c.Exec(`INSERT INTO chats (jid, platform, kind, title, last_seen_at) VALUES (?, ?, ?, ?, ?)`, chat, chat[:len(chat)-len(chat[indexColon(chat):])], kind, title, c.ago(9*time.Minute))
	}
	for _, m := range days() {
		c.say(m)
	}
	c.services()
}

func indexColon(jid string) int {
	for i, r := range jid {
		if r == ':' {
			return i
		}
	}
	return len(jid)
}

// groups are the company's groups, and the routes that lead to them.
func (c *company) groups() {
	c.T.Helper()
	c.Run("routd", "groups", "add", "bikes/workshop", "--name", "Workshop")
	c.Run("routd", "groups", "add", "bikes/orders", "--name", "Orders")
	config, err := json.Marshal(map[string]any{"access": []string{maja, "telegram:61907"}, "rate": 30, "assistant_name": "Ada"})
	if err != nil {
		c.T.Fatal(err)
	}
	c.Exec(`UPDATE registered_groups SET config = ? WHERE folder = 'bikes/workshop'`, string(config))
	for _, route := range [][2]string{
		{"chat_jid=" + workshop + " verb=mention", "bikes/workshop"}, {"chat_jid=" + workshop + " verb=reply", "bikes/workshop"},
		{"chat_jid=" + workshop, "bikes/workshop#observe"}, {"chat_jid=" + orders, "bikes/orders"}, {"sender=" + maja, "main"},
	} {
		c.Run("routd", "routes", "add", "--match", route[0], "--target", route[1])
	}
}

// days is the company's messages, the oldest first.
func days() []message {
	const hour = time.Hour
	mention := func(ago time.Duration, name, sender, text, answer string) message {
		return message{ago: ago, chat: workshop, sender: sender, name: name, verb: "mention", text: text, folder: "bikes/workshop", answer: answer}
	}
	plain := func(ago time.Duration, name, sender, text string) message {
		return message{ago: ago, chat: workshop, sender: sender, name: name, verb: "message", text: text, folder: "bikes/workshop"}
	}
	order := func(ago time.Duration, name, sender, text, answer string) message {
		return message{ago: ago, chat: orders, sender: sender, name: name, verb: "message", text: text, folder: "bikes/orders", answer: answer}
	}
	lost := order(4*hour, "Priya Nair", "slack:U07PRIYA", "Has the rim tape for the Bullitt been ordered?", "Yes, 12 rolls on Monday. DHL says they arrive tomorrow before noon.")
	lost.problem = "is_archived: the channel orders was archived"
	failed := order(150*time.Minute, "Tom Berg", "slack:U02TOM", "Compare the prices of both chain suppliers, please", "")
	failed.failed = "exit status 1: the price list is no CSV: line 214"
	dropped := message{ago: 3 * hour, chat: nordvik, sender: "telegram:77015", name: "Jonas Vik", verb: "message", text: "The forks leave on Thursday.", dropped: "no_route"}
	parked := message{ago: 25 * time.Minute, chat: nordvik, sender: "telegram:77015", name: "Jonas Vik", verb: "mention", text: "@ada_bikes_bot which forks do you still need for October?", dropped: "awaiting_approval"}
	return []message{
		mention(49*hour, "Lena Fors", "telegram:61907", "@ada_bikes_bot how many hours did we book on the bakery's bikes in June?", "31.5 hours: 22 on brakes and wheels, 9.5 on motors. The bakery paid for 28."),
		plain(28*hour, "Sami Aho", "telegram:61455", "The truing stand is free again."),
		order(27*hour, "Priya Nair", "slack:U07PRIYA", "Order 20 brake pads like last time", "Ordered 20 pairs of Shimano B05S at 7.90 each. They should be here on Wednesday."),
		lost, dropped, failed,
		{ago: 95 * time.Minute, chat: maja, sender: maja, name: "Maja Lindgren", verb: "message", text: "What did we promise for this week?", folder: "main", answer: "Four bikes: Mrs Okafor on Thursday, the post on Friday, and two rental bikes on Saturday."},
		plain(40*time.Minute, "Sami Aho", "telegram:61455", "Who has the 5 mm hex key?"),
		parked,
		mention(12*time.Minute, "Lena Fors", "telegram:61907", "@ada_bikes_bot what does a new rear wheel for the Bullitt cost?", "189 with labour: the rim is 64, spokes and nipples 27, and 98 for two hours of work."),
	}
}

// services stores requests, reminders, polls, changes, engagement and the daemons of the platforms.
func (c *company) services() {
	c.T.Helper()
	request := `INSERT INTO onboarding_requests (code, chat_jid, kind, sender, sender_name, title, sample, state, folder, decided_by, decided_at, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	c.Exec(request, "KQVD-4821", nordvik, "group", "telegram:77015", "Jonas Vik", "Nordvik Cycles and Lindgren", "@ada_bikes_bot which forks do you still need for October?", "pending", nil, nil, nil, c.ago(25*time.Minute))
	c.Exec(request, "BMRT-0077", orders, "group", "slack:U07PRIYA", "Priya Nair", "orders", "hello", "approved", "bikes/orders", maja, c.ago(70*time.Hour), c.ago(71*time.Hour))
	reminder := `INSERT INTO reminders (folder, chat_jid, kind, body, cron, time_zone, state, next_slot, created_by, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 'Europe/Stockholm', 'active', ?, ?, ?, ?)`
	c.Exec(reminder, "bikes/workshop", workshop, "prompt", "Which bikes are promised for today, and what is still missing?", "0 8 * * 1-5", c.now+14*time.Hour.Milliseconds(), "telegram:61907", c.ago(300*time.Hour), c.ago(300*time.Hour))
	c.Exec(reminder, "main", maja, "text", "Send the VAT return", "0 9 12 * *", c.now+9*24*time.Hour.Milliseconds(), maja, c.ago(900*time.Hour), c.ago(900*time.Hour))
	poll := `{"question":"When do we close for the summer?","options":["1 to 14 July","15 to 28 July","not at all"]}`
	c.Exec(`INSERT INTO messages (chat_jid, direction, kind, sender, content, timestamp, received_at, source, out_state, platform_id) VALUES (?, 'out', 'poll', 'agent:bikes/workshop', ?, ?, ?, 'tool', 'sent', '8300')`, workshop, poll, c.ago(5*time.Hour), c.ago(5*time.Hour))
	row := c.query(`SELECT max(id) FROM messages`)
	c.Exec(`INSERT INTO polls (message_id, folder, chat_jid, question, options, closes_at, state, created_at) VALUES (?, 'bikes/workshop', ?, 'When do we close for the summer?', '["1 to 14 July","15 to 28 July","not at all"]', ?, 'open', ?)`, row, workshop, c.now+20*time.Hour.Milliseconds(), c.ago(5*time.Hour))
	for voter, option := range map[string]string{"telegram:61907": "[2]", "telegram:61455": "[2]", maja: "[1]", "telegram:61002": "[2]"} {
		c.Exec(`INSERT INTO poll_votes (poll_id, voter, name, options, at) VALUES (1, ?, '', ?, ?)`, voter, option, c.ago(4*time.Hour))
	}
	c.Exec(`UPDATE audit SET at = ?, who = ?`, c.ago(70*time.Hour), maja)
	// routd stores the same place when it reads the deliveries first.
	c.Exec(`INSERT INTO chat_reply_state (jid, topic, engaged_until, engaged_folder, engaged_at) VALUES (?, '', ?, 'bikes/workshop', ?)
		ON CONFLICT (jid, topic) DO UPDATE SET engaged_until = excluded.engaged_until, engaged_folder = excluded.engaged_folder, engaged_at = excluded.engaged_at`, workshop, c.now+48*time.Minute.Milliseconds(), c.ago(12*time.Minute))
	c.heartbeat()
	for _, name := range adapters {
		l, err := wake.Listen(filepath.Join(c.Instance.Data, "run"), name)
		if err != nil {
			c.T.Fatal(err)
		}
		c.T.Cleanup(func() { _ = l.Close() })
	}
}

// adapters have no platform behind them.
var adapters = []string{"teled", "slakd"}

// heartbeat shows the adapters of the platforms as running.
func (c *company) heartbeat() {
	c.T.Helper()
	for _, name := range adapters {
		c.Exec(`INSERT INTO daemons (name, version, started_at, heartbeat_at, connection, last_event_at, last_probe_at) SELECT ?, version, started_at, ?, 'connected', ?, ? FROM daemons WHERE name = 'gated'
			ON CONFLICT (name) DO UPDATE SET heartbeat_at = excluded.heartbeat_at`, name, time.Now().UnixMilli(), c.ago(12*time.Minute), c.ago(time.Minute))
	}
}
