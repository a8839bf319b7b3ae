package browser_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestWebAPI_Contracts(t *testing.T) {
	t.Parallel()
	i := start(t)
	c := i.program()
	const messages = "/chat/main/messages"
	first := read[struct{ ID int64 }](t, c.must(202, "POST", messages, `{"text":"hello","client_id":"a"}`)).ID
	again := read[struct{ ID int64 }](t, c.must(202, "POST", messages, `{"text":"hello","client_id":"a"}`)).ID
	equal(t, "the row of a repeat", again, first)

	s := c.events("/chat/main/events?after=0")
	equal(t, "the first message", s.message().ID, first)
	reply := s.message()
	equal(t, "its answer", reply.Direction == "out" && strings.Contains(reply.Content, "You said: hello") && reply.TurnID != nil, true)
	i.Kill("dashd")
	i.Until("dashd to be ready again", func() bool { return len(i.Processes("dashd")) == 1 && c.answers() })
	second := c.post("main", "", "and again")
	resumed := c.events("/chat/main/events", fmt.Sprintf("Last-Event-ID: %d", reply.ID))
	equal(t, "the first message of the resumed stream", resumed.message().ID, second)
	i.WaitIdle()

	page := read[struct{ Messages []row }](t, c.must(200, "GET", messages+"?topic=&limit=2", ""))
	equal(t, "the newest", len(page.Messages) == 2 && page.Messages[0].ID == second, true)
	for _, key := range []string{"text", "group", "topic", "session", "engaged_until", "queue_place", "daemons"} {
		if _, ok := read[map[string]any](t, c.must(200, "GET", "/status?chat_jid=telegram:1", "", "Accept: application/json"))[key]; !ok {
			t.Errorf("status has no %s", key)
		}
	}
	for _, refused := range []struct {
		c    *caller
		path string
		body string
		kind string
		code int
	}{
		{i.anonymous(), messages, `{"text":"x"}`, "unauthorized", 401},
		{c, "/chat/unknown/messages", `{"text":"x"}`, "not_found", 404},
		{c, messages, `{"text":" "}`, "bad_request", 400},
		{c, messages, `{"text":"x","topic":"#d1"}`, "bad_request", 400},
	} {
		equal(t, refused.path+refused.body, refused.c.must(refused.code, "POST", refused.path, refused.body).kind(), refused.kind)
	}
	equal(t, "another site", c.must(403, "POST", messages, `{"text":"x"}`, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site").kind(), "forbidden")
}

// answers reports whether dashd is ready.
func (c *caller) answers() bool {
	res, err := c.http.Get(c.base + "/readyz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == 200
}
