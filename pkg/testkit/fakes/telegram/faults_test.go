package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFault_Answers(t *testing.T) {
	tests := []struct {
		name     string
		fault    telegram.Fault
		status   int
		body     string
		accepted bool
	}{
		{"5xx before", telegram.Fault{Status: 502}, 502, `{"ok":false,"error_code":502,"description":"Bad Gateway"}` + "\n", false},
		{"5xx after", telegram.Fault{Status: 500, After: true, Description: "Internal Server Error: oops"}, 500,
			`{"ok":false,"error_code":500,"description":"Internal Server Error: oops"}` + "\n", true},
		{"429", telegram.Fault{RetryAfter: 7}, 429,
			`{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}` + "\n", false},
		{"dropped before", telegram.Fault{Drop: true}, 0, "", false},
		{"dropped after", telegram.Fault{Drop: true, After: true}, 0, "", true},
		{"raw body", telegram.Fault{Body: "<html>", After: true}, 200, "<html>", true},
		{"a proxy's page", telegram.Fault{Body: "<html>", Status: 503}, 503, "<html>", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t, telegram.Options{})
			chat := r.DM(r.User("Alice", "alice")).ChatID
			r.InjectFault(tt.fault)
			a := r.call("sendMessage", "chat_id", chat, "text", "one")
			if a.Status != tt.status || tt.status != 0 && a.body != tt.body {
				t.Errorf("got %d %s, want %d %s", a.Status, a.body, tt.status, tt.body)
			}
			if got := len(r.Sent()) == 1; got != tt.accepted {
				t.Errorf("carried out: %v, want %v", got, tt.accepted)
			}
			if c := r.Calls()[0]; c.Status != tt.status || c.Accepted != tt.accepted || c.Text != "one" {
				t.Errorf("recorded %+v", c)
			}
			r.must(nil, "sendMessage", "chat_id", chat, "text", "two")
		})
	}
}

func TestFault_MatchesMethods(t *testing.T) {
	r := start(t, telegram.Options{})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	send := func() int { return r.call("sendMessage", "chat_id", chat, "text", "x").Status }
	steps := []struct {
		faults []telegram.Fault
		want   []int // of getUpdates, getMe, and three messages
	}{
		{[]telegram.Fault{{Method: "sendMessage", Times: 2, Status: 500}}, []int{200, 200, 500, 500, 200}},
		{[]telegram.Fault{{Status: 500}}, []int{200, 500, 200, 200, 200}},
		{[]telegram.Fault{{Method: "getUpdates", Status: 500}}, []int{500, 200, 200, 200, 200}},
		{[]telegram.Fault{{Method: "*", Times: -1, Status: 500}}, []int{500, 500, 500, 500, 500}},
		{[]telegram.Fault{{Method: "sendMessage", Status: 500}, {Method: "sendMessage", RetryAfter: 1}}, []int{200, 200, 500, 429, 200}},
	}
	for _, step := range steps {
		r.InjectFault(step.faults...)
		got := []int{r.call("getUpdates").Status, r.call("getMe").Status, send(), send(), send()}
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("%+v: %v, want %v", step.faults, got, step.want)
		}
		r.ClearFaults()
	}
}

func TestFault_Delay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{})
		chat := s.DM(s.User("Alice", "alice")).ChatID
		for _, after := range []bool{false, true} {
			s.InjectFault(telegram.Fault{Delay: 9 * time.Second, After: after})
			begin := time.Now()
			if code, body := direct(s, "sendMessage", "chat_id", chat, "text", "x"); code != 200 {
				t.Errorf("%d %s", code, body)
			}
			sent := s.Sent()
			accepted := sent[len(sent)-1].At.Sub(begin)
			if took := time.Since(begin); took != 9*time.Second || (accepted == 0) != after {
				t.Errorf("after=%v: took %v, carried out after %v", after, took, accepted)
			}
		}
	})
}

// If the answer is delayed beyond the client's timeout, the message is sent; if the call is
// delayed, it is not.
func TestFault_DelayBeyondClientTimeout(t *testing.T) {
	for _, after := range []bool{false, true} {
		r := start(t, telegram.Options{})
		chat := r.DM(r.User("Alice", "alice")).ChatID
		r.InjectFault(telegram.Fault{Delay: time.Hour, After: after})
		if after { // the client waits until it is carried out
			r.client.Transport = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, address)
				if err == nil {
					go func() {
						_, _ = r.WaitSent(r.ctx, 1)
						_ = conn.Close()
					}()
				}
				return conn, err
			}}
		} else {
			r.client.Timeout = 50 * time.Millisecond
		}
		if a := r.call("sendMessage", "chat_id", chat, "text", "x"); a.Status != 0 {
			t.Errorf("got %d", a.Status)
		}
		if sent := len(r.Sent()); sent != map[bool]int{true: 1}[after] {
			t.Errorf("after=%v: %d carried out", after, sent)
		}
	}
}

func TestSetReachable_False_BreaksConnections(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	open := make(chan answer)
	go func() { open <- r.call("getUpdates", "timeout", 50) }()
	if err := r.WaitPolling(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.SetReachable(false)
	if a := <-open; a.Status != 0 {
		t.Errorf("the open poll got %d %s", a.Status, a.body)
	}
	r.DM(alice).Say(alice, "meanwhile")
	if a := r.call("sendMessage", "chat_id", alice.ID, "text", "x"); a.Status != 0 {
		t.Errorf("got %d %s", a.Status, a.body)
	}
	r.SetReachable(true)
	same(t, r.ids(), 0)
	if sent := r.Sent(); len(sent) != 0 {
		t.Errorf("carried out: %+v", sent)
	}
}

func TestServer_Restart(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	r.DM(alice).Say(alice, "x")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if a := r.call("getMe"); a.Status != 0 {
		t.Errorf("got %d after Close", a.Status)
	}
	base, err := r.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.base = base
	same(t, r.ids(), 0)
}

func TestRateLimits_Edits_CountLikeMessages(t *testing.T) {
	t.Parallel()
	r := start(t, telegram.Options{RateLimits: true})
	chat := r.DM(r.User("Alice", "alice")).ChatID
	r.call("sendMessage", "chat_id", chat, "text", "0")
	id := r.Sent()[0].MessageID
	for i := range 3 {
		if a := r.call("editMessageText", "chat_id", chat, "message_id", id, "text", i+1); !a.OK {
			t.Fatal(a.body)
		}
	}
	a := r.call("editMessageText", "chat_id", chat, "message_id", id, "text", "more")
	if a.Status != 429 || a.Parameters.RetryAfter == 0 {
		t.Errorf("%s", a.body)
	}
}

func TestRateLimits_PerChatAndOverall_Refuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := telegram.New(telegram.Options{RateLimits: true})
		alice := s.User("Alice", "alice")
		group := s.Supergroup("Team", alice)
		chats := []int64{}
		for i := range 40 {
			chats = append(chats, s.DM(s.User(fmt.Sprint("u", i), "")).ChatID)
		}
		send := func(chat int64) int {
			code, _ := direct(s, "sendMessage", "chat_id", chat, "text", "x")
			return code
		}
		expect := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d, want %d", what, got, want)
			}
		}
		for range 4 {
			expect("a few at once", send(chats[0]), 200)
		}
		expect("the fifth at once", send(chats[0]), 429)
		expect("typing", first(direct(s, "sendChatAction", "chat_id", chats[0], "action", "typing")), 200)
		<-time.After(time.Second)
		for range 9 {
			expect("up to thirteen in ten seconds", send(chats[0]), 200)
			<-time.After(time.Second / 2)
		}
		expect("the fourteenth", send(chats[0]), 429)

		<-time.After(time.Second)
		for _, chat := range chats[1:31] {
			expect("thirty in a second", send(chat), 200)
		}
		expect("the thirty-first", send(chats[31]), 429)

		for range 20 {
			<-time.After(time.Second)
			expect("twenty in a minute", send(group.ChatID), 200)
		}
		<-time.After(time.Second)
		code, body := direct(s, "sendMessage", "chat_id", group.ChatID, "text", "x")
		if want := `"parameters":{"retry_after":40}}` + "\n"; code != 429 || body[len(body)-len(want):] != want {
			t.Errorf("message 21: %d %s", code, body)
		}
		<-time.After(40 * time.Second)
		expect("after what it said", send(group.ChatID), 200)
	})
}

func first(code int, _ string) int { return code }

func TestRecord_Waits(t *testing.T) {
	r := start(t, telegram.Options{})
	alice := r.User("Alice", "alice")
	forum := r.Forum("Ops", alice)
	topic := forum.Topic(alice, "deploys")
	done := make(chan telegram.Call)
	go func() {
		c, err := r.Wait(r.ctx, telegram.Answers(topic))
		if err != nil {
			t.Error(err)
		}
		done <- c
	}()
	r.must(nil, "sendMessage", "chat_id", forum.ChatID, "text", "elsewhere")
	r.must(nil, "sendMessage", "chat_id", forum.ChatID, "message_thread_id", topic.ThreadID, "text", "here")
	if c := <-done; c.Text != "here" {
		t.Errorf("waited for %+v", c)
	}
	if sent, err := r.WaitSent(r.ctx, 2); err != nil || len(sent) != 2 {
		t.Errorf("%v, %d sent", err, len(sent))
	}
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	if _, err := r.WaitSent(ctx, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPlace_ImpossibleActionsPanic(t *testing.T) {
	s := telegram.New(telegram.Options{})
	alice, bob := s.User("Alice", "alice"), s.User("Bob", "bob")
	group := s.Supergroup("Team", alice)
	m := group.Say(alice, "x")
	impossible := map[string]func(){
		"user is not a member":     func() { group.Say(bob, "x") },
		"reply to unknown message": func() { group.Reply(alice, 99, "x") },
		"edit message of another":  func() { group.Edit(bob, m.ID, "x") },
		"react to unknown message": func() { group.React(alice, 99, "👍") },
		"topic outside a forum":    func() { group.Topic(alice, "x") },
		"unknown chat":             func() { s.Place(1, 0).Say(alice, "x") },
		"vote in unknown poll":     func() { s.AnswerPoll(alice, "1", 0) },
		"update is not JSON":       func() { s.Inject("x") },
		"migrate a supergroup":     func() { group.Migrate(alice) },
	}
	for name, act := range impossible {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			act()
		})
	}
	if _, err := group.Post(bob, telegram.Draft{Text: "x"}); err == nil {
		t.Error("Post of a user who is not a member")
	}
}

// Users, the bot and a poller concurrently, for the race detector.
func TestServer_ConcurrentUse_HasNoRaces(t *testing.T) {
	r := start(t, telegram.Options{PrivacyOff: true})
	alice := r.User("Alice", "alice")
	group := r.Supergroup("Team", alice)
	const each = 20
	var all sync.WaitGroup
	all.Go(func() {
		for range each {
			m := group.Say(alice, "x")
			group.Edit(alice, m.ID, "y")
			group.Messages()
		}
	})
	all.Go(func() {
		for range each {
			var m telegram.Message
			r.must(&m, "sendPoll", "chat_id", group.ChatID, "question", "q", "options", `["a","b"]`)
			r.AnswerPoll(alice, m.Poll.ID, 0)
		}
	})
	all.Go(func() {
		seen := 0
		for offset := int64(0); seen < 3*each; {
			for _, id := range r.ids("offset", offset, "timeout", 5) {
				offset = max(offset, firstID+id+1)
				seen++
			}
		}
	})
	all.Wait()
}

// A fake that is started again for the same database must not repeat ids that are stored there.
func TestOptions_FirstID_NoIDIsRepeated(t *testing.T) {
	ids := func(first int) (all []string) {
		r := start(t, telegram.Options{FirstID: first})
		alice := r.User("Alice", "alice")
		for _, p := range []telegram.Place{r.DM(alice), r.Group("Team", alice), r.Supergroup("Kitchen", alice), r.Forum("Forum", alice)} {
			m, err := p.Post(alice, telegram.Draft{Text: "@arizuko_bot look", Attachment: &telegram.Attachment{Kind: "document", Name: "a.txt", Data: []byte("a")}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprint("message ", p.ChatID, " ", m.ID), "file "+m.Document.FileID)
		}
		poll, err := r.DM(alice).Post(alice, telegram.Draft{Poll: &telegram.Poll{Question: "tea?", Options: []telegram.PollOption{{Text: "yes"}, {Text: "no"}}}})
		if err != nil {
			t.Fatal(err)
		}
		return append(all, "poll "+poll.Poll.ID, fmt.Sprint("update ", r.ids()))
	}
	for _, id := range ids(1000) {
		if slices.Contains(ids(0), id) {
			t.Errorf("%s is repeated", id)
		}
	}
}
