package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/routeapi"
	"arizuko/pkg/store"
)

// newEngagementFixture returns a fixture with groups and routes: telegram:-1 leads to acme/eng, telegram:-2 is
// observed by ops, slack chats of users lead to acme/eng/oncall.
func newEngagementFixture(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	for _, folder := range []string{"acme", "acme/eng", "acme/eng/oncall", "acme/hr", "ops"} {
		f.must(t, 201, "POST", "/v1/groups", fmt.Sprintf(`{"folder":%q}`, folder))
	}
	for _, route := range []string{
		`{"match":"chat_jid=telegram:-1 verb=mention","target":"acme/eng"}`,
		`{"match":"chat_jid=telegram:-2","target":"ops#observe"}`,
		`{"match":"chat_jid=slack:C1 sender=slack:U*","target":"acme/eng/oncall"}`,
		`{"match":"sender=telegram:42","target":"ops"}`,
	} {
		f.must(t, 201, "POST", "/v1/routes", route)
	}
	return f
}

// window is an answer of /v1/engagement.
type window struct {
	JID, Topic string
	Folder     *string
	Until      *int64 `json:"engaged_until"`
	LastReply  *int64 `json:"last_reply_id"`
	EndedAt    *int64 `json:"ended_at"`
}

func (f *fixture) engage(t *testing.T, body string) (w window) {
	t.Helper()
	if err := json.Unmarshal([]byte(f.must(t, 200, "POST", "/v1/engagement", body)), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// answers returns the answer on a row that a place receives now.
func (f *fixture) answers(t *testing.T, jid, thread string) routeapi.Answer {
	t.Helper()
	return f.resolve(t, routeapi.Item{ID: 1, ChatJID: jid, ThreadID: thread, ReceivedAt: time.Now().UnixMilli()})
}

func TestEngage_OpenAndEnd(t *testing.T) {
	f := newEngagementFixture(t)
	if a := f.answers(t, "telegram:-1", "33"); a.Action != routeapi.None || a.Engaged {
		t.Errorf("before: %+v", a)
	}
	w := f.engage(t, `{"jid":"telegram:-1","topic":"33","folder":"acme/eng"}`)
	if w.JID != "telegram:-1" || w.Topic != "33" || w.Folder == nil || *w.Folder != "acme/eng" || w.LastReply != nil || w.EndedAt != nil {
		t.Errorf("engaged: %+v", w)
	}
	if a := f.answers(t, "telegram:-1", "33"); a.Folder != "acme/eng" || !a.Engaged || a.Home != "acme/eng" {
		t.Errorf("while engaged: %+v", a)
	}
	if a := f.answers(t, "telegram:-1", ""); a.Engaged {
		t.Errorf("beside the thread: %+v", a)
	}
	w = f.engage(t, `{"jid":"telegram:-1","topic":"33","ttl_seconds":0}`)
	if w.Folder != nil || w.Until != nil || w.EndedAt == nil || time.Since(time.UnixMilli(*w.EndedAt)).Abs() > time.Minute {
		t.Errorf("ended: %+v", w)
	}
	if a := f.answers(t, "telegram:-1", "33"); a.Engaged {
		t.Errorf("after the end: %+v", a)
	}
	if w = f.engage(t, `{"jid":"telegram:-1","topic":"33","folder":"ops"}`); *w.Folder != "ops" || w.EndedAt == nil {
		t.Errorf("engaged again: %+v", w)
	}
	if a := f.answers(t, "telegram:-1", "33"); a.Folder != "ops" {
		t.Errorf("engaged again: %+v", a)
	}
}

func TestEngage_TTL_Bounded(t *testing.T) {
	f := newEngagementFixture(t)
	for ttl, want := range map[string]time.Duration{
		``:                                    20 * time.Minute,
		`,"ttl_seconds":null`:                 20 * time.Minute,
		`,"ttl_seconds":1`:                    time.Second,
		`,"ttl_seconds":0`:                    0,
		`,"ttl_seconds":-1`:                   0,
		`,"ttl_seconds":-10000000000`:         0, // in nanoseconds it overflows to above 0
		`,"ttl_seconds":-9223372036854775808`: 0,
		`,"ttl_seconds":9223372036854775807`:  30 * 24 * time.Hour,
	} {
		before := time.Now().Truncate(time.Millisecond)
		w := f.engage(t, `{"jid":"telegram:-1","topic":"","folder":"acme"`+ttl+`}`)
		after := time.Now()
		switch {
		case want == 0 && (w.Until != nil || w.Folder != nil || w.EndedAt == nil):
			t.Errorf("%s: %+v", ttl, w)
		case want == 0:
		case w.Until == nil || time.UnixMilli(*w.Until).Before(before.Add(want)) || time.UnixMilli(*w.Until).After(after.Add(want)):
			t.Errorf("%s: %+v", ttl, w)
		}
	}
}

func TestEngagement_InvalidRequest_BadRequest(t *testing.T) {
	f := newEngagementFixture(t)
	for body, reason := range map[string]string{
		`{"topic":"","folder":"acme"}`:                                     "jid and topic are required",
		`{"jid":"telegram:-1","folder":"acme"}`:                            "jid and topic are required",
		`{"jid":"telegram:-1","topic":null,"ttl_seconds":0}`:               "jid and topic are required",
		`{"jid":"telegram","topic":"","folder":"acme"}`:                    "platform:room",
		`{"jid":"telegram:","topic":"","folder":"acme"}`:                   "platform:room",
		`{"jid":":-1","topic":"","ttl_seconds":0}`:                         "platform:room",
		`{"jid":"telegram:-1","topic":"","folder":"missing"}`:              `folder "missing" is not registered`,
		`{"jid":"telegram:-1","topic":""}`:                                 `folder "" is not registered`,
		`{"jid":"telegram:-1","topic":"","folder":"a","ttl_seconds":"1"}`:  "ttl_seconds",
		`{"jid":"telegram:-1","topic":"","folder":"a","ttl_seconds":1e30}`: "ttl_seconds",
		`{"jid":"telegram:-1","topic":"","folder":"acme","until":1}`:       "until",
		`{"jid":"telegram:-1","topic":7,"folder":"acme"}`:                  "topic",
		`[]`: "array",
		``:   "empty",
	} {
		if got := f.must(t, 400, "POST", "/v1/engagement", body); !strings.Contains(strings.ReplaceAll(got, `\`, ""), reason) {
			t.Errorf("%s: %s, want %s", body, got, reason)
		}
	}
	for _, query := range []string{"", "?topic=", "?jid=telegram", "?jid=" + strings.Repeat("x", 1000)} {
		f.must(t, 400, "GET", "/v1/engagement"+query, "")
	}
	if got := f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1", ""); got != `{"engagement":[]}` {
		t.Errorf("something was stored: %s", got)
	}
}

func TestGetEngagement_PlaceOrChat(t *testing.T) {
	f := newEngagementFixture(t)
	nothing := `{"jid":"telegram:-1","topic":"#deploy","folder":null,"engaged_until":null,"last_reply_id":null,"ended_at":null}`
	path := "/v1/engagement?jid=telegram:-1&topic=" + url.QueryEscape("#deploy")
	equal(t, nothing, f.must(t, 200, "GET", path, ""))
	deploy := f.must(t, 200, "POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"#deploy","folder":"acme","ttl_seconds":60}`)
	room := f.must(t, 200, "POST", "/v1/engagement", `{"jid":"telegram:-1","topic":"","ttl_seconds":0}`)
	f.engage(t, `{"jid":"telegram:-2","topic":"","folder":"acme"}`)
	equal(t, deploy, f.must(t, 200, "GET", path, ""))
	equal(t, room, f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1&topic=", ""))
	equal(t, `{"engagement":[`+room+`,`+deploy+`]}`, f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1", ""))
}

// Deliveries are read before a request is answered.
func TestGetEngagement_NewDeliveries_Count(t *testing.T) {
	f := newEngagementFixture(t)
	now := time.Now().UnixMilli()
	mention := &msg.Message{ChatJID: "telegram:-1", Direction: msg.In, Verb: msg.VerbMention, ReceivedAt: now}
	answer := &msg.Message{ChatJID: "telegram:-1", Direction: msg.Out, Source: msg.SourceAgent, OutState: msg.OutQueued}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "acme/eng", ChatJID: "telegram:-1", ClaimsEngagement: true}
	err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		_, _, err := tx.PutMessage(mention)
		turn.TriggerMessageID = mention.ID
		_, putTurn := gatedtest.PutTurn(tx, turn, 0)
		answer.TurnID = turn.ID
		_, _, put := tx.PutMessage(answer)
		return errors.Join(err, put, putTurn, tx.ClaimOutbound(answer.ID, 1, now), tx.PutDelivery(store.Delivery{MessageID: answer.ID, State: msg.OutSent}, now+5))
	})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"jid":"telegram:-1","topic":"","folder":"acme/eng","engaged_until":%d,"last_reply_id":%d,"ended_at":null}`,
		now+5+20*60_000, answer.ID)
	equal(t, want, f.must(t, 200, "GET", "/v1/engagement?jid=telegram:-1&topic=", ""))
	if a := f.answers(t, "telegram:-1", ""); a.Folder != "acme/eng" || !a.Engaged {
		t.Errorf("%+v", a)
	}
}

func TestEngage_Caller_Authority(t *testing.T) {
	type call struct{ jid, folder, caller string }
	for name, tc := range map[string]struct {
		call
		held string // by which group before, "" for none
		may  bool
	}{
		"an operator":                                    {call{"telegram:-9", "ops", ""}, "", true},
		"a route leads to it":                            {call{"telegram:-1", "acme/eng", "acme/eng"}, "", true},
		"a route has it observe":                         {call{"telegram:-2", "ops", "ops"}, "", true},
		"a route leads below it":                         {call{"telegram:-1", "acme", "acme"}, "", true},
		"a route asks for senders there":                 {call{"slack:C1", "acme/eng", "acme"}, "", true},
		"a route asks for a sender in any chat":          {call{"telegram:-9", "ops", "ops"}, "", false},
		"it engages a group below it":                    {call{"telegram:-1", "acme/hr", "acme"}, "", true},
		"a route leads above it":                         {call{"telegram:-1", "acme/eng/oncall", "acme/eng/oncall"}, "", false},
		"a route leads beside it":                        {call{"telegram:-1", "acme/hr", "acme/hr"}, "", false},
		"a route leads to one whose name begins like it": {call{"telegram:-1", "acme/eng", "acme/e"}, "", false},
		"no route":            {call{"telegram:-9", "ops", "ops"}, "", false},
		"it holds the window": {call{"telegram:-9", "ops", "ops"}, "ops", true},
		"another one does":    {call{"telegram:-9", "ops", "ops"}, "acme", false},
		"one below it does":   {call{"telegram:-9", "acme", "acme"}, "acme/eng", false},
		"another one does, but a route leads to it": {call{"telegram:-2", "ops", "ops"}, "acme", true},
		"it engages one above it":                   {call{"telegram:-1", "acme", "acme/eng"}, "", false},
		"it engages one beside it":                  {call{"telegram:-2", "acme", "ops"}, "", false},
		"its own web chat":                          {call{"web:ops", "ops", "ops"}, "", true},
		"another's web chat":                        {call{"web:acme", "ops", "ops"}, "", false},
		"a caller that is not a group":              {call{"telegram:-2", "ops", "missing"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newEngagementFixture(t)
			for _, ttl := range []int{600, 0} {
				if tc.held != "" {
					f.engage(t, fmt.Sprintf(`{"jid":%q,"topic":"","folder":%q}`, tc.jid, tc.held))
				}
				before := f.must(t, 200, "GET", "/v1/engagement?jid="+tc.jid, "")
				body := fmt.Sprintf(`{"jid":%q,"topic":"","folder":%q,"caller_folder":%q,"ttl_seconds":%d}`, tc.jid, tc.folder, tc.caller, ttl)
				status, answer := f.call("POST", "/v1/engagement", body)
				switch {
				case tc.may != (status == 200):
					t.Errorf("ttl %d: %d %s", ttl, status, answer)
				case !tc.may && status != 403:
					t.Errorf("ttl %d: %d %s", ttl, status, answer)
				case !tc.may:
					if diff := cmp.Diff(before, f.must(t, 200, "GET", "/v1/engagement?jid="+tc.jid, "")); diff != "" {
						t.Errorf("refused, and done:\n%s", diff)
					}
				}
			}
		})
	}
}

// A group may end the window that it holds without naming a folder.
func TestEngage_HolderWithoutFolder_EndsWindow(t *testing.T) {
	f := newEngagementFixture(t)
	end := `{"jid":"telegram:-9","topic":"33","caller_folder":"ops","ttl_seconds":0}`
	f.must(t, 403, "POST", "/v1/engagement", end)
	f.engage(t, `{"jid":"telegram:-9","topic":"","folder":"ops"}`)
	if got := f.must(t, 403, "POST", "/v1/engagement", end); !strings.Contains(got, string(apierr.Forbidden)) {
		t.Errorf("a window beside it: %s", got)
	}
	f.engage(t, `{"jid":"telegram:-9","topic":"33","folder":"ops"}`)
	if w := f.engage(t, end); w.Folder != nil || w.EndedAt == nil {
		t.Errorf("%+v", w)
	}
	f.must(t, 403, "POST", "/v1/engagement", end)
}
