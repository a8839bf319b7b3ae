package main

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/adaptertest"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// harness runs discd with a fake Discord and a database.
type harness struct {
	*adaptertest.Daemon[Config]
	discord *fake.Server
	alice   fake.User
	guild   fake.Guild
	general fake.Place
}

func newHarness(t testing.TB, o fake.Options, env ...string) *harness {
	t.Helper()
	r := &harness{discord: fake.New(o)}
	base, err := r.discord.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.discord.Close() })
	r.Daemon = adaptertest.NewDaemon(t, program(), append([]string{
		"DISCD_ADDR=127.0.0.1:0", "DISCORD_BOT_TOKEN=" + r.discord.Token(), "DISCORD_API_URL=" + base,
	}, env...)...)
	r.alice = r.discord.User("Alice", "alice")
	r.guild = r.discord.Guild("Team", r.alice)
	r.general = r.guild.Channel("general")
	return r
}

// connect is Serve, and waits for the connection.
func (r *harness) connect() (stop func()) {
	r.Helper()
	stop = r.Serve()
	r.Until("the connection", func() bool {
		state, _ := r.Connection()
		return state == "connected" && r.discord.Listening()
	})
	return stop
}

// stored lists the inbound rows in order: verb, content and, in brackets, the names of chat and thread.
func (r *harness) stored() (all []string) {
	r.Helper()
	return r.Lines(`SELECT m.verb || ': ' || m.content || ' [' || ifnull(c.title, c.jid) || ifnull(' / ' || nullif(t.title, ''), '') || ']'
		FROM messages m JOIN chats c ON c.jid = m.chat_jid
		LEFT JOIN platform_threads t ON t.chat_jid = m.chat_jid AND t.thread_id = m.thread_id
		WHERE m.direction = 'in' ORDER BY m.id`)
}

// expect waits for as many rows as wanted, and compares them.
func (r *harness) expect(want ...string) {
	r.Helper()
	r.Until("the rows", func() bool { return len(r.stored()) >= len(want) })
	if diff := cmp.Diff(want, r.stored()); diff != "" {
		r.Fatalf("stored (-want +got):\n%s", diff)
	}
}

// queue writes an outbound row, as gated does.
func (r *harness) queue(chatJID, threadID, content string) (id int64) {
	r.Helper()
	now := time.Now().UnixMilli()
	r.Exec(`INSERT INTO messages (chat_jid, thread_id, direction, sender, sender_name, content, timestamp, received_at, source, out_state)
		VALUES (?, ?, 'out', 'agent:main', 'main', ?, ?, ?, 'agent', 'queued')`, chatJID, threadID, content, now, now)
	return r.lastOut()
}

// lastOut is the newest outbound row.
func (r *harness) lastOut() int64 {
	r.Helper()
	id, err := strconv.ParseInt(r.Text(`SELECT max(id) FROM messages WHERE direction = 'out'`), 10, 64)
	if err != nil {
		r.Fatal(err)
	}
	return id
}
