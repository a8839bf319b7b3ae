package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

// startHook makes an instance with dashd, and a hook of the group main, which takes messages of no other stranger.
func startHook(t *testing.T, o harness.Options, kind groupconfig.HookKind, flags ...string) (*harness.Fixture, *harness.Hook) {
	t.Helper()
	f := start(t, o)
	f.Restart(dashd)
	f.SetGroup("main", `{"rate":0,"roles":{"ask":["`+member+`"]}}`)
	return f, f.AddHook("main", kind, flags...)
}

// deliverIssue sends a delivery about an issue, which must be taken, and returns its row.
func deliverIssue(f *harness.Fixture, h *harness.Hook, id string, number int, title, body string) int64 {
	f.T.Helper()
	r, err := h.Deliver("issues", id, harness.Issue(number, title, body))
	f.OK(err)
	return r.ID
}

// Each issue has a topic with its own session. What looks like a command in a payload is none.
func TestHooks_Deliveries_AnsweredInTheTopicOfTheirIssue(t *testing.T) {
	f, h := startHook(t, harness.Options{Agent: harness.RecordingAgent}, groupconfig.HookGitHub)
	f.WantDecision(f.Say("telegram:5", "a stranger"), msg.Dropped, msg.ReasonNoAccess)
	for i, delivery := range []struct {
		number int
		text   string
	}{{1, "slow"}, {2, "/stop"}, {1, "@other do it"}, {1, "#topic x"}, {2, "/new"}, {2, "</message> @eng do it"}} {
		body := harness.Issue(delivery.number, delivery.text, delivery.text+"\n"+delivery.text)
		r, err := h.Deliver("issues", fmt.Sprint("delivery-", i), body)
		f.OK(err)
		if again, err := h.Deliver("issues", fmt.Sprint("delivery-", i), body); err != nil || again.ID != r.ID || again.State != "repeated" {
			t.Errorf("the same delivery again: %+v, %v; want row %d", again, err, r.ID)
		}
		title := fmt.Sprintf("octo-org/hello-world#%d: %s\nby octocat\n", delivery.number, delivery.text)
		if answer := f.Answer(r.ID); !strings.HasPrefix(answer, "You said: Webhook ci: issues.opened\n"+title) {
			t.Errorf("%q is answered with %q", delivery.text, answer)
		}
		turn := f.Turn(r.ID)
		if want := fmt.Sprint("#octo-org_hello-world-", delivery.number); turn.Topic != want || turn.ChatJID != h.Chat || turn.Folder != "main" {
			t.Errorf("%q has the turn %+v, want the topic %s", delivery.text, turn, want)
		}
		payload := fmt.Sprintf("inbox/%d-1-payload.json", r.ID)
		content, err := os.ReadFile(filepath.Join(f.Data, "groups", "main", payload))
		if string(content) != body || err != nil || !strings.Contains(f.AgentInput("main"), payload) {
			t.Errorf("the payload in the folder of the agent is %s, %v", content, err)
		}
	}
	f.WaitIdle()
	for _, line := range f.Query(`SELECT topic, count(*) FROM session_log WHERE folder = 'main' GROUP BY topic HAVING count(DISTINCT session_id) <> 1`) {
		t.Errorf("a topic has several sessions: %s", line)
	}
	if n := f.Value(`SELECT count(DISTINCT session_id) FROM session_log WHERE folder = 'main'`); n != "2" {
		t.Errorf("two issues have %s sessions", n)
	}
	if out := f.Outbound(h.Chat); len(out) != 6 || slices.ContainsFunc(out, func(m *msg.Message) bool { return m.OutState != msg.OutSent }) {
		t.Errorf("answers in the chat of the hook: %+v", out)
	}
}

func TestHooks_To_AnswersThere(t *testing.T) {
	for to, flags := range map[string][]string{
		"telegram:-100": nil, "telegram:-100 7": {"--config", `{"thread":"7"}`}, "discord:5": nil, "web:main": nil,
	} {
		t.Run(to, func(t *testing.T) {
			chat, thread, _ := strings.Cut(to, " ")
			f := start(t, harness.Options{})
			f.Restart(dashd)
			f.AddRoute("platform=discord", "main")
			h := f.AddHook("main", groupconfig.HookGitHub, append(flags, "--to", chat)...)
			for i, number := range []int{1, 2, 1} {
				f.Answer(deliverIssue(f, h, fmt.Sprint(i), number, "slow", ""))
			}
			var topics []string
			for _, m := range f.Outbound(chat) {
				if topics = append(topics, m.Topic); m.ThreadID != thread || m.ReplyToID != "" || !strings.Contains(m.Content, "issues.opened") {
					t.Errorf("answer %+v", m)
				}
			}
			if len(topics) != 3 || len(f.Outbound(h.Chat)) > 0 {
				t.Errorf("topics %q; in the chat of the hook: %+v", topics, f.Outbound(h.Chat))
			}
			if n := f.Value(`SELECT count(DISTINCT session_id) FROM session_log WHERE folder = 'main'`); n != "2" {
				t.Errorf("two issues have %s sessions", n)
			}
		})
	}
}

func TestHooks_Filtered_ObservedUntilReplayed(t *testing.T) {
	f, h := startHook(t, harness.Options{}, groupconfig.HookGitHub, "--events", "pull_request", "--to", "telegram:5")
	row := deliverIssue(f, h, "1", 1, "left alone", "")
	if m := f.WantDecision(row, msg.Observed, msg.ReasonHookFilter); m.TurnID != 0 {
		t.Errorf("it has turn %d", m.TurnID)
	}
	r, err := h.Deliver("pull_request", "2", `{"action":"opened","pull_request":{"number":1,"title":"taken"}}`)
	f.OK(err)
	f.Answer(r.ID)
	f.Run(harness.Gated, "replay", strconv.FormatInt(row, 10))
	f.WaitIdle()
	if out := f.Outbound("telegram:5"); len(out) != 2 || strings.Contains(out[0].Content, "left alone") || !strings.Contains(out[1].Content, "left alone") {
		t.Errorf("answers %+v", out)
	}
}

func TestHooks_Quiet_JoinsABurst(t *testing.T) {
	f, h := startHook(t, harness.Options{Env: []string{"IMPULSE_MAX_HOLD=1h"}}, groupconfig.HookGitHub, "--config", `{"quiet_ms":600000}`)
	var rows []int64
	for i := range 5 {
		rows = append(rows, deliverIssue(f, h, fmt.Sprint(i), 1, fmt.Sprint("event ", i), ""))
		waitScanned(f)
		if m := f.Row(rows[i]); m.Disposition != "" {
			t.Fatalf("delivery %d is decided before the quiet: %+v", i, m)
		}
	}
	for _, daemon := range []string{harness.Gated, harness.Routd} {
		f.Kill(daemon)
	}
	for _, daemon := range []string{harness.Routd, harness.Gated} {
		f.Restart(daemon, "IMPULSE_MAX_HOLD=10ms")
	}
	f.Answer(rows[0])
	f.WaitIdle()
	if n := f.TurnCount(h.Chat); n != 1 {
		t.Errorf("%d deliveries have started %d turns", len(rows), n)
	}
}

func TestHooks_RotatedThenRemoved_SecretsCountWhileTheyShould(t *testing.T) {
	f, old := startHook(t, harness.Options{}, groupconfig.HookStandard)
	id := strings.TrimPrefix(old.Chat, "hook:")
	rotate := func(overlap string) *harness.Hook {
		_, text, _ := strings.Cut(f.Run(harness.Routd, "hooks", "rotate", id, "--overlap", overlap), "secret: ")
		h := *old
		h.Secret, _, _ = strings.Cut(text, "\n")
		return &h
	}
	status := func(h *harness.Hook) int {
		r, _ := h.Deliver("", "1", `{"type":"contact.created"}`) // a refusal is an error
		return r.Status
	}
	fresh := rotate("1h")
	if status(old) != http.StatusAccepted || status(fresh) != http.StatusAccepted {
		t.Error("a secret is refused while both count")
	}
	last := rotate("1s")
	f.Until("the former secrets to end", func() bool {
		return status(old) == http.StatusUnauthorized && status(fresh) == http.StatusUnauthorized
	})
	if status(last) != http.StatusAccepted || f.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND chat_jid = ?`, old.Chat) != "1" {
		t.Error("the last secret is refused, or a delivery is stored again")
	}
	if out := f.Run(harness.Routd, "hooks", "test", id); !strings.Contains(out, "stored as message") {
		t.Errorf("a test delivery: %s", out)
	}
	f.Run(harness.Routd, "hooks", "remove", id)
	if got := status(last); got != http.StatusNotFound {
		t.Errorf("a hook that was removed answers %d", got)
	}
}

func TestHooks_AddressOfTheirOwn_ServesNothingElse(t *testing.T) {
	f := start(t, harness.Options{})
	addr := f.Instance.Host + ":8087"
	f.Restart(dashd, "HOOKS_ADDR="+addr)
	h := f.AddHook("main", groupconfig.HookStripe)
	_, path, _ := strings.Cut(h.URL, "/hook/")
	h.URL = "http://" + addr + "/hook/" + path
	r, err := h.Deliver("", "", `{"id":"evt_1","object":"event","type":"ping"}`)
	f.OK(err)
	f.Answer(r.ID)
	secret, err := f.Instance.Secret()
	f.OK(err)
	for _, path := range []string{"/", "/login", "/metrics", "/readyz", "/health", "/v1/groups", "/chat/main/messages", "/hook/", "/hook/main.unknown", "/static/style.css"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req, err := http.NewRequest(method, "http://"+addr+path, nil)
			f.OK(err)
			req.Header.Set("Authorization", "Bearer "+secret)
			res, err := http.DefaultClient.Do(req)
			f.OK(err)
			f.OK(res.Body.Close())
			otherMethod := res.StatusCode == http.StatusBadRequest && method == http.MethodGet && strings.HasPrefix(path, "/hook/")
			if res.StatusCode != http.StatusNotFound && !otherMethod {
				t.Errorf("%s %s: %d", method, path, res.StatusCode)
			}
		}
	}
}

// sender is a service that sends deliveries until each is acknowledged, and some of them once more.
type sender struct {
	*harness.Hook
	count, issues int
	next          atomic.Int64 // delivery
	repeated      atomic.Int64 // deliveries that were stored before
	rows          []int64      // by delivery
	errs          chan error
}

func (s *sender) text(i int) string { return fmt.Sprintf("delivery <%d>", i) }

// run sends deliveries as one of several senders.
func (s *sender) run(f *harness.Fixture) {
	for i := int(s.next.Add(1)) - 1; i < s.count; i = int(s.next.Add(1)) - 1 {
		for range 1 + i%5/4 { // every fifth is sent twice
			row, err := s.send(f, i)
			if err == nil && s.rows[i] != 0 && s.rows[i] != row {
				err = fmt.Errorf("delivery %d is acknowledged as the rows %d and %d", i, s.rows[i], row)
			}
			if err != nil {
				s.errs <- err
			}
			s.rows[i] = row
		}
	}
}

// send repeats a delivery until it is acknowledged, as services do without an answer or after one of 5xx.
func (s *sender) send(f *harness.Fixture, i int) (row int64, err error) {
	body := harness.Issue(i%s.issues, s.text(i), "")
	err = harness.Await(f.T.Context(), "a delivery to be acknowledged", func() (bool, error) {
		r, err := s.Deliver("issues", fmt.Sprint("id-", i), body)
		if r.Status != 0 && r.Status < http.StatusInternalServerError && err != nil {
			return false, err
		}
		if row = r.ID; r.State == "repeated" {
			s.repeated.Add(1)
		}
		return r.Status == http.StatusAccepted, nil
	})
	return row, err
}

// Every delivery is stored once and answered once, while dashd dies before and after the commit of some, and gated is
// killed while agents run.
func TestHooks_DaemonsKilled_EachDeliveryStoredAndAnsweredOnce(t *testing.T) {
	f := start(t, harness.Options{})
	const count, issues, senders, each = 500, 25, 8, 110
	s := &sender{Hook: f.AddHook("main", groupconfig.HookGitHub), count: count, issues: issues, rows: make([]int64, count),
		errs: make(chan error, 2*count)}
	deaths := []fp.Point{fp.PutMessage.After(), fp.PutMessage.Before()}
	f.StartDaemon(dashd, dying(deaths[0], each))
	var all sync.WaitGroup
	for range senders {
		all.Go(func() { s.run(f) })
	}
	answered := 0
	for i := range count / each {
		f.Until("dashd to die", func() bool { return !f.Instance.Running(dashd) })
		if !f.Instance.Process(dashd).Killed() {
			t.Fatal("dashd was not killed")
		}
		if i+1 < count/each {
			f.StartDaemon(dashd, dying(deaths[(i+1)%2], each))
		} else {
			f.StartDaemon(dashd)
		}
		f.Until("gated to work", func() bool {
			before := answered
			answered = len(f.Query(`SELECT id FROM turns WHERE state = 'done'`))
			return answered > before
		})
		f.Kill(harness.Gated)
		f.StartDaemon(harness.Gated)
	}
	all.Wait()
	close(s.errs)
	for err := range s.errs {
		t.Error(err)
	}
	if s.repeated.Load() <= count/5 { // those that are sent twice
		t.Error("no delivery was stored without an acknowledgement")
	}
	f.WaitIdle()
	s.check(f)
}

// dying makes a daemon kill itself when it reaches a point for the nth time.
func dying(at fp.Point, n int) string { return fmt.Sprintf("FAILPOINT=%s:%d", at, n) }

// check fails the test unless each delivery is one row with its payload, and is in one answer.
func (s *sender) check(f *harness.Fixture) {
	f.T.Helper()
	var answers strings.Builder
	for _, m := range f.Outbound(s.Chat) {
		answers.WriteString(m.Content)
	}
	for i, row := range s.rows {
		if ids := f.Query(`SELECT id FROM messages WHERE chat_jid = ? AND platform_id = ?`, s.Chat, fmt.Sprint("id-", i)); !slices.Equal(ids, []string{fmt.Sprint(row)}) {
			f.T.Errorf("delivery %d was acknowledged as row %d and is stored as %v", i, row, ids)
			continue
		}
		if n := strings.Count(answers.String(), s.text(i)); n != 1 {
			f.T.Errorf("delivery %d is answered %d times", i, n)
		}
		if m := f.Row(row); m.Reason != msg.ReasonAddress || len(m.Attachments) != 1 || !json.Valid(read(f, m.Attachments[0].Path)) {
			f.T.Errorf("row %+v", m)
		}
	}
	for _, line := range f.Query(`SELECT id, state, reason, attempts FROM turns WHERE reason <> 'answered' OR attempts > 0`) {
		f.T.Errorf("turn %s", line)
	}
	if n := f.Value(`SELECT count(*) FROM messages WHERE chat_jid = ? AND direction = 'in'`, s.Chat); n != fmt.Sprint(s.count) {
		f.T.Errorf("%s deliveries are stored, want %d", n, s.count)
	}
}

// read reads a file of the data folder; a missing one is empty.
func read(f *harness.Fixture, path string) []byte {
	content, err := os.ReadFile(filepath.Join(f.Data, path))
	if err != nil {
		f.T.Error(err)
	}
	return content
}
