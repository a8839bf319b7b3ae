package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestRuns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	if got := turn(t, s, first.ID); got.State != msg.TurnRunning || got.RunID != run.ID || got.StartedAt != run.StartedAt {
		t.Errorf("its turn: %+v", got)
	}
	write(t, s, func(tx *store.Tx) error { return tx.RecordProcess(run.ID, 4321, 99, "label") })
	run.PID, run.PIDStart, run.Label = 4321, 99, "label"
	if diff := cmp.Diff([]*msg.Run{run}, must(s.UnendedRuns(t.Context()))(t)); diff != "" {
		t.Errorf("unended (-want +got):\n%s", diff)
	}
	if !must(s.RunIsLive(t.Context(), run.ID))(t) || must(s.RunIsLive(t.Context(), 4711))(t) {
		t.Error("the run is not live, or a run that does not exist is")
	}

	for _, now := range []int64{400, 500} { // closed once and for all
		write(t, s, func(tx *store.Tx) error { return tx.CloseRun(run.ID, now) })
	}
	run.ClosedAt = 400
	if diff := cmp.Diff([]*msg.Run{run}, must(s.UnendedRuns(t.Context()))(t)); diff != "" {
		t.Errorf("closed, process running (-want +got):\n%s", diff)
	}
	if must(s.RunIsLive(t.Context(), run.ID))(t) {
		t.Error("closed and live")
	}
	for now, problem := range []string{"broke", ""} { // ended once and for all
		write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, problem, 600+int64(now)) })
	}
	if got := get[int64](t, s, `SELECT ended_at FROM runs WHERE id = ?`, run.ID); got != 600 {
		t.Errorf("ended at %d", got)
	}
	if got := must(s.UnendedRuns(t.Context()))(t); len(got) != 0 {
		t.Errorf("ended: %+v", got)
	}
	want := []store.PastSession{{StartedAt: 200, EndedAt: 600, Result: "error", Error: "broke"}}
	if diff := cmp.Diff(want, must(s.PastSessions(t.Context(), folder, "", run.ID+1, 5))(t)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestStartRun_SecondOfATopic_IsRefused(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first, second := queued(t, s), queued(t, s)
	run := begun(t, s, first)
	start := func(turnID int64, topic string) error {
		return s.Write(t.Context(), func(tx *store.Tx) error {
			return tx.StartRun(&msg.Run{Folder: folder, Topic: topic, ChatJID: chat, Runtime: "process", StartedAt: 300}, turnID)
		})
	}
	if err := start(second.ID, ""); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a second run of the topic: %v", err)
	}
	if err := start(first.ID, "#other"); !errors.Is(err, store.ErrStale) {
		t.Errorf("a run for a running turn: %v", err)
	}
	if err := start(second.ID, "#other"); err != nil {
		t.Errorf("a run of another topic: %v", err)
	}
	write(t, s, func(tx *store.Tx) error { return tx.CloseRun(run.ID, 400) })
	third := queued(t, s)
	if err := start(third.ID, ""); err != nil {
		t.Errorf("a run after the last was closed: %v", err)
	}
	if n := get[int](t, s, `SELECT count(*) FROM runs`); n != 3 {
		t.Errorf("%d runs", n)
	}
	if n := get[int](t, s, `SELECT count(*) FROM session_log`); n != 3 {
		t.Errorf("%d log entries", n)
	}
}

// replies returns the outbound rows of a turn.
func replies(t *testing.T, s *store.Store, turnID int64) (all []msg.Message) {
	t.Helper()
	for _, m := range must(s.TurnReplies(t.Context(), turnID))(t) {
		m.ID = 0
		all = append(all, *m)
	}
	return all
}

func TestAnswerTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	second, third := piped(t, s, run), piped(t, s, run)

	part := answer(run, first, "part")
	part.Final, part.SessionID, part.ObservedUpto = false, "session-1", 5
	reply(t, s, part, 300)
	if got := turn(t, s, first.ID); got.State != msg.TurnRunning || got.Frames != 1 || got.ObservedUpto != 5 || got.EndedAt != 0 {
		t.Errorf("after a part: %+v", got)
	}
	last := answer(run, first, "the rest")
	last.ObservedUpto = 5
	reply(t, s, last, 310)
	want := turn(t, s, first.ID)
	if want.State != msg.TurnDone || want.Reason != msg.ReasonAnswered || want.EndedAt != 310 || want.Frames != 2 || want.ObservedUpto != 5 {
		t.Errorf("after the last part: %+v", want)
	}

	extra := answer(run, first, "one more thing")
	extra.ObservedUpto = 5
	reply(t, s, extra, 320)
	want.Frames = 3
	if diff := cmp.Diff(want, turn(t, s, first.ID)); diff != "" {
		t.Errorf("an extra frame changed more than the count (-want +got):\n%s", diff)
	}
	out := msg.Message{
		ChatJID: chat, Direction: msg.Out, Kind: msg.KindMessage, Sender: "agent:acme", SenderName: "Ada", IsBot: true,
		Verb: msg.VerbMessage, Topic: "place", ThreadID: "thread", Source: msg.SourceAgent, TurnID: first.ID, OutState: msg.OutQueued,
	}
	var wantOut []msg.Message
	for i, text := range []string{"part", "the rest", "one more thing"} {
		m := out
		m.Content, m.Timestamp = text, 300+10*int64(i)
		m.ReceivedAt = m.Timestamp
		wantOut = append(wantOut, m)
	}
	wantOut[0].ReplyToID = "native-1"
	if diff := cmp.Diff(wantOut, replies(t, s, first.ID)); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if got := must(s.Session(t.Context(), folder, ""))(t); got != "session-1" {
		t.Errorf("session %q: a frame without one must leave it", got)
	}
	// A frame may answer a turn before the one that is asked first.
	reply(t, s, answer(run, third, "out of order"), 330)
	if got := turn(t, s, second.ID); got.State != msg.TurnRunning || got.StartedAt != second.StartedAt {
		t.Errorf("the running turn: %+v", got)
	}
}

func TestAnswerTurn_LateFrames_ChangeNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	mine, other := queued(t, s), queued(t, s, func(turn *msg.Turn) { turn.Topic = "#other" })
	waiting := queued(t, s)
	run, otherRun := begun(t, s, mine), begun(t, s, other)
	cancelled, failed := piped(t, s, run), piped(t, s, run)
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(cancelled.ID, msg.ReasonCancelled, 300) })
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(failed, msg.TurnFailed, msg.ReasonAgentError, "broke", 300)
	})
	before := get[int](t, s, `SELECT count(*) FROM messages`)
	for name, r := range map[string]store.Reply{
		"for a cancelled turn":    answer(run, cancelled, "x"),
		"for a failed turn":       answer(run, failed, "x"),
		"for another run's turn":  answer(run, other, "x"),
		"of another run":          answer(otherRun, mine, "x"),
		"for a queued turn":       answer(run, waiting, "x"),
		"for a queued turn by 0":  answer(&msg.Run{}, waiting, "x"),
		"for a turn never stored": answer(run, &msg.Turn{ID: 4711}, "x"),
	} {
		r.SessionID = "forged"
		refused(t, s, name, func(tx *store.Tx) error { return tx.AnswerTurn(r, 310) })
	}
	if got := get[int](t, s, `SELECT count(*) FROM messages`); got != before {
		t.Errorf("%d rows, %d before", got, before)
	}
	if got := get[string](t, s, `SELECT group_concat(session_id, '') FROM session_log`); got != "" {
		t.Errorf("the log has session %q", got)
	}
	if got := must(s.Session(t.Context(), folder, ""))(t); got != "" {
		t.Errorf("session %q", got)
	}
}

func TestAnswerTurn_NoText_IsSilent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	silent := queued(t, s)
	run := begun(t, s, silent)
	// Frames without text send nothing, however many there are.
	part := answer(run, silent, "")
	part.Final = false
	reply(t, s, part, 300)
	reply(t, s, answer(run, silent, ""), 310)
	if got := turn(t, s, silent.ID); got.State != msg.TurnDone || got.Reason != msg.ReasonSilent || got.Frames != 0 {
		t.Errorf("%+v", got)
	}
	if got := replies(t, s, silent.ID); got != nil {
		t.Errorf("%+v", got)
	}

	brief := piped(t, s, run)
	part = answer(run, brief, "said already")
	part.Final = false
	reply(t, s, part, 320)
	reply(t, s, answer(run, brief, ""), 330)
	if got := turn(t, s, brief.ID); got.Reason != msg.ReasonAnswered || len(replies(t, s, brief.ID)) != 1 {
		t.Errorf("%+v", got)
	}
}

func TestAnswerTurn_ClosedRun_StoresNoSession(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	second := piped(t, s, run)
	frame := answer(run, first, "ok")
	frame.SessionID = "old"
	reply(t, s, frame, 300)
	var reset int64
	write(t, s, func(tx *store.Tx) (err error) {
		reset, err = tx.ResetSession(folder, "", 310)
		return err
	})
	if reset != run.ID {
		t.Errorf("closed run %d, want %d", reset, run.ID)
	}
	frame = answer(run, second, "late")
	frame.SessionID = "old"
	reply(t, s, frame, 320)
	if got := turn(t, s, second.ID); got.State != msg.TurnDone || len(replies(t, s, second.ID)) != 1 {
		t.Errorf("its turn is not answered: %+v", got)
	}
	if got := must(s.Session(t.Context(), folder, ""))(t); got != "" {
		t.Errorf("session %q came back", got)
	}
	write(t, s, func(tx *store.Tx) (err error) {
		reset, err = tx.ResetSession(folder, "", 330)
		return err
	})
	if reset != 0 {
		t.Errorf("closed run %d again", reset)
	}
}

func TestAnswerTurn_Escalation_AnswersTheAskingGroup(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	from := &msg.ReturnAddress{
		Kind: msg.Escalation, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1", Topic: "#deploy",
		ThreadID: "171.5", Place: "171.5", ReplyTo: "171.6", Surface: "slack-channel-thread", Ceiling: 4000, Claims: true,
	}
	ask := stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: from})
	asked := queued(t, s, func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ChatJID, turn.Kind = ask.ID, "group:acme", msg.Delegated
	})
	for len(pokes) > 0 {
		<-pokes
	}
	run := begun(t, s, asked)
	reply(t, s, answer(run, asked, "you may"), 300)
	if got := replies(t, s, asked.ID); got != nil {
		t.Errorf("outbound: %+v", got)
	}
	back := *from
	back.Kind, back.TurnID = msg.Answer, asked.ID
	want := &msg.Message{
		ChatJID: "group:acme/eng", Direction: msg.In, Kind: msg.KindMessage, Sender: "agent:acme", SenderName: "acme", IsBot: true,
		Verb: msg.VerbMessage, Content: "you may", Timestamp: 300, ReceivedAt: 300,
		Source: msg.SourceDelegate, ForwardedFrom: &back,
	}
	rows := must(s.Undecided(t.Context(), "group:acme/eng", 0, 10))(t)
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	rows[0].ID = 0
	if diff := cmp.Diff(want, rows[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	eventually(t, "gated to be poked", func() bool { return receive(t, "a poke", pokes) == "gated" })
}

// TestEndTurn_OfARequest: the group that asked hears that nothing was said, unless the turn has asked further, and the session of
// the request ends.
func TestEndTurn_OfARequest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind          msg.ReturnKind
		text          string
		escalates     bool
		answer, noted string
		session       string
	}{
		"an escalation, answered":     {msg.Escalation, "you may", false, "you may", "", ""},
		"an escalation, silent":       {msg.Escalation, "", false, "(No answer: acme has read this and said nothing.)", "", ""},
		"an escalation, asks further": {msg.Escalation, "", true, "", "", "s1"},
		"a delegation, answered":      {msg.Delegation, "done", false, "", "", ""},
		"a delegation, silent":        {msg.Delegation, "", false, "", "acme has ended what you delegated to it (message 1) without an answer.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t)
			row := stored(t, s, &msg.Message{ChatJID: "group:acme", Direction: msg.In, Content: "may I?", ForwardedFrom: &msg.ReturnAddress{
				Kind: c.kind, TurnID: 7, RootTurnID: 7, Depth: 1, Folder: "acme/eng", ChatJID: "slack:C1"}})
			asked := queued(t, s, func(turn *msg.Turn) {
				turn.TriggerMessageID, turn.ChatJID, turn.Kind, turn.Topic = row.ID, "group:acme", msg.Delegated, msg.DelegatedTopic(row.ID)
			})
			run := begun(t, s, asked)
			if c.escalates {
				write(t, s, func(tx *store.Tx) error { return tx.PutToolCall(asked.ID, "1", "escalate", []byte(`{}`), 250) })
			}
			frame := answer(run, asked, c.text)
			frame.SessionID = "s1"
			reply(t, s, frame, 300)
			got := ""
			for _, m := range must(s.Undecided(t.Context(), "group:acme/eng", 0, 10))(t) {
				got += m.Content
			}
			noted := ""
			next := queued(t, s, func(turn *msg.Turn) { turn.Folder = "acme/eng" })
			write(t, s, func(tx *store.Tx) error { return tx.ClaimSystemMessages("acme/eng", next.ID) })
			for _, line := range must(s.TurnSystemMessages(t.Context(), next.ID))(t) {
				noted += line.Body
			}
			session := must(s.Session(t.Context(), folder, asked.Topic))(t)
			write(t, s, func(tx *store.Tx) error { return tx.EndOldRequests(1000, 1000) })
			if old := must(s.Session(t.Context(), folder, asked.Topic))(t); old != "" {
				t.Errorf("an old session is kept: %q", old)
			}
			if got != c.answer || noted != c.noted || session != c.session {
				t.Errorf("answer %q, noted %q, session %q; want %q, %q, %q", got, noted, session, c.answer, c.noted, c.session)
			}
		})
	}
}

func TestReplies_OutState(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]msg.OutState{
		"group:acme": msg.OutSent, "web:acme": msg.OutQueued, "telegram:1": msg.OutQueued, "irc:#go": msg.OutQueued,
	} {
		t.Run(jid, func(t *testing.T) {
			s := storetest.Open(t)
			turn := queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
			reply(t, s, answer(begun(t, s, turn), turn, "hi"), 300)
			write(t, s, func(tx *store.Tx) error { return tx.PutNotice(turn, "sorry", 310) })
			got := replies(t, s, turn.ID)
			if len(got) != 2 || got[0].OutState != want || got[1].OutState != want {
				t.Fatalf("%+v", got)
			}
			notice := got[1]
			if notice.Source != msg.SourceNotice || notice.ReplyToID != turn.ReplyTo || notice.Content != "sorry" || !notice.IsBot {
				t.Errorf("notice: %+v", notice)
			}
		})
	}
}

func TestFinishTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := queued(t, s)
	run := begun(t, s, first)
	second := piped(t, s, run)
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(turn(t, s, first.ID), msg.TurnDone, msg.ReasonPartial, "broke", 300)
	})
	if got := turn(t, s, first.ID); got.State != msg.TurnDone || got.Reason != msg.ReasonPartial || got.Error != "broke" || got.EndedAt != 300 {
		t.Errorf("%+v", got)
	}
	if got := turn(t, s, second.ID); got.State != msg.TurnRunning {
		t.Errorf("the next turn: %+v", got)
	}
	refused(t, s, "ended already", func(tx *store.Tx) error {
		return tx.FinishTurn(first, msg.TurnFailed, msg.ReasonAgentError, "", 310)
	})
	waiting := queued(t, s)
	write(t, s, func(tx *store.Tx) error {
		return tx.FinishTurn(waiting, msg.TurnFailed, msg.ReasonAgentError, "", 320)
	})
	if got := turn(t, s, waiting.ID); got.State != msg.TurnFailed {
		t.Errorf("a turn without a run: %+v", got)
	}
}

func TestEndTurn_PokesRoutd(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 100)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) {
		if daemon == "routd" {
			pokes <- daemon
		}
	})
	first := queued(t, s)
	run := begun(t, s, first)
	ends := []func(*store.Tx, *msg.Turn) error{
		func(tx *store.Tx, turn *msg.Turn) error { return tx.AnswerTurn(answer(run, turn, ""), 300) },
		func(tx *store.Tx, turn *msg.Turn) error { return tx.CancelTurn(turn.ID, msg.ReasonCancelled, 300) },
		func(tx *store.Tx, turn *msg.Turn) error {
			return tx.FinishTurn(turn, msg.TurnFailed, msg.ReasonAgentError, "", 300)
		},
	}
	for i, end := range ends {
		turn := first
		if i > 0 {
			turn = piped(t, s, run)
		}
		write(t, s, func(tx *store.Tx) error { return end(tx, turn) })
		receive(t, fmt.Sprint("the poke for end ", i), pokes)
	}
}
