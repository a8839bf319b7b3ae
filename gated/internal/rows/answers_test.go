package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAnswerTurn_FramesOfOtherRuns_ChangeNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	mine, other := gatedtest.Queued(t, s), gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic = "#other" })
	waiting := gatedtest.Queued(t, s)
	run, otherRun := gatedtest.Begun(t, s, mine), gatedtest.Begun(t, s, other)
	before := storetest.Value[int](t, s, `SELECT count(*) FROM messages`)
	for name, r := range map[string]rows.Reply{
		"for another run's turn": gatedtest.Answer(run, other, "x"),
		"of another run":         gatedtest.Answer(otherRun, mine, "x"),
		"for a queued turn":      gatedtest.Answer(run, waiting, "x"),
		"for a queued turn by 0": gatedtest.Answer(&msg.Run{}, waiting, "x"),
	} {
		r.SessionID = "forged"
		refused(t, s, name, func(tx *store.Tx) error { return gatedtest.AnswerTurn(tx, r, 310) })
	}
	if got := storetest.Value[int](t, s, `SELECT count(*) FROM messages`); got != before {
		t.Errorf("%d rows, %d before", got, before)
	}
	if got := storetest.Value[string](t, s, `SELECT group_concat(session_id, '') FROM session_log`); got != "" {
		t.Errorf("the log has session %q", got)
	}
	if got := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, ""))(t); got != "" {
		t.Errorf("session %q", got)
	}
}

func TestAnswerTurn_ClosedRun_StoresNoSession(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second := gatedtest.Piped(t, s, run)
	frame := gatedtest.Answer(run, first, "ok")
	frame.SessionID = "old"
	gatedtest.StoreReply(t, s, frame, 300)
	var reset int64
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		reset, err = rows.ResetSession(tx, storetest.Folder, "", 310)
		return err
	})
	if reset != run.ID {
		t.Errorf("closed run %d, want %d", reset, run.ID)
	}
	frame = gatedtest.Answer(run, second, "late")
	frame.SessionID = "old"
	gatedtest.StoreReply(t, s, frame, 320)
	if got := storetest.Turn(t, s, second.ID); got.State != msg.TurnDone || len(storetest.Replies(t, s, second.ID)) != 1 {
		t.Errorf("its turn is not answered: %+v", got)
	}
	if got := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, ""))(t); got != "" {
		t.Errorf("session %q came back", got)
	}
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		reset, err = rows.ResetSession(tx, storetest.Folder, "", 330)
		return err
	})
	if reset != 0 {
		t.Errorf("closed run %d again", reset)
	}
}

func TestReplies_OutState(t *testing.T) {
	t.Parallel()
	for jid, want := range map[string]msg.OutState{
		"group:acme": msg.OutSent, "web:acme": msg.OutQueued, "telegram:1": msg.OutQueued, "irc:#go": msg.OutQueued,
	} {
		t.Run(jid, func(t *testing.T) {
			s := storetest.Open(t)
			turn := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = jid })
			gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, turn), turn, "hi"), 300)
			storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutNotice(tx, turn, "sorry", 310) })
			got := storetest.Replies(t, s, turn.ID)
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
