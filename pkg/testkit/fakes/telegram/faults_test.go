package telegram_test

import (
	"fmt"
	"slices"
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
