package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/apierr"
)

// retryForm returns the fields of the form that retries the turns of a cause.
func retryForm(t *testing.T, page string) url.Values {
	t.Helper()
	form := url.Values{}
	for _, name := range []string{"ids", "cause"} {
		_, value, ok := strings.Cut(page, `<input type="hidden" name="`+name+`" value="`)
		if !ok {
			t.Fatalf("no field %s: %s", name, page)
		}
		value, _, _ = strings.Cut(value, `"`)
		form.Set(name, value)
	}
	return form
}

func TestRetry_Causes_GroupTurnsThatFailedAlike(t *testing.T) {
	data := dataFolder(t)
	g := newFake(t, "gated")
	b := serve(t, data, "GATED_URL="+g.URL).operator()
	contains(t, b.must(200, "GET", "/turns/retry", "").body, "No turn has failed")
	ids := storeTurns(t, data, strings.Fields(strings.Repeat("failed ", 104)+"done cancelled")...)
	shell(t, data, `UPDATE turns SET error = 'exit status ' || id WHERE state = 'failed'`)
	shell(t, data, `UPDATE turns SET error = 'no <b> model', reason = 'agent_error' WHERE id = ?`, ids[3])
	page := b.must(200, "GET", "/turns/retry", "").body
	contains(t, page, `<span class="count">103</span>`, `<span class="count">1</span>`, "failed: <bdi>no &lt;b&gt; model</bdi>")
	_, key, _ := strings.Cut(page, `href="/turns/retry?cause=`)
	key, _, _ = strings.Cut(key, `"`)
	page = b.must(200, "GET", "/turns/retry?cause="+key, "").body
	contains(t, page, "103 turns failed like this", "These are the newest 100", "Retry 100 turns", "100 in", "Ops &lt;b&gt;")
	form := retryForm(t, page)
	contains(t, b.submit("/turns/retry", form).body, "In the queue again: 100.")
	first := fmt.Sprintf("web:operator POST /v1/turns/%d/retry ", ids[4])
	if asked := g.asked("POST"); len(asked) != 100 || !strings.HasPrefix(asked[0], strings.TrimSpace(first)) {
		t.Errorf("gated was asked %d times, first %s", len(asked), asked[0])
	}
	g.refuse(apierr.Conflict, "turn <u> is queued")
	contains(t, b.submit("/turns/retry", form).body, "In the queue again: 0. Left out: 100, such as: turn &lt;u&gt; is queued.")
	g.refuse(apierr.Unavailable, "busy")
	contains(t, b.submit("/turns/retry", form).body, "Then it failed; press the button to continue")
	for _, wrong := range []string{"", "x", "-1", strings.Repeat("1 ", 101)} {
		form.Set("ids", wrong)
		if body := b.submit("/turns/retry", form).body; !strings.Contains(body, "No turn was chosen") && !strings.Contains(body, "The form is incomplete") {
			t.Errorf("ids %q are taken", wrong)
		}
	}
}

func TestTurns_Lists_HaveRetryButtons(t *testing.T) {
	data := dataFolder(t)
	g := newFake(t, "gated")
	p := serve(t, data, "GATED_URL="+g.URL)
	b := p.operator()
	ids := storeTurns(t, data, "failed", "done")
	button := fmt.Sprintf(`aria-label="Retry turn %d"`, ids[0])
	if strings.Contains(b.must(200, "GET", "/", "").body, button) {
		t.Error("the overview has a turn that failed long ago")
	}
	shell(t, data, `UPDATE turns SET ended_at = ?`, time.Now().UnixMilli())
	for _, path := range []string{"/", "/turns", "/turns?state=failed", "/chats/telegram:-7", "/senders/telegram:42"} {
		page := b.must(200, "GET", path, "").body
		if n := strings.Count(page, `aria-label="Retry turn`); n != 1 || !strings.Contains(page, button) {
			t.Errorf("%s has %d buttons", path, n)
		}
	}
	for _, page := range []struct{ referer, want string }{
		{"http://" + p.Addr + "/turns?state=failed&done=x", "/turns?state=failed&done="},
		{"http://" + p.Addr + "/chats/telegram:-7", "/chats/telegram:-7?done="},
		{"http://elsewhere.example/turns", fmt.Sprintf("/turns/%d?done=", ids[0])},
		{"http://" + p.Addr + "//elsewhere.example", fmt.Sprintf("/turns/%d?done=", ids[0])},
		{"", fmt.Sprintf("/turns/%d?done=", ids[0])},
	} {
		a := b.send("POST", fmt.Sprintf("/turns/%d/retry", ids[0]), "", "Content-Type: application/x-www-form-urlencoded", "Origin: "+b.base, "Referer: "+page.referer)
		a.Body.Close()
		if to := a.Header.Get("Location"); !strings.HasPrefix(to, page.want) {
			t.Errorf("from %q it leads to %q, want %q", page.referer, to, page.want)
		}
	}
	if n := len(g.asked("POST")); n != 5 {
		t.Errorf("gated was asked %d times", n)
	}
	contains(t, b.must(200, "GET", "/turns?state=failed", "").body, `href="/turns/retry"`)
	if strings.Contains(b.must(200, "GET", "/turns?state=done", "").body, `href="/turns/retry"`) {
		t.Error("the list of answered turns offers retries")
	}
}
