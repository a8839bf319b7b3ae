package platforms

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/httpx"
	"arizuko/pkg/testkit/need"
)

// tab is a topic of the web chat.
type tab struct {
	*instance
	dashd *httpx.Client
	topic string
}

func (w *tab) say(text string) {
	w.T.Helper()
	w.OK(w.dashd.Do(w.T.Context(), http.MethodPost, "/chat/main/messages", map[string]string{"text": text, "topic": w.topic}, nil))
}

// answers are the bot's messages in the tab.
func (w *tab) answers() (all []string) {
	w.T.Helper()
	var page struct {
		Messages []struct{ Direction, Content string }
	}
	w.OK(w.dashd.Do(w.T.Context(), http.MethodGet, "/chat/main/messages?limit=100&topic="+url.QueryEscape(w.topic), nil, &page))
	for _, m := range page.Messages {
		if m.Direction == "out" {
			all = append(all, m.Content)
		}
	}
	return all
}

// One group answers in a tab of the web chat, a topic on Telegram, a thread on Discord and one on
// Slack, while users write in all of them in turn.
func TestOneGroup_FourChannelsAtOnce_AnswersEachInPlace(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	i := newInstance(t)
	fixtures := []*fixture{i.serve(newTelegram()), i.serve(newDiscord()), i.serve(newSlack())}
	i.start("routd", "gated", "dashd", "teled", "discd", "slakd")
	i.connect()
	web := &tab{i, i.Client("dashd"), "#deploy"}
	threads := map[*fixture]chatsim.Conversation{}
	for _, f := range fixtures {
		threads[f] = f.NewThread("deploys")
	}
	var texts, sessions []string
	currentSessions := func() (all []string) {
		for _, c := range threads {
			all = append(all, i.Value(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = ?`, c.Thread))
		}
		all = append(all, i.Value(`SELECT session_id FROM sessions WHERE group_folder = 'main' AND topic = '#deploy'`))
		slices.Sort(all)
		return all
	}
	for n := range 5 {
		texts = append(texts, fmt.Sprintf("web %d", n))
		web.say(texts[n])
		for _, f := range fixtures {
			if n == 0 {
				f.ask(threads[f], f.info.Platform+" 0")
			} else {
				f.say(threads[f], fmt.Sprintf("%s %d", f.info.Platform, n))
			}
		}
		if n == 0 {
			for _, f := range fixtures {
				f.waitAnswer(f.info.Platform + " 0")
			}
			i.Until("an answer in the tab", func() bool { return len(web.answers()) > 0 })
			i.WaitIdle()
			sessions = currentSessions()
		}
	}
	for _, f := range fixtures {
		var sent []string
		for n := range 5 {
			sent = append(sent, fmt.Sprintf("%s %d", f.info.Platform, n))
			f.wantAnswer(sent[n], threads[f], f.info.Thread)
		}
		f.wantOneAnswerEach(sent)
		f.wantOrder(threads[f], f.info.Platform+" ")
		for _, a := range f.Arrivals() {
			if !strings.Contains(a.Text, f.info.Platform+" ") {
				t.Errorf("%s gets %q of another channel", f.info.Platform, a.Text)
			}
		}
	}
	answers := strings.Join(web.answers(), "\n")
	last := -1
	for _, text := range texts {
		if at := strings.Index(answers, echo(text)); at <= last || strings.Count(answers, echo(text)) != 1 {
			t.Errorf("%q is not answered once and in order:\n%s", text, answers)
		} else {
			last = at
		}
	}
	if strings.Count(answers, "topic #deploy · place #deploy · surface web ") != len(web.answers()) {
		t.Errorf("answers in the tab:\n%s", answers)
	}
	if now := currentSessions(); !slices.Equal(now, sessions) || len(slices.Compact(now)) != 4 || now[0] == "" {
		t.Errorf("sessions %q, want the first ones %q", now, sessions)
	}
}
