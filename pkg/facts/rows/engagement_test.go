package rows_test

import (
	"testing"

	"arizuko/gated/gatedtest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestEngagement_RoundTrip(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	nothing := msg.Engagement{ChatJID: storetest.Chat, Place: "33"}
	if got := storetest.Must(rows.Engagement(t.Context(), s.Reader, storetest.Chat, "33"))(t).Engagement; got != nothing {
		t.Errorf("nothing stored: %+v", got)
	}
	thread := msg.Engagement{ChatJID: storetest.Chat, Place: "33", Folder: storetest.Folder, Until: 200, At: 100, LastReply: 7, EndedAt: 50}
	room := msg.Engagement{ChatJID: storetest.Chat, Folder: "ops", Until: 300, At: 250}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, e := range []msg.Engagement{thread, room, {ChatJID: "slack:C1", Folder: "ops", Until: 1}} {
			if err := rows.PutEngagement(tx, e); err != nil {
				return err
			}
		}
		return nil
	})
	if got := storetest.Must(rows.Engagement(t.Context(), s.Reader, storetest.Chat, "33"))(t).Engagement; got != thread {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]*msg.Engagement{&room, &thread}, storetest.Must(rows.Engagements(t.Context(), s.Reader, storetest.Chat))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	over := msg.Engagement{ChatJID: storetest.Chat, Place: "33", LastReply: 7, EndedAt: 90}
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.PutEngagement(tx, over) })
	if got := storetest.Must(rows.Engagement(t.Context(), s.Reader, storetest.Chat, "33"))(t).Engagement; got != over {
		t.Errorf("ended: %+v", got)
	}
	if got := storetest.Must(rows.Engagements(t.Context(), s.Reader, "slack:C2"))(t); len(got) != 0 {
		t.Errorf("of another chat: %+v", got)
	}
}

// claiming stores a turn that claims its place, with a trigger that arrived at a time.
func claiming(t *testing.T, s *store.Store, at int64, set ...func(*msg.Turn)) *msg.Turn {
	t.Helper()
	trigger := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbMention, ReceivedAt: at})
	return gatedtest.Queued(t, s, append([]func(*msg.Turn){func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ClaimsEngagement = trigger.ID, true
	}}, set...)...)
}

// delegatedBy stores a turn delegated by another, in the same place.
func delegatedBy(t *testing.T, s *store.Store, root *msg.Turn) *msg.Turn {
	t.Helper()
	return gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.Kind, turn.Folder, turn.Topic = msg.Delegated, storetest.Folder+"/kid", "#d1"
		turn.ClaimsEngagement, turn.RootTurnID = root.ClaimsEngagement, root.ID
	})
}

func TestDeliveryChanges_HaveTheirTurn(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := claiming(t, s, 5)
	kid := delegatedBy(t, s, root)
	plain := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Place = "#plain", "" })
	broadcast := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Kind = "#cast", msg.Broadcast })
	var sent []int64
	for i, turn := range []*msg.Turn{root, kid, plain, broadcast} {
		gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, turn), turn, "hello"), 300)
		sent = append(sent, storetest.Must(rows.TurnReplies(t.Context(), s.Reader, turn.ID))(t)[0].ID)
		storetest.Deliver(t, s, store.Delivery{MessageID: sent[i], State: msg.OutSent}, 400+int64(i))
	}
	alone := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Source: msg.SourceCommand})
	storetest.Deliver(t, s, store.Delivery{MessageID: alone.ID, State: msg.OutFailed}, 500)
	trigger := storetest.Must(s.Message(t.Context(), plain.TriggerMessageID))(t).ReceivedAt
	of := func(seq int64, id int64, at int64, d rows.DeliveryChange) rows.DeliveryChange {
		d.Seq, d.MessageID, d.At, d.ChatJID, d.State, d.Source = seq, id, at, storetest.Chat, msg.OutSent, msg.SourceAgent
		return d
	}
	want := []rows.DeliveryChange{
		of(1, sent[0], 400, rows.DeliveryChange{Place: "place", Folder: storetest.Folder, Claims: true, ClaimedAt: 5}),
		of(2, sent[1], 401, rows.DeliveryChange{Place: "place", Folder: storetest.Folder, Claims: true, ClaimedAt: 5}),
		of(3, sent[2], 402, rows.DeliveryChange{Folder: storetest.Folder, ClaimedAt: trigger}),
		of(4, sent[3], 403, rows.DeliveryChange{Place: "place"}),
		{Seq: 5, MessageID: alone.ID, At: 500, ChatJID: storetest.Chat, State: msg.OutFailed, Source: msg.SourceCommand},
	}
	if diff := cmp.Diff(want, storetest.Must(rows.DeliveryChanges(t.Context(), s.Reader, 0, 10))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	storetest.Deliver(t, s, store.Delivery{MessageID: sent[1], State: msg.OutFailed}, 600)
	got := storetest.Must(rows.DeliveryChanges(t.Context(), s.Reader, 2, 3))(t)
	if len(got) != 3 || got[2].Seq != 5 {
		t.Errorf("a page: %+v", got)
	}
	if got = storetest.Must(rows.DeliveryChanges(t.Context(), s.Reader, 5, 3))(t); len(got) != 1 || got[0].MessageID != sent[1] || got[0].State != msg.OutFailed {
		t.Errorf("a change comes last: %+v", got)
	}
}
