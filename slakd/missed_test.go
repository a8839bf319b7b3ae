package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	fake "arizuko/pkg/testkit/fakes/slack"
)

// stored waits until the rows of a place are these, and a moment longer for others.
func (r *harness) stored(p fake.Place, want ...string) {
	r.Helper()
	r.Until("the messages are stored", func() bool { return len(r.rows(p)) >= len(want) })
	if diff := cmp.Diff(want, r.rows(p)); diff != "" {
		r.Errorf("rows of %s (-want +got):\n%s\nthe log:\n%s", p.ChannelID, diff, r.Log)
	}
}

// read waits until the history has been read for the nth time.
func (r *harness) read(times int) {
	r.Helper()
	r.Until("the history is read", func() bool { return strings.Count(r.Log.String(), "history read up to now") >= times })
}

// missedMeanwhile waits until Slack has given up all events.
func (r *harness) missedMeanwhile() {
	r.Helper()
	before := r.Undelivered()
	r.confirmed()
	if r.Undelivered() == 0 || r.Undelivered() < before {
		r.Fatal("Slack has lost no event")
	}
}

func TestMissed_WhileDown_IsReadFromHistory(t *testing.T) {
	inBothWays(t, func(t *testing.T, r *harness) {
		me := r.Me().Mention()
		old := r.team.Say(r.alice, "before slakd ever ran")
		r.missedMeanwhile()
		stop := r.readUp(1)
		root := r.team.Say(r.alice, "root")
		r.team.Reply(r.bob, root.TS, "reply one")
		late := r.team.Say(r.bob, "a thread begins here later")
		r.dm.Say(r.alice, "hi")
		r.confirmed()
		stop()

		for i := range 3 {
			r.team.Say(r.bob, fmt.Sprint("missed ", i))
			r.team.Reply(r.alice, root.TS, me+fmt.Sprint(" in the thread ", i))
		}
		r.team.Reply(r.alice, late.TS, "late thread")
		r.team.Share(r.bob, fake.Attachment{Name: "cat.txt", Data: []byte("meow")}, "a file")
		fresh := r.team.Say(r.alice, "fresh root")
		r.team.Reply(r.bob, fresh.TS, "fresh reply")
		r.team.Broadcast(r.bob, root.TS, "for all")
		r.dm.Say(r.alice, "are you there?")
		group := r.GroupDM(r.alice, r.bob)
		group.Say(r.bob, "hi both")
		other := r.Channel("unknown so far", r.alice)
		other.Say(r.alice, me+" new here")
		r.missedMeanwhile()

		r.readUp(2)
		r.stored(r.team, "message Alice: root", "message Bob: reply one", "message Bob: a thread begins here later",
			"message Bob: missed 0", "mention Alice: in the thread 0", "message Bob: missed 1", "mention Alice: in the thread 1",
			"message Bob: missed 2", "mention Alice: in the thread 2", "message Alice: late thread", "message Bob: a file",
			"message Alice: fresh root", "message Bob: fresh reply", "message Bob: for all")
		r.stored(r.dm, "message Alice: hi", "message Alice: are you there?")
		r.stored(group, "message Bob: hi both")
		r.stored(other, "mention Alice: new here")
		rows := r.messages(r.team)
		if m := rows[4]; m.ThreadID != root.TS || !m.Addressed || m.PlatformID == "" {
			t.Errorf("a mention in a thread: %+v", m)
		}
		if m := rows[10]; len(m.Attachments) != 1 || m.PendingFiles != 1 {
			t.Errorf("a file: %+v", m)
		}
		if slices.ContainsFunc(rows, func(m *msg.Message) bool { return m.PlatformID == old.TS }) {
			t.Error("a message from before the first start is read")
		}
	})
}

// What is read later is what had come live: the same rows under the same ids.
func TestMissed_RowsAreThoseOfEvents(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	first := r.team.Say(r.alice, r.Me().Mention()+" hello "+r.bob.Mention())
	r.team.Reply(r.bob, first.TS, "and here")
	r.team.Share(r.bob, fake.Attachment{Name: "cat.txt", Data: []byte("meow")}, "look")
	r.team.Broadcast(r.bob, first.TS, "to all")
	r.team.MeMessage(r.alice, "waves")
	r.dm.Say(r.alice, "hi")
	r.confirmed()
	live := map[fake.Place][]*msg.Message{r.team: r.messages(r.team), r.dm: r.messages(r.dm)}
	stop()
	r.forgetRows()
	r.readUp(2)
	for p, want := range live {
		got := r.messages(p)
		for _, m := range append(want, got...) {
			m.ID, m.ReceivedAt = 0, 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rows (-live +read):\n%s", diff)
		}
	}
}

// forgetRows deletes all rows and bookmarks but the time of the first start.
func (r *harness) forgetRows() {
	r.Helper()
	r.Exec(`DELETE FROM messages; DELETE FROM cursors WHERE key LIKE 'read %'`)
}

// Messages are read from the bot's join on. A join whose event came is the same row when it is read again.
func TestMissed_Join_IsOneRow(t *testing.T) {
	for name, live := range map[string]bool{"while down": false, "live": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, fake.Options{})
			room := r.ChannelWithoutBot("new", r.alice)
			stop := r.readUp(1)
			if !live {
				stop()
			}
			room.Say(r.alice, "not for the bot")
			room.InviteBot(r.alice)
			room.Say(r.alice, "welcome")
			if live {
				r.confirmed()
				stop()
			}
			room.Say(r.alice, "missed")
			r.missedMeanwhile()
			r.readUp(2)
			r.stored(room, "join Alice: added the bot", "message Alice: welcome", "message Alice: missed")
		})
	}
}

// Where posts do not arrive for some time, those that Slack gives up are read from the history as soon as it posts
// one again that it has not given up.
func TestMissed_PostsRefused_IsReadFromHistory(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool // the first post of the message that is late
	r := newRefusingHarness(t, func(body []byte) bool {
		return bytes.Contains(body, []byte("given up")) || bytes.Contains(body, []byte(`"late"`)) && !refused.Swap(true)
	})
	r.readUp(1)
	r.team.Say(r.alice, "before")
	r.confirmed()
	r.team.Say(r.alice, "given up")
	r.missedMeanwhile()
	r.team.Say(r.alice, "late")
	r.confirmed()
	r.Until("all are stored", func() bool { return len(r.rows(r.team)) == 3 })
}

// newRefusingHarness has a proxy before slakd, which refuses some posts of events.
func newRefusingHarness(t *testing.T, refuses func(body []byte) bool) *harness {
	target := freeAddr(t)
	forward := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.Out.URL.Scheme, p.Out.URL.Host = "http", target
	}}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil || refuses(body) {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, req)
	}))
	t.Cleanup(proxy.Close)
	return newHarness(t, fake.Options{EventsURL: proxy.URL + "/slack/events"},
		"SLAKD_ADDR="+target, "SLACK_APP_TOKEN=", "SLACK_SIGNING_SECRET="+fake.DefaultSigningSecret)
}

// What Slack posts again comes in any order, here the last message first, and is stored in that of the messages.
func TestMissed_PostedAgainInAnyOrder_IsStoredInOrder(t *testing.T) {
	t.Parallel()
	const posts = 5
	var closed, began atomic.Bool
	var refused [posts]atomic.Bool
	r := newRefusingHarness(t, func(body []byte) bool {
		if closed.Load() {
			for i := range refused {
				refused[i].CompareAndSwap(false, bytes.Contains(body, fmt.Appendf(nil, "again %d", i)))
			}
			return true
		}
		last := bytes.Contains(body, fmt.Appendf(nil, "again %d", posts-1))
		return bytes.Contains(body, []byte("again ")) && !began.Load() && !began.CompareAndSwap(false, last)
	})
	r.readUp(1)
	r.team.Say(r.alice, "before")
	r.confirmed()
	closed.Store(true)
	want := []string{"message Alice: before"}
	for i := range posts {
		text := fmt.Sprint("again ", i)
		r.team.Say(r.alice, text)
		want = append(want, "message Alice: "+text)
	}
	for i := range refused { // one that gets through at once is not posted again
		r.Until(fmt.Sprint("the refusal of message ", i), refused[i].Load)
	}
	closed.Store(false)
	r.confirmed()
	r.stored(r.team, want...)
}

// Live messages are stored while the history is read, and the bookmark passes no gap that was not read.
func TestMissed_LiveMessagesMeanwhile_DoNotHideTheGap(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	r.team.Say(r.alice, "before")
	r.confirmed()
	stop()
	r.team.Say(r.alice, "missed")
	r.missedMeanwhile()

	r.InjectFault(fake.Fault{Method: "conversations.history", Delay: time.Hour, Times: -1})
	stop = r.Serve()
	r.connected()
	r.team.Say(r.alice, "live")
	r.confirmed()
	r.stored(r.team, "message Alice: before", "message Alice: live")
	stop() // in the middle of the gap
	r.ClearFaults()
	r.readUp(2)
	r.stored(r.team, "message Alice: before", "message Alice: live", "message Alice: missed")
}

// Wherever slakd ends while it stores missed posts and replies, it goes on there, and in order.
func TestMissed_StoppedWhileStoring_GoesOn(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	root := r.team.Say(r.alice, "root")
	r.confirmed()
	stop()
	want := []string{"message Alice: root"}
	for i := range 90 {
		if i%10 == 3 {
			r.team.Reply(r.alice, root.TS, fmt.Sprint(i))
		} else {
			r.team.Say(r.alice, fmt.Sprint(i))
		}
		want = append(want, fmt.Sprint("message Alice: ", i))
	}
	r.missedMeanwhile()
	for some := 1; some <= 3; some++ {
		stop = r.Serve()
		r.Until("some rows", func() bool { return len(r.rows(r.team)) > 25*some })
		stop()
	}
	r.Serve()
	r.stored(r.team, want...)
}

// A conversation that is refused, or fails, delays no other.
func TestMissed_RefusedConversation_IsLeftOut(t *testing.T) {
	t.Parallel()
	r := newHarness(t, fake.Options{Scopes: slices.DeleteFunc(fake.DefaultScopes(), func(s string) bool { return s == "groups:history" || s == "mpim:read" })})
	hidden := r.PrivateChannel("hidden", r.alice)
	stop := r.readUp(1)
	stop()
	hidden.Say(r.alice, "never seen")
	r.team.Say(r.alice, "missed")
	r.missedMeanwhile()
	r.InjectFault(fake.Fault{Method: "conversations.history", Status: 500, Body: "<html>oops</html>"}, fake.Fault{Method: "conversations.history", RetryAfter: 1},
		fake.Fault{Method: "users.conversations", Status: 502, Body: "<html>oops</html>"})
	r.readUp(2)
	r.stored(r.team, "message Alice: missed")
	if text := r.Log.String(); !strings.Contains(text, "groups:history") || !strings.Contains(text, "mpim:read") {
		t.Errorf("the log names no scope:\n%s", text)
	}
}

func TestMissed_OddMessages_AreSkipped(t *testing.T) {
	t.Parallel()
	r, stop := newReadUp(t, fake.Options{})
	stop()
	r.team.Say(r.alice, "one")
	r.team.InjectHistory(`{"type":"message","ts":"9999999999.000001","user":7,"text":{}}`, `"odd"`, `{"ts":"1"}`)
	r.team.Say(r.alice, "two")
	r.missedMeanwhile()
	r.readUp(2)
	r.stored(r.team, "message Alice: one", "message Alice: two")
	if got := r.metric("arizuko_updates_undecoded_total"); got == "0" {
		t.Error("none is counted")
	}
}

// Older messages than MAX_AGE are not read.
func TestMissed_OlderThanMaxAge_IsNotRead(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load()) - 2*time.Hour) }
	r, stop := newReadUp(t, fake.Options{Now: now}, "MAX_AGE=1h")
	stop()
	r.team.Say(r.alice, "old")
	r.missedMeanwhile()
	passed.Store(int64(2 * time.Hour))
	r.team.Say(r.alice, "new")
	r.missedMeanwhile()
	r.readUp(2)
	r.stored(r.team, "message Alice: new")
}
