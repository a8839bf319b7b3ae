package store_test

import (
	"testing"

	"arizuko/gated/gatedtest"
	factrows "arizuko/pkg/facts/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

func TestAnswerTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, first)
	second, third := gatedtest.Piped(t, s, run), gatedtest.Piped(t, s, run)

	part := gatedtest.Answer(run, first, "part")
	part.Final, part.SessionID, part.ObservedUpto = false, "session-1", 5
	gatedtest.StoreReply(t, s, part, 300)
	if got := storetest.Turn(t, s, first.ID); got.State != msg.TurnRunning || got.Frames != 1 || got.ObservedUpto != 5 || got.EndedAt != 0 {
		t.Errorf("after a part: %+v", got)
	}
	last := gatedtest.Answer(run, first, "the rest")
	last.ObservedUpto = 5
	gatedtest.StoreReply(t, s, last, 310)
	want := storetest.Turn(t, s, first.ID)
	if want.State != msg.TurnDone || want.Reason != msg.ReasonAnswered || want.EndedAt != 310 || want.Frames != 2 || want.ObservedUpto != 5 {
		t.Errorf("after the last part: %+v", want)
	}

	extra := gatedtest.Answer(run, first, "one more thing")
	extra.ObservedUpto = 5
	gatedtest.StoreReply(t, s, extra, 320)
	want.Frames = 3
	if diff := cmp.Diff(want, storetest.Turn(t, s, first.ID)); diff != "" {
		t.Errorf("an extra frame changed more than the count (-want +got):\n%s", diff)
	}
	out := msg.Message{
		ChatJID: storetest.Chat, Direction: msg.Out, Kind: msg.KindMessage, Sender: "agent:acme", SenderName: "Ada", IsBot: true,
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
	if diff := cmp.Diff(wantOut, storetest.Replies(t, s, first.ID)); diff != "" {
		t.Errorf("replies (-want +got):\n%s", diff)
	}
	if got := storetest.Must(factrows.Session(t.Context(), s.Reader, storetest.Folder, ""))(t); got != "session-1" {
		t.Errorf("session %q: a frame without one must leave it", got)
	}
	// A frame may answer a turn before the one that is asked first.
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, third, "out of order"), 330)
	if got := storetest.Turn(t, s, second.ID); got.State != msg.TurnRunning || got.StartedAt != second.StartedAt {
		t.Errorf("the running turn: %+v", got)
	}
}

func TestAnswerTurn_NoText_IsSilent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	silent := gatedtest.Queued(t, s)
	run := gatedtest.Begun(t, s, silent)
	// Frames without text send nothing, however many there are.
	part := gatedtest.Answer(run, silent, "")
	part.Final = false
	gatedtest.StoreReply(t, s, part, 300)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, silent, ""), 310)
	if got := storetest.Turn(t, s, silent.ID); got.State != msg.TurnDone || got.Reason != msg.ReasonSilent || got.Frames != 0 {
		t.Errorf("%+v", got)
	}
	if got := storetest.Replies(t, s, silent.ID); got != nil {
		t.Errorf("%+v", got)
	}

	brief := gatedtest.Piped(t, s, run)
	part = gatedtest.Answer(run, brief, "said already")
	part.Final = false
	gatedtest.StoreReply(t, s, part, 320)
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, brief, ""), 330)
	if got := storetest.Turn(t, s, brief.ID); got.Reason != msg.ReasonAnswered || len(storetest.Replies(t, s, brief.ID)) != 1 {
		t.Errorf("%+v", got)
	}
}
