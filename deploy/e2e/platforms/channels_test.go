package platforms

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/httpx"
)

// tab is a topic of the web chat.
type tab struct {
	*rig
	dashd *httpx.Client
	topic string
}

func (w *tab) say(text string) {
	w.t.Helper()
	w.ok(w.dashd.Do(w.ctx, http.MethodPost, "/chat/main/messages", map[string]string{"text": text, "topic": w.topic}, nil))
}

// answers is what the bot says in the tab.
func (w *tab) answers() (all []string) {
	w.t.Helper()
	var page struct {
		Messages []struct{ Direction, Content string }
	}
	w.ok(w.dashd.Do(w.ctx, http.MethodGet, "/chat/main/messages?limit=100&topic=%23"+strings.TrimPrefix(w.topic, "#"), nil, &page))
	for _, m := range page.Messages {
		if m.Direction == "out" {
			all = append(all, m.Content)
		}
	}
	return all
}

// TestFourChannels has one group answer in a tab of the web chat, a topic of Telegram's, a thread of
// Discord's and one of Slack's, while people write in all of them by turns.
func TestFourChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fronts := []*front{r.serve(newTelegram()), r.serve(newDiscord()), r.serve(newSlack())}
	r.run("routd", "gated", "dashd", "teled", "discd", "slakd")
	r.connect()
	web := &tab{r, r.client("dashd"), "#deploy"}
	threads := map[*front]chatsim.Conversation{}
	for _, f := range fronts {
		threads[f] = f.NewThread("deploys")
	}
	var ours, sessions []string
	first := func() (all []string) {
		for _, p := range threads {
			all = append(all, r.value(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = ?`, p.Thread))
		}
		all = append(all, r.value(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = '#deploy'`))
		slices.Sort(all)
		return all
	}
	for n := range 5 {
		ours = append(ours, fmt.Sprintf("web %d", n))
		web.say(ours[n])
		for _, f := range fronts {
			if n == 0 {
				f.call(threads[f], f.about.Platform+" 0")
			} else {
				f.say(threads[f], fmt.Sprintf("%s %d", f.about.Platform, n))
			}
		}
		if n == 0 {
			for _, f := range fronts {
				f.answer(f.about.Platform + " 0")
			}
			r.until("the tab is answered", func() bool { return len(web.answers()) > 0 })
			r.settle()
			sessions = first()
		}
	}
	for _, f := range fronts {
		var told []string
		for n := range 5 {
			told = append(told, fmt.Sprintf("%s %d", f.about.Platform, n))
			f.answered(told[n], threads[f], f.about.Thread)
		}
		f.onceEach(told)
		f.inOrder(threads[f], f.about.Platform+" ")
		for _, a := range f.Arrivals() {
			if !strings.Contains(a.Text, f.about.Platform+" ") {
				t.Errorf("%s is told %q", f.about.Platform, a.Text)
			}
		}
	}
	said := strings.Join(web.answers(), "\n")
	last := -1
	for _, text := range ours {
		if at := strings.Index(said, echo(text)); at <= last || strings.Count(said, echo(text)) != 1 {
			t.Errorf("%q is not answered once and in order:\n%s", text, said)
		} else {
			last = at
		}
	}
	if strings.Count(said, "topic #deploy · place #deploy · surface web ") != len(web.answers()) {
		t.Errorf("the tab is told\n%s", said)
	}
	if now := first(); !slices.Equal(now, sessions) || len(slices.Compact(now)) != 4 || now[0] == "" {
		t.Errorf("the sessions were %q, and are %q", sessions, now)
	}
}
