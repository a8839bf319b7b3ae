package store_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestEngagement_RoundTrip(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	nothing := msg.Engagement{ChatJID: chat, Place: "33"}
	if got := must(s.Engagement(t.Context(), chat, "33"))(t).Engagement; got != nothing {
		t.Errorf("nothing stored: %+v", got)
	}
	thread := msg.Engagement{ChatJID: chat, Place: "33", Folder: folder, Until: 200, At: 100, LastReply: 7, EndedAt: 50}
	room := msg.Engagement{ChatJID: chat, Folder: "ops", Until: 300, At: 250}
	write(t, s, func(tx *store.Tx) error {
		for _, e := range []msg.Engagement{thread, room, {ChatJID: "slack:C1", Folder: "ops", Until: 1}} {
			if err := tx.PutEngagement(e); err != nil {
				return err
			}
		}
		return nil
	})
	if got := must(s.Engagement(t.Context(), chat, "33"))(t).Engagement; got != thread {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]*msg.Engagement{&room, &thread}, must(s.Engagements(t.Context(), chat))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	over := msg.Engagement{ChatJID: chat, Place: "33", LastReply: 7, EndedAt: 90}
	write(t, s, func(tx *store.Tx) error { return tx.PutEngagement(over) })
	if got := must(s.Engagement(t.Context(), chat, "33"))(t).Engagement; got != over {
		t.Errorf("ended: %+v", got)
	}
	if got := must(s.Engagements(t.Context(), "slack:C2"))(t); len(got) != 0 {
		t.Errorf("of another chat: %+v", got)
	}
}

// claiming stores a turn that claims its place, with a trigger that arrived at a time.
func claiming(t *testing.T, s *store.Store, at int64, set ...func(*msg.Turn)) *msg.Turn {
	t.Helper()
	trigger := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.In, Verb: msg.VerbMention, ReceivedAt: at})
	return queued(t, s, append([]func(*msg.Turn){func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ClaimsEngagement = trigger.ID, true
	}}, set...)...)
}

func TestClaims_EndWithTheLastDelivery(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := claiming(t, s, 5)
	is := func(when string, overAt int64) {
		t.Helper()
		want := []store.Claim{{Folder: folder, At: 5, LastAt: 5, OverAt: overAt}}
		if diff := cmp.Diff(want, must(s.Claims(t.Context(), chat, "place", nil))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	is("queued", 0)
	run := begun(t, s, turn)
	is("running", 0)
	write(t, s, func(tx *store.Tx) error { return tx.EndRun(run.ID, "", 290) })
	write(t, s, func(tx *store.Tx) error { return tx.RequeueTurn(turn.ID, store.Requeue{Attempt: true}) })
	is("in backoff", 0)
	turn.Topic = "#again"
	reply(t, s, answer(begun(t, s, turn), turn, "two parts"), 400)
	is("answered, not delivered", 0)
	out := must(s.TurnReplies(t.Context(), turn.ID))(t)[0].ID
	write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(out, 2, 410) })
	deliver(t, s, store.Delivery{MessageID: out, State: msg.OutSent}, 420)
	is("the first part delivered", 0)
	deliver(t, s, store.Delivery{MessageID: out, Part: 1, State: msg.OutFailed, ErrorClass: msg.Permanent}, 430)
	write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(out, msg.OutFailed, "") })
	is("the last part failed", 430)
	notice := &msg.Message{ChatJID: chat, Direction: msg.Out, Source: msg.SourceNotice, TurnID: turn.ID, OutState: msg.OutQueued}
	stored(t, s, notice)
	is("a notice is on its way", 430)
	write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(notice.ID, 1, 440) })
	deliver(t, s, store.Delivery{MessageID: notice.ID, State: msg.OutSent}, 450)
	is("a notice is delivered", 430)
	stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Source: msg.SourceTool, TurnID: turn.ID, OutState: msg.OutQueued})
	is("a tool has posted more", 0)
}

func deliver(t *testing.T, s *store.Store, d store.Delivery, now int64) {
	t.Helper()
	write(t, s, func(tx *store.Tx) error { return tx.PutDelivery(d, now) })
}

func TestClaims_ReturnsTheNewestOfAPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	claiming(t, s, 1)
	var want []store.Claim
	for at := int64(2); at < 34; at++ {
		claiming(t, s, at)
		want = append([]store.Claim{{Folder: folder, At: at, LastAt: at}}, want...)
	}
	claiming(t, s, 40, func(turn *msg.Turn) { turn.Place = "" })
	claiming(t, s, 41, func(turn *msg.Turn) { turn.ChatJID = "slack:C1" })
	claiming(t, s, 42, func(turn *msg.Turn) { turn.ClaimsEngagement = false })
	if diff := cmp.Diff(want, must(s.Claims(t.Context(), chat, "place", nil))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	silent := claiming(t, s, 30, func(turn *msg.Turn) { turn.Place = "still"; turn.Topic = "#still" })
	reply(t, s, answer(begun(t, s, silent), silent, ""), 400)
	if diff := cmp.Diff([]store.Claim{{folder, 30, 30, 400}}, must(s.Claims(t.Context(), chat, "still", nil))(t)); diff != "" {
		t.Errorf("silence (-want +got):\n%s", diff)
	}
}

// delegatedBy stores a turn delegated by another, in the same place.
func delegatedBy(t *testing.T, s *store.Store, root *msg.Turn) *msg.Turn {
	t.Helper()
	return queued(t, s, func(turn *msg.Turn) {
		turn.Kind, turn.Folder, turn.Topic = msg.Delegated, folder+"/kid", "#d1"
		turn.ClaimsEngagement, turn.RootTurnID = root.ClaimsEngagement, root.ID
	})
}

func TestClaims_DelegatedTurn_CountsForItsRoot(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := claiming(t, s, 5)
	kid := delegatedBy(t, s, root)
	reply(t, s, answer(begun(t, s, root), root, ""), 300)
	want := []store.Claim{{folder, 5, 5, 0}, {folder, 5, 5, 300}}
	if diff := cmp.Diff(want, must(s.Claims(t.Context(), chat, "place", nil))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write(t, s, func(tx *store.Tx) error { return tx.CancelTurn(kid.ID, msg.ReasonCancelled, 350) })
	if got := must(s.Claims(t.Context(), chat, "place", nil))(t)[0].OverAt; got != 350 {
		t.Errorf("ended at %d", got)
	}
}

func TestDeliveryChanges_HaveTheirTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := claiming(t, s, 5)
	kid := delegatedBy(t, s, root)
	plain := queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Place = "#plain", "" })
	broadcast := queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Kind = "#cast", msg.Broadcast })
	var rows []int64
	for i, turn := range []*msg.Turn{root, kid, plain, broadcast} {
		reply(t, s, answer(begun(t, s, turn), turn, "hello"), 300)
		rows = append(rows, must(s.TurnReplies(t.Context(), turn.ID))(t)[0].ID)
		deliver(t, s, store.Delivery{MessageID: rows[i], State: msg.OutSent}, 400+int64(i))
	}
	alone := stored(t, s, &msg.Message{ChatJID: chat, Direction: msg.Out, Source: msg.SourceCommand})
	deliver(t, s, store.Delivery{MessageID: alone.ID, State: msg.OutFailed}, 500)
	trigger := must(s.Message(t.Context(), plain.TriggerMessageID))(t).ReceivedAt
	of := func(seq int64, id int64, at int64, d store.DeliveryChange) store.DeliveryChange {
		d.Seq, d.MessageID, d.At, d.ChatJID, d.State, d.Source = seq, id, at, chat, msg.OutSent, msg.SourceAgent
		return d
	}
	want := []store.DeliveryChange{
		of(1, rows[0], 400, store.DeliveryChange{Place: "place", Folder: folder, Claims: true, ClaimedAt: 5}),
		of(2, rows[1], 401, store.DeliveryChange{Place: "place", Folder: folder, Claims: true, ClaimedAt: 5}),
		of(3, rows[2], 402, store.DeliveryChange{Folder: folder, ClaimedAt: trigger}),
		of(4, rows[3], 403, store.DeliveryChange{Place: "place"}),
		{Seq: 5, MessageID: alone.ID, At: 500, ChatJID: chat, State: msg.OutFailed, Source: msg.SourceCommand},
	}
	if diff := cmp.Diff(want, must(s.DeliveryChanges(t.Context(), 0, 10))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	deliver(t, s, store.Delivery{MessageID: rows[1], State: msg.OutFailed}, 600)
	got := must(s.DeliveryChanges(t.Context(), 2, 3))(t)
	if len(got) != 3 || got[2].Seq != 5 {
		t.Errorf("a page: %+v", got)
	}
	if got = must(s.DeliveryChanges(t.Context(), 5, 3))(t); len(got) != 1 || got[0].MessageID != rows[1] || got[0].State != msg.OutFailed {
		t.Errorf("a change comes last: %+v", got)
	}
}
