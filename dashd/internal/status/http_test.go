package status

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/daemon"
)

func TestHTTP_JSON_Exact(t *testing.T) {
	r := newFixture(t)
	r.beat("gated", daemon.Connected, second)
	r.answered(web, "s-1", minute)
	r.turn(web, second)
	r.outbound(other, minute)
	for query, want := range map[string]string{
		"": `{"text":"Running turns: none\nQueue: 1 turn, the oldest for 1 s\n1 message has waited to be sent for 60 s.\nHealthy: gated",` +
			`"group":null,"topic":"","session":null,"engaged_until":null,"queue_place":null,"waiting":0,` +
			`"daemons":[{"name":"gated","connection":"connected","ok":true,"heartbeat_at":1699999999000}]}`,
		"?chat_jid=web:main&thread_id=": `{"text":"Group: main\nTopic: the default one\nSession: continues with the next message\n` +
			`Now: next in the queue for a free agent\nHealthy: gated","group":"main","topic":"","session":"s-1","engaged_until":null,"queue_place":1,"waiting":0,` +
			`"daemons":[{"name":"gated","connection":"connected","ok":true,"heartbeat_at":1699999999000}]}`,
	} {
		rec := r.get(query, "application/json")
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %v", query, rec.Code, rec.Header())
		}
		if diff := cmp.Diff(want, strings.TrimSpace(rec.Body.String())); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
}

func TestHTTP_NoDaemons_EmptyList(t *testing.T) {
	if body := newFixture(t).get("", "application/json").Body.String(); !strings.Contains(body, `"daemons":[]`) {
		t.Error(body)
	}
}

func TestHTTP_Accept(t *testing.T) {
	r := newFixture(t)
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/plain": false, "text/html,application/xhtml+xml,*/*;q=0.8": false,
		"application/json": true, "Application/JSON; charset=utf-8": true, "text/html, application/json;q=0.5": true, ";;": false,
	} {
		rec := r.get("?chat_jid=telegram:-1", accept)
		if got := json.Valid(rec.Body.Bytes()); got != want || rec.Code != 200 {
			t.Errorf("%q: %d %s", accept, rec.Code, rec.Body)
		}
		kind := map[bool]string{true: "application/json", false: "text/plain; charset=utf-8"}[want]
		if h := rec.Header(); h.Get("Content-Type") != kind || h.Get("Cache-Control") != "no-store" || h.Get("Vary") != "Accept" {
			t.Errorf("%q: %v", accept, h)
		}
	}
}

func TestHTTP_InvalidInput_BadRequest(t *testing.T) {
	r := newFixture(t)
	long := strings.Repeat("x", maxParameter)
	for query, words := range map[string]string{
		"?chat_jid=telegram":                              "platform:room",
		"?chat_jid=telegram:":                             "platform:room",
		"?chat_jid=:7":                                    "platform:room",
		"?chat_jid=telegram:" + long:                      "at most 512 bytes",
		"?chat_jid=telegram:7&thread_id=x" + long:         "at most 512 bytes",
		"?chat_jid=telegram:7&topic=x" + long:             "at most 512 bytes",
		"?chat_jid=telegram:%ff":                          "must be text",
		"?chat_jid=telegram:%zz":                          "query",
		"?chat_jid=" + url.QueryEscape("no\x1b[2J colon"): "platform:room",
	} {
		rec := r.get(query, "")
		var body struct {
			Error struct{ Kind, Message string }
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || rec.Code != 400 ||
			body.Error.Kind != "bad_request" || !strings.Contains(body.Error.Message, words) {
			t.Errorf("%.80s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

func TestHTTP_UnusualInput_Answered(t *testing.T) {
	r := newFixture(t)
	for _, query := range []string{
		"?chat_jid=irc:%23chan%0Aname&thread_id=%00", "?chat_jid=web:../../etc", "?chat_jid=group:main", "?thread_id=7", "?chat_jid=a:b:c&chat_jid=x",
		"?chat_jid=" + url.QueryEscape("telegram:' OR 1=1 --"),
	} {
		if rec := r.get(query, ""); rec.Code != 200 {
			t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
		}
	}
}

func TestHandler_DatabaseFails_HidesError(t *testing.T) {
	r := newFixture(t)
	r.sql(`DROP TABLE daemons`)
	for _, query := range []string{"", "?chat_jid=telegram:-1"} {
		if rec := r.get(query, "application/json"); rec.Code != 500 || strings.Contains(rec.Body.String(), "daemons") {
			t.Errorf("%q: %d %s", query, rec.Code, rec.Body)
		}
	}
	if !strings.Contains(r.log.String(), "no such table: daemons") {
		t.Errorf("log %s", r.log.String())
	}
}
