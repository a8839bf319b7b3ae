package agents

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/gated/internal/shown/briefing"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask("!session s1; more one; say two", chat("telegram:-5"), topic("#x"), func(t *msg.Turn) {
		t.ThreadID, t.Place, t.Surface, t.Ceiling = "7", "7", "telegram-topic", 1234
	})
	done := r.await(asked, msg.TurnDone)
	if done.Reason != msg.ReasonAnswered || done.Frames != 2 || done.EndedAt == 0 || done.StartedAt == 0 || done.ObservedUpto == 0 {
		t.Errorf("turn %+v", done)
	}

	reply := msg.Message{
		ChatJID: "telegram:-5", Direction: msg.Out, Kind: msg.KindMessage, Verb: msg.VerbMessage, IsBot: true,
		Sender: "agent:main", SenderName: "ari", Topic: "7", ThreadID: "7", Source: msg.SourceAgent,
		TurnID: asked.ID, OutState: msg.OutQueued,
	}
	first, second := reply, reply
	first.Content, first.ReplyToID = "one", "p1"
	second.Content = "two"
	got := must[[]*msg.Message](r)(factrows.TurnReplies(t.Context(), r.st.Reader, asked.ID))
	if d := cmp.Diff([]*msg.Message{&first, &second}, got, cmpopts.IgnoreFields(msg.Message{}, "ID", "Timestamp", "ReceivedAt")); d != "" {
		t.Errorf("replies (-want +got):\n%s", d)
	}

	in := r.inputs("main")[0].start()
	want := briefing.Text(briefing.Input{Assistant: "ari", Names: r.cfg.Names, ChatJID: "telegram:-5", Surface: "telegram-topic", Ceiling: 1234})
	diff(t, "system text", in.System, want)
	in.Prompt, in.System = "", ""
	diff(t, "start line", in, agentproto.Start{
		TurnID: fmt.Sprint(asked.ID), GroupFolder: "main", ChatJID: "telegram:-5", Topic: "#x", ThreadID: "7",
		EngageTopic: "7", Surface: "telegram-topic", Ceiling: 1234,
	})
}

func TestSession(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	r.answered(r.ask("!session s1; say hi"), r.ask("and again"))
	if s := r.session("main", ""); s != "s1" {
		t.Errorf("session %q", s)
	}
	r.answered(r.ask("!session s2; say hi", chat("telegram:2"))) // needs a run of its own
	all := r.inputs("main")
	if first, last := all[0], all[len(all)-1]; first.start().SessionID != "" || last.start().SessionID != "s1" || first.pid == last.pid {
		t.Errorf("started with sessions %q and %q", first.start().SessionID, last.start().SessionID)
	}
	r.answered(r.ask("hi", topic("#other")))
	all = r.inputs("main")
	if s := all[len(all)-1].start().SessionID; s != "" {
		t.Errorf("another topic was started with session %q", s)
	}
	r.stop()

	log := must[[]rows.PastSession](r)(rows.PastSessions(t.Context(), r.st.Reader, "main", "", 1000, 10))
	for i := range log {
		if log[i].EndedAt < log[i].StartedAt || log[i].StartedAt == 0 {
			t.Errorf("times of %+v", log[i])
		}
		log[i].StartedAt, log[i].EndedAt = 0, 0
	}
	diff(t, "session log", log, []rows.PastSession{
		{SessionID: "s2", Result: "ok", MessageCount: 1},
		{SessionID: "s1", Result: "ok", MessageCount: 2},
	})
}

func TestPiping(t *testing.T) {
	for _, say := range []string{"say", "anon"} {
		t.Run(say, func(t *testing.T) {
			r := newHarness(t)
			open := r.gate("main", "gate")
			turns := []*msg.Turn{r.ask(announce + "hold gate; " + say + " 1")}
			run := r.await(turns[0], msg.TurnRunning).RunID
			r.until("the agent runs", func() bool { return r.m.live.get(run) != nil })
			for i := 2; i <= 5; i++ {
				next := r.ask(fmt.Sprintf("!%s %d", say, i))
				r.until("the run has it", func() bool { return r.turn(next.ID).RunID == run })
				turns = append(turns, next)
			}
			open()
			diff(t, "answers", r.answered(turns...), []string{"1", "2", "3", "4", "5"})
			all := r.inputs("main")
			for i, g := range all {
				if g.pid != all[0].pid || len(g.prompt.Messages) != 1 {
					t.Errorf("line %d went to process %d with messages %q", i, g.pid, texts(g.prompt.Messages))
				}
			}
			r.noneDoubled(turns)
		})
	}
}

// noneDoubled checks that the turns were answered in order.
func (r *harness) noneDoubled(turns []*msg.Turn) {
	r.t.Helper()
	var ids []int64
	for _, t := range turns {
		for _, m := range must[[]*msg.Message](r)(factrows.TurnReplies(r.t.Context(), r.st.Reader, t.ID)) {
			ids = append(ids, m.ID)
		}
	}
	if !slices.IsSorted(ids) || len(ids) != len(turns) {
		r.t.Errorf("the answers of %d turns are rows %v", len(turns), ids)
	}
}

func TestFrames(t *testing.T) {
	delimiters := agentproto.FrameEnd + "\n" + agentproto.FrameStart + "\n{}"
	tests := []struct {
		name, script string
		reason       msg.Reason
		answers      []string
	}{
		{"silence", "say", msg.ReasonSilent, nil},
		{"hidden text", "say <internal>secret plan</internal>hi", msg.ReasonAnswered, []string{"hi"}},
		{"nothing but hidden text", "say <think>hm</think>", msg.ReasonSilent, nil},
		{"hidden text without an end", "say <think>hm", msg.ReasonPartial, []string{brokenOff}},
		{"a fence alone, which shows nothing", "say ```", msg.ReasonSilent, nil},
		{"a space without width", "say \u200b", msg.ReasonSilent, nil},
		{"blanks that do not break", "say \u00a0\u00a0", msg.ReasonSilent, nil},
		{"silence after a part", "more part; say", msg.ReasonAnswered, []string{"part"}},
		{"secret", "say the password is hunter2", msg.ReasonAnswered, []string{"the password is ***"}},
		{"after the end", "say a; say b; anon c", msg.ReasonAnswered, []string{"a", "b", "c"}},
		{"of no turn", "as 99999 forged; as x forged; as -1 forged; say real", msg.ReasonAnswered, []string{"real"}},
		{"noise around", `print "working...\n{\"status\":\"ok\"}\n"; say real; print "done"`, msg.ReasonAnswered, []string{"real"}},
		{"delimiters in the text", `print ` + fmt.Sprintf("%q", jsonFrame(delimiters)), msg.ReasonAnswered, []string{delimiters}},
		{"NUL and broken UTF-8", `print ` + fmt.Sprintf("%q", jsonFrame("a\\u0000b\xff")), msg.ReasonAnswered, []string{"ab\ufffd"}},
		{"a flood of output first", "flood stdout; say done", msg.ReasonAnswered, []string{"done"}},
		{"a flood of errors first", "flood stderr; say done", msg.ReasonAnswered, []string{"done"}},
		{"an error after output", "more part; error broken", msg.ReasonPartial, []string{"part"}},
		{"a crash after output", "more part; exit 1", msg.ReasonPartial, []string{"part"}},
		{"a broken frame after output", `more part; print ` + fmt.Sprintf("%q", rawFrame("{")), msg.ReasonPartial, []string{"part"}},
	}
	r := newHarness(t)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &harness{t: t, cfg: r.cfg, st: r.st, m: r.m, log: r.log, post: 100 * i}
			asked := r.ask("!"+tt.script, topic(fmt.Sprintf("#%d", i)))
			done := r.await(asked, msg.TurnDone)
			if done.Reason != tt.reason {
				t.Errorf("reason %s, want %s", done.Reason, tt.reason)
			}
			r.until("all answers are stored", func() bool { return len(r.replies(asked)) >= len(tt.answers) })
			diff(t, "answers", r.replies(asked), tt.answers)
		})
	}
}

func rawFrame(body string) string {
	return agentproto.FrameStart + "\n" + body + "\n" + agentproto.FrameEnd + "\n"
}

func jsonFrame(result string) string {
	return rawFrame(`{"status":"ok","result":"` + strings.ReplaceAll(result, "\n", `\n`) + `"}`)
}

func TestFrames_Malformed_FailTheTurn(t *testing.T) {
	tests := []struct{ name, script, problem string }{
		{"error", "error no hunter2 left", "no *** left"},
		{"error without words", "error", "without a description"},
		{"not JSON", "print " + fmt.Sprintf("%q", rawFrame("{")), "malformed frame"},
		{"unknown status", "print " + fmt.Sprintf("%q", rawFrame(`{"status":"fine"}`)), "malformed frame"},
		{"too large", fmt.Sprintf("long %d", agentproto.MaxFrame), "larger than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newHarness(t, attempts(1), impatient)
			r.answered(r.ask("!session s1; say hi"))
			r.gate("main", "never")
			asked := r.ask("!" + tt.script + "; say too late; hold never")
			failed := r.await(asked, msg.TurnFailed)
			if failed.Reason != msg.ReasonAgentError || !strings.Contains(failed.Error, tt.problem) {
				t.Errorf("failed with %s, %q", failed.Reason, failed.Error)
			}
			r.onlyNotice(asked)
			if s := r.session("main", ""); s != "" {
				t.Errorf("session %q survived", s)
			}
			diff(t, "the next turn", r.answered(r.ask("hello")), []string{"re: hello"})
			log := must[[]rows.PastSession](r)(rows.PastSessions(t.Context(), r.st.Reader, "main", "", failed.RunID+1, 1))
			if log[0].Result != "error" || log[0].Error != failed.Error {
				t.Errorf("session log %+v", log[0])
			}
		})
	}
}

// onlyNotice checks that a turn ended with one notice that does not have the
// reason, after one about its session at most.
func (r *harness) onlyNotice(t *msg.Turn) {
	r.t.Helper()
	rows := must[[]*msg.Message](r)(factrows.TurnReplies(r.t.Context(), r.st.Reader, t.ID))
	if len(rows) > 1 && strings.HasPrefix(rows[0].Content, "(I have lost our earlier conversation") {
		rows = rows[1:]
	}
	if len(rows) != 1 || rows[0].Source != msg.SourceNotice || rows[0].ChatJID != t.ChatJID || rows[0].ReplyToID != t.ReplyTo ||
		rows[0].OutState != msg.OutQueued || !strings.HasPrefix(rows[0].Content, "Sorry, I could not answer this") {
		r.t.Errorf("turn %d ended in %+v", t.ID, rows)
	}
}

func TestFrames_NameTurnOfAnotherRun_AreIgnored(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	open := r.gate("victim", "gate")
	victim := r.ask("!hold gate; say mine", group("victim"), chat("telegram:2"))
	r.await(victim, msg.TurnRunning)
	forger := r.ask(fmt.Sprintf("!as %d forged; say done", victim.ID))
	diff(t, "forger", r.answered(forger), []string{"done"})
	open()
	diff(t, "victim", r.answered(victim), []string{"mine"})
}

func TestRunLog(t *testing.T) {
	t.Parallel()
	r := newHarness(t)
	asked := r.ask("!print \"thinking aloud\\n\"; say hi")
	run := r.await(asked, msg.TurnDone).RunID
	r.stop()
	log := readFile(t, r.cfg.Logs, "main", fmt.Sprintf("run-%d.log", run))
	if !strings.Contains(log, "out: thinking aloud\n") {
		t.Errorf("run log %q", log)
	}
}
