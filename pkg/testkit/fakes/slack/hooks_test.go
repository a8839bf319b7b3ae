package slack_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
	"arizuko/pkg/testkit/fakes/slack"
)

// app is an app that receives the Events API.
type app struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int // of the next events; 200 after them
	body    string
	got     []post
}

type post struct {
	header http.Header
	body   string
}

func listen(t *testing.T) *app {
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Type, Challenge string }
		if json.Unmarshal(body, &asked) == nil && asked.Type == "url_verification" {
			_, _ = io.WriteString(w, asked.Challenge)
			return
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.got = append(a.got, post{r.Header, string(body)})
		if len(a.answers) > 0 {
			if a.answers[0] == http.StatusGone {
				w.Header().Set("X-Slack-No-Retry", "1")
			}
			w.WriteHeader(a.answers[0])
			a.answers = a.answers[1:]
			return
		}
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(a.Close)
	return a
}

// signature is Slack's signature of a post.
func signature(p post, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, "v0:"+p.header.Get("X-Slack-Request-Timestamp")+":"+p.body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

func TestEventsAPI_FailedPosts_AreRetried(t *testing.T) {
	r, a := start(t, slack.Options{RetryDelays: []time.Duration{0, 10 * time.Millisecond, time.Second}}), listen(t)
	alice := r.User("Alice", "alice")
	dm := r.DM(alice)
	w := r.dial()
	if err := r.SetEventsURL(r.ctx, a.URL); err != nil {
		t.Fatal(err)
	}
	if frame := w.read(); frame != nil {
		t.Errorf("the socket is open: %v", frame)
	}
	r.refuse("socket_mode_not_enabled", "apps.connections.open")
	a.answers = []int{500, 503}
	dm.Say(alice, "one")
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 3 {
		t.Fatalf("%d posts, %v", len(a.got), err)
	}
	for i, p := range a.got {
		num, reason := p.header.Get("X-Slack-Retry-Num"), p.header.Get("X-Slack-Retry-Reason")
		if want := []string{"", "1", "2"}[i]; num != want || (reason == "http_error") != (i > 0) {
			t.Errorf("attempt %d has %q %q", i, num, reason)
		}
		if p.header.Get("X-Slack-Signature") != signature(p, r.SigningSecret()) || p.header.Get("Content-Type") != "application/json" {
			t.Errorf("signed %v", p.header)
		}
		var body map[string]any
		if err := json.Unmarshal([]byte(p.body), &body); err != nil {
			t.Fatal(err)
		}
		fakeservertest.Subset(t, body, `{"type": "event_callback", "event": {"type": "message", "text": "one"}}`)
	}
	if acks := r.Acks(); len(acks) != 1 || acks[0].Attempt != 2 {
		t.Errorf("answers %+v", acks)
	}
	a.answers = []int{500, 500, 500, 500}
	dm.Say(alice, "two")
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 7 || r.Undelivered() != 1 {
		t.Errorf("%d posts, %d lost, %v", len(a.got), r.Undelivered(), err)
	}
	a.answers = []int{http.StatusGone}
	dm.Say(alice, "refused for good")
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 8 || r.Undelivered() != 2 {
		t.Errorf("%d posts, %d lost, %v", len(a.got), r.Undelivered(), err)
	}
	r.SetReachable(false)
	dm.Say(alice, "three")
	r.SetReachable(true)
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 9 {
		t.Errorf("%d posts, %v", len(a.got), err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	dm.Say(alice, "four")
	if _, err := r.Start("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitConfirmed(r.ctx); err != nil || len(a.got) != 10 {
		t.Errorf("%d posts, %v", len(a.got), err)
	}
}

func TestForge_WrongSecretAndTime_ArePosted(t *testing.T) {
	r, a := start(t, slack.Options{}), listen(t)
	if err := r.SetEventsURL(r.ctx, a.URL); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1_700_000_000, 0)
	if status, _, err := r.Forge(r.ctx, `{"type":"event_callback"}`, "not the secret", long); status != 200 || err != nil {
		t.Errorf("%d, %v", status, err)
	}
	p := a.got[0]
	if p.header.Get("X-Slack-Request-Timestamp") != "1700000000" || p.header.Get("X-Slack-Signature") != signature(p, "not the secret") {
		t.Errorf("signed %v", p.header)
	}
}

func TestSetEventsURL_Challenge(t *testing.T) {
	r := start(t, slack.Options{})
	for name, handler := range map[string]http.HandlerFunc{
		"says something else": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") },
		"refuses":             func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
	} {
		site := httptest.NewServer(handler)
		if err := r.SetEventsURL(r.ctx, site.URL); err == nil {
			t.Errorf("one that %s passes", name)
		}
		site.Close()
		if err := r.SetEventsURL(r.ctx, site.URL); err == nil {
			t.Error("an unreachable URL passes")
		}
	}
}

func TestCommand_ResponseURL_LimitsUse(t *testing.T) {
	r := start(t, slack.Options{AckTimeout: time.Minute})
	alice := r.User("Alice", "alice")
	team := r.Channel("team", alice)
	w := r.dial()
	given := team.Command(alice, "/arizuko", "new text")
	frame := w.read()
	fakeservertest.Subset(t, frame, `{"type": "slash_commands", "accepts_response_payload": true, "retry_attempt": null, "payload": {
		"command": "/arizuko", "text": "new text", "channel_name": "team", "user_id": "`+alice.ID+`", "channel_id": "`+team.ChannelID+`",
		"trigger_id": "`+given.TriggerID+`", "response_url": "`+given.ResponseURL+`"}}`)
	w.ack(frame["envelope_id"], map[string]string{"text": "on it"})
	if err := r.WaitConfirmed(r.ctx); err != nil {
		t.Fatal(err)
	}
	if acks := r.Acks(); acks[0].Kind != "slash_commands" || acks[0].EventID != given.TriggerID || string(acks[0].Payload) != `{"text":"on it"}` {
		t.Errorf("answered %+v", acks)
	}
	post := func(body string) int {
		return r.request(http.MethodPost, given.ResponseURL, "", "application/json", strings.NewReader(body)).Status
	}
	for i, want := range []int{200, 200, 500, 200, 200, 200, 404} {
		body := []string{`{"text":"only you"}`, `{"text":"all","response_type":"in_channel"}`, `{}`}[min(i%3, 2)]
		if i > 2 {
			body = `{"text":"again"}`
		}
		if got := post(body); got != want {
			t.Errorf("answer %d: %d, want %d", i, got, want)
		}
	}
	w.event(`{"type": "message", "text": "all", "bot_id": "` + r.Me().BotID + `"}`)
	var shown []string
	for _, m := range team.Ephemeral() {
		shown = append(shown, m.Text)
	}
	if got := strings.Join(shown, ", "); got != "on it, only you, again, again, again" {
		t.Errorf("shown %s", got)
	}
	if got := r.request(http.MethodPost, r.base+"/commands/unknown", "", "application/json", strings.NewReader(`{}`)).Status; got != 404 {
		t.Errorf("an unknown URL: %d", got)
	}
	m := r.must("chat.postMessage", "channel", team.ChannelID, "text", "press", "blocks",
		`[{"type":"actions","elements":[{"type":"button","action_id":"yes","value":"1","text":{"type":"plain_text","text":"Yes"}}]}]`).str("ts")
	w.events(1)
	team.PressButton(alice, m, "yes", "1")
	frame = w.read()
	fakeservertest.Subset(t, frame, `{"type": "interactive", "payload": {"type": "block_actions", "actions": [{"action_id": "yes", "value": "1"}], "message": {"text": "press"}}}`)
	w.ack(frame["envelope_id"], nil)
	if err := r.WaitConfirmed(r.ctx); err != nil {
		t.Fatal(err)
	}
	r.DropSockets()
	team.Command(alice, "/arizuko", "")
	if r.Pending() != 0 || r.Undelivered() != 1 {
		t.Errorf("%d pending, %d undelivered, without an app", r.Pending(), r.Undelivered())
	}
}

func TestCommand_EventsURL_PostedAsForm(t *testing.T) {
	r, a := start(t, slack.Options{}), listen(t)
	alice := r.User("Alice", "alice")
	if err := r.SetEventsURL(r.ctx, a.URL); err != nil {
		t.Fatal(err)
	}
	a.body = "plainly"
	r.DM(alice).Command(alice, "/arizuko", "a b&c")
	if err := r.WaitConfirmed(r.ctx); err != nil {
		t.Fatal(err)
	}
	p := a.got[0]
	if !strings.Contains(p.body, "text=a+b%26c") || !strings.Contains(p.body, "channel_name=directmessage") || p.header.Get("X-Slack-Signature") != signature(p, r.SigningSecret()) {
		t.Errorf("posted %+v", p)
	}
	if shown := r.DM(alice).Ephemeral(); len(shown) != 1 || shown[0].Text != "plainly" {
		t.Errorf("shown %+v", shown)
	}
}
