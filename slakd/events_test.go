package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// posted makes events come by the Events API.
func posted(t *testing.T) *harness {
	addr := freeAddr(t)
	return newHarness(t, fake.Options{EventsURL: "http://" + addr + "/slack/events"},
		"SLAKD_ADDR="+addr, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+fake.DefaultSigningSecret)
}

// Both ways of receiving events give one row for each action.
func TestInbound_UserActions(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		r.readUp(1)
		r.DuplicateNext(1000)
		me := r.Me().Mention()
		first := r.team.Say(r.alice, "hello "+r.bob.Mention())
		r.team.Say(r.alice, me+" what &amp; why?")
		r.SetMentionFirst(true)
		r.team.Reply(r.bob, first.TS, me+" and here?")
		r.team.Edit(r.alice, first.TS, "hello all")
		r.team.Unfurl(first.TS)
		r.team.React(r.bob, first.TS, "tada")
		r.team.Unreact(r.bob, first.TS, "tada")
		r.team.Webhook("CI", "build failed") // messages of bots are not stored
		r.team.SetTopic(r.alice, "tea")
		gone := r.team.Say(r.bob, "oops")
		r.team.Delete(r.bob, gone.TS)
		carol := r.User("Carol", "carol")
		r.team.Invite(r.alice, carol)
		r.team.Leave(carol)
		r.confirmed()
		want := []string{
			"message Alice: hello @Bob", "mention Alice: what & why?", "mention Bob: and here?", "edit Alice: hello all",
			"reaction Bob: 🎉", "reaction Bob: -🎉", "message Bob: oops", "delete Bob:", "join Carol: was added by Alice", "leave Carol: left",
		}
		if diff := cmp.Diff(want, r.rows(r.team)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		rows := r.messages(r.team)
		if m := rows[2]; m.ThreadID != first.TS || m.Topic != first.TS || m.ReplyToID != first.TS || rows[3].ThreadID != "" {
			t.Errorf("the thread: %+v", m)
		}
		if chat, err := r.Store.Chat(t.Context(), "slack:"+r.team.ChannelID); err != nil || chat.Title != "#team" || chat.Kind != msg.ChatChannel {
			t.Errorf("the chat: %+v, %v", chat, err)
		}
	})
}

// While an agent works in a thread, Slack's button stops it like the command of that user there.
func TestInbound_StopButton_IsTheCommand(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		r.readUp(1)
		r.DuplicateNext(1000)
		first := r.team.Say(r.alice, "go")
		thread := r.team.Thread(first.TS)
		r.confirmed()
		end := gatedtest.Work(t, r.Store, "slack:"+r.team.ChannelID, first.TS, "", first.TS)
		r.Until("the button is shown", func() bool { return thread.Session() == "processing" })
		thread.StopAgent(r.alice)
		r.confirmed()
		rows := r.messages(r.team)
		if len(rows) != 2 {
			t.Fatalf("%d rows", len(rows))
		}
		if m := rows[1]; m.Content != "/stop" || m.Sender != "slack:"+r.alice.ID || m.ThreadID != first.TS || m.Topic != first.TS || !m.Addressed {
			t.Errorf("the row is %+v", m)
		}
		end()
		r.Until("the button is gone", func() bool { return thread.Session() == "active" })
	})
}

func TestInbound_PrivateChats(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	r.dm.Say(r.alice, "hi")
	group := r.GroupDM(r.alice, r.bob)
	group.Say(r.bob, "hi both")
	pane := r.OpenPane(r.alice, r.team)
	pane.Say(r.alice, "sum this up")
	pane.SwitchContext(r.alice, group)
	r.confirmed()
	if got := r.messages(r.dm); len(got) != 2 || !got[0].Addressed || got[0].ThreadID != "" ||
		got[1].ThreadID != pane.ThreadTS || got[1].Verb != msg.VerbMessage || !got[1].Addressed {
		t.Errorf("in private: %+v", got)
	}
	thread, err := rows.Thread(t.Context(), r.Store.Reader, "slack:"+r.dm.ChannelID, pane.ThreadTS)
	if err != nil || thread == nil || thread.Author != "slack:"+r.alice.ID || thread.Kind != "assistant_thread" {
		t.Errorf("the pane: %+v, %v", thread, err)
	}
	for p, want := range map[fake.Place]msg.Chat{
		r.dm:  {Kind: msg.ChatDM, Title: "Alice"},
		group: {Kind: msg.ChatGroup, Title: "mpdm-alice--bob-1"},
	} {
		if chat, err := r.Store.Chat(t.Context(), "slack:"+p.ChannelID); err != nil || chat.Kind != want.Kind || chat.Title != want.Title {
			t.Errorf("the chat: %+v, %v", chat, err)
		}
	}
}

// A command is acknowledged after it is stored.
func TestInbound_Commands(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		r.readUp(1)
		r.team.Command(r.alice, "/arizuko", "new hello")
		r.team.Command(r.bob, "/arizuko", "stop")
		r.confirmed()
		if diff := cmp.Diff([]string{"message Alice: /new hello", "message Bob: /stop"}, r.rows(r.team)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		if shown := r.team.Ephemeral(); len(shown) != 2 || shown[0].Text == "" {
			t.Errorf("shown: %+v", shown)
		}
	})
}

func TestInbound_BotAdded(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	room := r.ChannelWithoutBot("new", r.alice)
	room.InviteBot(r.alice)
	r.confirmed()
	if got := r.messages(room); len(got) != 1 || got[0].Verb != msg.VerbJoin || !got[0].Addressed || got[0].Sender != "slack:"+r.alice.ID {
		t.Errorf("rows: %+v", got)
	}
}

func TestInbound_WantedFiles_AreDownloaded(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	r.team.Share(r.alice, fake.Attachment{Name: "cat.txt", Data: []byte("meow")}, "look")
	page := "<!DOCTYPE html><html>a page</html>"
	r.team.Share(r.alice, fake.Attachment{Name: "page.html", Data: []byte(page)}, "")
	r.team.Share(r.alice, fake.Attachment{Name: "other.txt", Data: []byte("unwanted")}, "")
	r.confirmed()
	r.wantFiles(0, 1)
	for i, want := range []string{"meow", page} {
		var m *msg.Message
		r.Until("a file is there", func() bool { m = r.messages(r.team)[i]; return m.PendingFiles == 0 })
		if a := m.Attachments[0]; a.Error != "" || a.Path == "" {
			t.Fatalf("%+v", a)
		}
		got, err := os.ReadFile(filepath.Join(r.Data, m.Attachments[0].Path))
		if err != nil || string(got) != want {
			t.Errorf("%q, %v", got, err)
		}
	}
	if all, err := filepath.Glob(filepath.Join(r.Data, "media", "*", "*")); len(all) != 2 {
		t.Errorf("on disk: %q, %v", all, err)
	}
}

// wantFiles asks for the files of messages of the team.
func (r *harness) wantFiles(numbers ...int) {
	r.Helper()
	all := r.messages(r.team)
	r.write(func(tx *store.Tx) error {
		for _, i := range numbers {
			if err := gatedtest.WantFiles(tx, all[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestInbound_FilesScopeMissing_NamesTheScope(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "files:read" })})
	r.team.Share(r.alice, fake.Attachment{Name: "cat.txt", Data: []byte("meow")}, "look")
	r.confirmed()
	r.wantFiles(0)
	r.Until("the download has failed", func() bool { return r.messages(r.team)[0].PendingFiles == 0 })
	if a := r.messages(r.team)[0].Attachments[0]; !strings.Contains(a.Error, "files:read") || a.Path != "" {
		t.Errorf("%+v", a)
	}
}

func TestInbound_Renames_ChangeNames(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	r.team.Say(r.alice, "one "+r.bob.Mention())
	r.confirmed()
	r.RenameUser(r.bob, "Robert")
	r.team.Rename(r.alice, "crew")
	r.team.Say(r.alice, "two "+r.bob.Mention())
	r.confirmed()
	if diff := cmp.Diff([]string{"message Alice: one @Bob", "message Alice: two @Robert"}, r.rows(r.team)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if chat, err := r.Store.Chat(t.Context(), "slack:"+r.team.ChannelID); err != nil || chat.Title != "#crew" {
		t.Errorf("the chat: %+v, %v", chat, err)
	}
	asked := slices.DeleteFunc(r.Calls(), func(c fake.Call) bool { return !strings.HasSuffix(c.Method, ".info") })
	if len(asked) != 5 { // Alice once, Bob and the channel twice
		t.Errorf("asked %d times: %+v", len(asked), asked)
	}
}

func TestInbound_UndecodableEvents_AreSkippedAndCounted(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		r.readUp(1)
		r.Inject(`{"type": "message", "user": 7}`)
		r.Inject(`{"type": "something_new", "user": {}}`) // an unknown event is ignored
		r.Inject(`[]`)
		r.team.Say(r.alice, "after")
		r.confirmed()
		if diff := cmp.Diff([]string{"message Alice: after"}, r.rows(r.team)); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
		if got := r.metric("arizuko_updates_undecoded_total"); got != "2" {
			t.Errorf("%s are counted", got)
		}
	})
}

// metric is the value of a metric, as slakd exports it.
func (r *harness) metric(name string) string {
	r.Helper()
	for line := range strings.Lines(r.get("/metrics")) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (r *harness) addr() string {
	addr := ""
	for _, variable := range r.Env {
		if value, ok := strings.CutPrefix(variable, "SLAKD_ADDR="); ok {
			addr = value
		}
	}
	return addr
}

func (r *harness) get(path string) string {
	r.Helper()
	res, err := http.Get("http://" + r.addr() + path)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(body)
}

func TestReconnect_RefreshRequested_LogsNoError(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{RetryDelays: []time.Duration{0, 300 * time.Millisecond, 5 * time.Second}}) // a busy machine reconnects late
	r.team.Say(r.alice, "0")
	r.Disconnect("refresh_requested")
	r.team.Say(r.alice, "1")
	r.confirmed()
	if diff := cmp.Diff([]string{"message Alice: 0", "message Alice: 1"}, r.rows(r.team)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	r.connected()
	if strings.Contains(r.Log.String(), "disconnected") {
		t.Errorf("the log:\n%s", r.Log)
	}
}

func TestReconnect_AfterBreaks_LosesNoEvent(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{RetryDelays: []time.Duration{0, 300 * time.Millisecond, 5 * time.Second}})
	var want []string
	for i := range 4 {
		r.DropSockets()
		r.team.Say(r.alice, strconv.Itoa(i))
		want = append(want, "message Alice: "+strconv.Itoa(i))
		r.confirmed()
		r.stored(r.team, want...)
	}
	r.SetReachable(false)
	r.connection("degraded")
	r.SetReachable(true)
	r.connected()
	r.team.Say(r.alice, "back")
	r.stored(r.team, append(want, "message Alice: back")...)
}

func TestConnect_Refused_ReportsRemedy(t *testing.T) {
	for what, tt := range map[string]struct {
		prepare func(*harness)
		says    []string
	}{
		"bot token":        {func(r *harness) { r.Revoke(r.BotToken(), "token_revoked") }, []string{"SLACK_BOT_TOKEN", "OAuth & Permissions", "token_revoked"}},
		"app token":        {func(r *harness) { r.Revoke(r.AppToken(), "invalid_auth") }, []string{"SLACK_APP_TOKEN", "App-Level Tokens", "invalid_auth"}},
		"no Socket Mode":   {func(r *harness) { r.SetSocketMode(false) }, []string{"Socket Mode is off"}},
		"tokens exchanged": {func(r *harness) { r.Env = append(r.Env, "SLACK_BOT_TOKEN=xoxb-wrong") }, []string{"SLACK_BOT_TOKEN", "invalid_auth"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, fake.Options{})
			tt.prepare(r)
			r.Serve()
			detail := r.connection("bad_credentials")
			for _, word := range tt.says {
				if !strings.Contains(detail, word) {
					t.Errorf("%q does not say %q", detail, word)
				}
			}
			for _, secret := range []string{r.BotToken(), r.AppToken()} {
				if strings.Contains(r.Log.String(), secret) {
					t.Errorf("a token is in the log:\n%s", r.Log)
				}
			}
		})
	}
}

// Sockets do not depend on the bot's token.
func TestConnect_BotTokenRevoked_IsReported(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	r.Revoke(r.BotToken(), "token_revoked")
	if detail := r.connection("bad_credentials"); !strings.Contains(detail, "SLACK_BOT_TOKEN") {
		t.Errorf("detail is %q", detail)
	}
}

func TestInbound_WritesFail_AcknowledgesNothing(t *testing.T) {
	for way, make := range map[string]func(*testing.T) *harness{
		"socket": func(t *testing.T) *harness { return newHarness(t, fake.Options{AckTimeout: time.Minute}) }, "posted": posted,
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := make(t)
			r.Serve()
			r.connected()
			r.Exec(`CREATE TRIGGER no BEFORE INSERT ON messages BEGIN SELECT * FROM no; END`)
			r.team.Say(r.alice, "kept")
			r.Until("slakd has tried", func() bool { return strings.Contains(r.Log.String(), "storing event failed") })
			if acks := r.Acks(); len(acks) > 0 || r.Pending() != 1 {
				t.Errorf("acknowledged: %+v", acks)
			}
			r.Exec(`DROP TRIGGER no`)
			r.confirmed()
			if diff := cmp.Diff([]string{"message Alice: kept"}, r.rows(r.team)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPosts_WithoutValidSignature_AreRefused(t *testing.T) {
	t.Parallel()
	r := posted(t)
	r.Serve()
	r.connected()
	event := `{"type":"event_callback","event_id":"Ev1","event":{"type":"message","channel":"` + r.team.ChannelID +
		`","user":"U1","text":"forged","ts":"1764000000.000100"}}`
	now := time.Now()
	for _, tt := range []struct {
		what, secret, body string
		at                 time.Time
		status             int
	}{
		{"good", fake.DefaultSigningSecret, event, now, 200},
		{"greeting", fake.DefaultSigningSecret, `{"type":"url_verification","challenge":"c7"}`, now, 200},
		{"forged greeting", "guess", `{"type":"url_verification","challenge":"c7"}`, now, 401},
		{"forged", "guess", event, now, 401},
		{"unsigned", "", event, now, 401},
		{"old", fake.DefaultSigningSecret, event, now.Add(-6 * time.Minute), 401},
		{"of a time to come", fake.DefaultSigningSecret, event, now.Add(6 * time.Minute), 401},
		{"too large", fake.DefaultSigningSecret, `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, now, 400}, // by some bytes, so that all are written before the answer
		{"no JSON", fake.DefaultSigningSecret, `{`, now, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr()+"/slack/events", bytes.NewReader([]byte(tt.body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Slack-Retry-Num", "3")
		if tt.secret != "" {
			stamp := strconv.FormatInt(tt.at.Unix(), 10)
			mac := hmac.New(sha256.New, []byte(tt.secret))
			fmt.Fprintf(mac, "v0:%s:%s", stamp, tt.body)
			req.Header.Set("X-Slack-Request-Timestamp", stamp)
			req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.status || strings.Contains(string(body), "c7") != (tt.what == "greeting") {
			t.Errorf("%s: %d %s", tt.what, res.StatusCode, body)
		}
	}
	if rows := r.rows(r.team); len(rows) != 1 {
		t.Errorf("rows: %q", rows)
	}
}

func TestInbound_Bots_AreStoredAsConfigured(t *testing.T) {
	for bots, want := range map[string][]string{
		"none": {"mention Alice: by my token"}, "mentions": {"mention Other: you there?", "mention Alice: by my token"},
		"all": {"message Other: hello", "mention Other: you there?", "mention Alice: by my token"},
	} {
		t.Run(bots, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, fake.Options{}, "BOTS="+bots)
			other := r.OtherBot("Other", "other")
			r.team.Invite(r.alice, other)
			r.Env = append(r.Env, "SLACK_USER_APPS="+other.AppID)
			r.Serve()
			r.connected()
			r.team.Say(other, "hello")
			r.team.Say(other, r.Me().Mention()+" you there?")
			if _, err := r.team.Post(r.alice, fake.Draft{Text: r.Me().Mention() + " by my token", Via: other}); err != nil {
				t.Fatal(err)
			}
			r.confirmed()
			if counted := !strings.Contains(r.get("/metrics"), "\narizuko_bot_messages_dropped_total 0\n"); counted != (bots != "all") {
				t.Errorf("messages are counted as dropped: %v", counted)
			}
			rows := slices.DeleteFunc(r.rows(r.team), func(row string) bool { return strings.HasPrefix(row, "join") })
			if diff := cmp.Diff(want, rows, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInbound_ConnectFile_IsFoundByItsID(t *testing.T) {
	t.Parallel()
	r := newConnected(t, fake.Options{})
	r.team.Share(r.alice, fake.Attachment{Name: "cat.txt", Data: []byte("meow"), Connect: true}, "look")
	r.confirmed()
	r.wantFiles(0)
	r.Until("the download has ended", func() bool { return r.messages(r.team)[0].PendingFiles == 0 })
	a := r.messages(r.team)[0].Attachments[0]
	if got, err := os.ReadFile(filepath.Join(r.Data, a.Path)); a.Error != "" || err != nil || string(got) != "meow" {
		t.Errorf("%q, %v: %+v", got, err, a)
	}
}
