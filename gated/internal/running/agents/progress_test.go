package agents

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

func (r *harness) progress(t *msg.Turn) *store.Progress {
	r.t.Helper()
	return must[*store.Progress](r)(r.st.Progress(r.t.Context(), t.ID))
}

func (r *harness) usage(t *msg.Turn) agentproto.Usage {
	r.t.Helper()
	return must[agentproto.Usage](r)(factrows.Usage(r.t.Context(), r.st.Reader, t.ID))
}

func TestProgress_IsStoredWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	asked := r.ask(`!event {"type":"text","text":"I lo"}; event {"type":"tool","id":"1","title":"Read  notes.md","kind":"read","status":"running"};` +
		`event {"type":"tool","tool":{"id":"2","title":"Search hunter2","status":"pending"}}; event {"type":"plan","entries":[{"content":"read","status":"completed"},{"content":"write"}]};` +
		`event {"type":"tool","id":"1","title":"Read notes.md","kind":"read","status":"done"}; event {"type":"status","status":"requires_action"};` +
		`event {"type":"text","text":"<think>hm</think>I look at hunter2."}; event {"type":"later"}; event {"type":"usage","input":10,"output":3,"context_used":13,"context_size":200000,"cost_usd":0.5};` +
		`hold gate; event {"type":"usage","input":30,"output":5,"context_used":35,"cost_usd":0.75}; say done`)
	want := &store.Progress{
		State: agentproto.StatusRequiresAction, Text: "I look at ***.",
		Plan:  []agentproto.Step{{Content: "read", Status: agentproto.StepCompleted}, {Content: "write", Status: agentproto.StepPending}},
		Tools: []agentproto.Tool{{ID: "1", Title: "Read notes.md", Kind: "read", Status: agentproto.ToolDone}, {ID: "2", Title: "Search ***", Status: agentproto.ToolPending}},
	}
	r.until("usage is stored", func() bool { return r.usage(asked).Input == 10 })
	if d := cmp.Diff(want, r.progress(asked), cmpopts.IgnoreFields(store.Progress{}, "UpdatedAt")); d != "" {
		t.Errorf("progress (-want +got):\n%s", d)
	}
	diff(t, "usage", r.usage(asked), agentproto.Usage{Input: 10, Output: 3, ContextUsed: 13, ContextSize: 200000, CostUSD: 0.5})
	open()
	diff(t, "answer", r.answered(asked), []string{"done"})
	want.Text = "" // it is a message now
	if d := cmp.Diff(want, r.progress(asked), cmpopts.IgnoreFields(store.Progress{}, "UpdatedAt")); d != "" {
		t.Errorf("progress of the answered turn (-want +got):\n%s", d)
	}
	diff(t, "usage of the answered turn", r.usage(asked), agentproto.Usage{Input: 30, Output: 5, ContextUsed: 35, ContextSize: 200000, CostUSD: 0.75})
}

func TestProgress_RetriedTurn_BeginsAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	asked := r.ask(`!event {"type":"usage","input":10,"cost_usd":0.5}; once event {"type":"text","text":"half"}; once error broken; hold gate; say ok`)
	r.until("the second attempt has begun", func() bool { return r.turn(asked.ID).Attempts == 1 && r.usage(asked).Input == 20 })
	if got := r.progress(asked); got == nil || got.Text != "" {
		t.Errorf("progress of the second attempt: %+v", got)
	}
	open()
	r.answered(asked)
	diff(t, "usage of both attempts", r.usage(asked), agentproto.Usage{Input: 20, CostUSD: 1})
}

func TestProgress_OfAnotherRunsTurn_IsIgnored(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	other := r.ask("hi", group("other"))
	r.answered(other)
	r.answered(r.ask(`!event {"turnId":"1","type":"text","text":"x"}; event {"turnId":"1","type":"usage","input":5}; event {"turnId":"99","type":"text","text":"x"}; say ok`))
	if p, u := r.progress(other), r.usage(other); p != nil || u != (agentproto.Usage{}) {
		t.Errorf("progress %+v, usage %+v", p, u)
	}
}

// A part of the answer is a message; the next text does not go on from it.
func TestProgress_PartOfAnswer_BeginsTheTextAgain(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("main", "gate")
	asked := r.ask(`!event {"type":"text","text":"one"}; more one; event {"type":"status","status":"running"}; hold gate; say two`)
	r.until("the part is stored", func() bool {
		p := r.progress(asked)
		return len(r.replies(asked)) == 1 && p != nil && p.Text == ""
	})
	open()
	diff(t, "answers", r.answered(asked), []string{"one / two"})
}

// A report that names no turn belongs to the one it was written for, even if it is handled after the next one began.
func TestProgress_WaitsForTheStore_KeepsItsTurn(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	stored, ready := r.gate("main", "stored"), r.gate("main", "ready")
	first := r.ask(`!event {"type":"text","text":"x"}; hold stored; event {"type":"text","text":"y"}; say one;` +
		`event {"type":"usage","input":7}; hold ready`)
	r.until("the first report is stored", func() bool { return r.progress(first) != nil })
	stored()
	ready()
	if err := r.m.live.get(r.turn(first.ID).RunID).agent.proc.AwaitOutput(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := r.ask("hi")
	r.answered(first, second)
	r.until("usage is stored", func() bool { return r.usage(first).Input+r.usage(second).Input > 0 })
	diff(t, "usage of the first turn", r.usage(first), agentproto.Usage{Input: 7})
}

func TestProgress_ManyEvents_FewWrites(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	db, err := sql.Open("sqlite3", r.db)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TABLE writes (n INTEGER);
		CREATE TRIGGER counted AFTER UPDATE ON turn_progress BEGIN INSERT INTO writes VALUES (1); END`); err != nil {
		t.Fatal(err)
	}
	r.answered(r.ask("!" + strings.Repeat(`event {"type":"text","text":"x"};event {"type":"text","text":"y"};`, 1000) + "say ok"))
	var n int
	if err := db.QueryRow(`SELECT count(*) FROM writes`).Scan(&n); err != nil || n > 20 {
		t.Errorf("2000 events were stored in %d writes: %v", n, err)
	}
}

func TestProgress_SameEvent_ChangesNothing(t *testing.T) {
	t.Parallel()
	none := func(text string) string { return text }
	s := &setup{redact: none, growing: none}
	text := "one"
	p, now := &progress{}, time.Now()
	p.row.UpdatedAt = now.UnixMilli()
	for _, e := range []agentproto.Event{
		{Status: agentproto.StatusIdle}, {Text: &text}, {Tool: &agentproto.Tool{ID: "1", Title: "Read", Status: agentproto.ToolRunning}},
		{Plan: &agentproto.Plan{Entries: []agentproto.Step{{Content: "a"}}}}, {Usage: &agentproto.Usage{Input: 5}},
	} {
		for _, want := range []bool{true, false} {
			p.changed = false
			if p.update(&e, s, now); p.changed != want {
				t.Errorf("%+v: changed %t, want %t", e, p.changed, want)
			}
		}
	}
	if p.update(&agentproto.Event{Status: agentproto.StatusIdle}, s, now.Add(signInterval)); !p.changed {
		t.Error("an event after a while is not stored, so the agent seems to give no sign")
	}
}

// A text is redacted when it is stored: most are replaced before.
func TestProgress_Text_IsWhatUsersMaySee(t *testing.T) {
	t.Parallel()
	p := &progress{growing: func(s string) string { return strings.ReplaceAll(s, "secret", "…") }}
	said := "a secret <internal>hidden</internal>word <thi"
	p.update(&agentproto.Event{Text: &said}, &setup{}, time.Now())
	diff(t, "text", p.text(), "a … word")
}

// The usage of a run never gets less, and no number keeps an answer from being stored.
func TestUsage_OddNumbers_AreBounded(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask(`!event {"type":"usage","input":9000000000000000000,"output":7,"cost_usd":1e300}; event {"type":"usage","input":5,"context_used":9}; once error broken;` +
		` event {"type":"usage","context_size":10}; say ok`)
	diff(t, "answers", r.answered(asked), []string{"ok"})
	diff(t, "usage", r.usage(asked), agentproto.Usage{Input: 2e12, Output: 14, ContextUsed: 9, ContextSize: 10, CostUSD: 2e6})
}

// A commit of progress wakes the adapter, which changes what it shows every two seconds at most.
func TestProgress_Interval_IsWhatUsersCanSee(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		chat string
		ago  time.Duration
		want time.Duration
	}{
		{"web:main", 0, 250 * time.Millisecond}, {"web:main", time.Minute, time.Second},
		{"telegram:1", 0, time.Second}, {"telegram:1", 2900 * time.Millisecond, time.Second}, {"telegram+work:1", 3 * time.Second, 2100 * time.Millisecond},
	} {
		if got := newProgress(tt.chat, now.Add(-tt.ago)).interval(now); got != tt.want {
			t.Errorf("%s after %s: %s, want %s", tt.chat, tt.ago, got, tt.want)
		}
	}
}
