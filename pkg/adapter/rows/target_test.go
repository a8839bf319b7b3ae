package rows_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestTarget_OwnMessage_HasItsPartsAndEarlierEdits(t *testing.T) {
	s := storetest.Open(t)
	out := func(kind msg.Kind, about int64, content string, ids ...string) *msg.Message {
		m := storetest.Stored(t, s, &msg.Message{
			ChatJID: storetest.Chat, Direction: msg.Out, OutState: msg.OutQueued, Kind: kind, Content: content, DerivedFrom: about, Timestamp: 1, ReceivedAt: 1,
		})
		storetest.Write(t, s, func(tx *store.Tx) error {
			if err := tx.ClaimOutbound(m.ID, len(ids), 1); err != nil {
				return err
			}
			for i, id := range ids {
				if err := tx.PutDelivery(store.Delivery{MessageID: m.ID, Part: i, State: msg.OutSent, PlatformID: id}, 1); err != nil {
					return err
				}
			}
			return tx.SettleOutbound(m.ID, msg.OutSent, ids[0])
		})
		return m
	}
	first := out(msg.KindFile, 0, "one two", "1", "2")
	out(msg.KindReaction, first.ID, "👍", "")
	out(msg.KindEdit, first.ID, "three", "", "3")
	last := out(msg.KindEdit, first.ID, "four", "")
	question := storetest.Inbound(t, s, storetest.Chat, "hello")
	for name, tt := range map[string]struct {
		row  *msg.Message
		want *msg.Target
	}{
		"an edit": {last, &msg.Target{
			Kind: msg.KindFile, Parts: []msg.SentPart{{PlatformID: "1", Sent: true}, {PlatformID: "2", Sent: true}},
			Edits: []msg.SentEdit{{Content: "three", Parts: []msg.SentPart{{Sent: true}, {PlatformID: "3", Sent: true}}}},
		}},
		"no own message":        {&msg.Message{ID: 99, TargetID: "5"}, nil},
		"of an inbound message": {&msg.Message{ID: 99, DerivedFrom: question.ID}, nil},
		"of a row that is gone": {&msg.Message{ID: 99, DerivedFrom: 98}, nil},
	} {
		got, err := rows.Target(t.Context(), s.Reader, tt.row)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
