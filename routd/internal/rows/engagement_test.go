package rows_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/routd/internal/rows"
)

// claiming stores a turn that claims its place, with a trigger that arrived at a time.
func claiming(t *testing.T, s *store.Store, at int64, set ...func(*msg.Turn)) *msg.Turn {
	t.Helper()
	trigger := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: msg.VerbMention, ReceivedAt: at})
	return gatedtest.Queued(t, s, append([]func(*msg.Turn){func(turn *msg.Turn) {
		turn.TriggerMessageID, turn.ClaimsEngagement = trigger.ID, true
	}}, set...)...)
}

func TestClaims_EndWithTheLastDelivery(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	turn := claiming(t, s, 5)
	is := func(when string, overAt int64) {
		t.Helper()
		want := []rows.Claim{{Folder: storetest.Folder, At: 5, LastAt: 5, OverAt: overAt}}
		if diff := cmp.Diff(want, storetest.Must(rows.Claims(t.Context(), s.Reader, storetest.Chat, "place", nil))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	is("queued", 0)
	run := gatedtest.Begun(t, s, turn)
	is("running", 0)
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.EndRun(tx, run.ID, "", 290) })
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.RequeueTurn(tx, turn.ID, gatedtest.Requeue{Attempt: true}) })
	is("in backoff", 0)
	turn.Topic = "#again"
	gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, turn), turn, "two parts"), 400)
	is("answered, not delivered", 0)
	out := storetest.Must(factrows.TurnReplies(t.Context(), s.Reader, turn.ID))(t)[0].ID
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(out, 2, 410) })
	storetest.Deliver(t, s, store.Delivery{MessageID: out, State: msg.OutSent}, 420)
	is("the first part delivered", 0)
	storetest.Deliver(t, s, store.Delivery{MessageID: out, Part: 1, State: msg.OutFailed, ErrorClass: msg.Permanent}, 430)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.SettleOutbound(out, msg.OutFailed, "") })
	is("the last part failed", 430)
	notice := &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Source: msg.SourceNotice, TurnID: turn.ID, OutState: msg.OutQueued}
	storetest.Stored(t, s, notice)
	is("a notice is on its way", 430)
	storetest.Write(t, s, func(tx *store.Tx) error { return tx.ClaimOutbound(notice.ID, 1, 440) })
	storetest.Deliver(t, s, store.Delivery{MessageID: notice.ID, State: msg.OutSent}, 450)
	is("a notice is delivered", 430)
	storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Source: msg.SourceTool, TurnID: turn.ID, OutState: msg.OutQueued})
	is("a tool has posted more", 0)
}

func TestClaims_ReturnsTheNewestOfAPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	claiming(t, s, 1)
	var want []rows.Claim
	for at := int64(2); at < 34; at++ {
		claiming(t, s, at)
		want = append([]rows.Claim{{Folder: storetest.Folder, At: at, LastAt: at}}, want...)
	}
	claiming(t, s, 40, func(turn *msg.Turn) { turn.Place = "" })
	claiming(t, s, 41, func(turn *msg.Turn) { turn.ChatJID = "slack:C1" })
	claiming(t, s, 42, func(turn *msg.Turn) { turn.ClaimsEngagement = false })
	if diff := cmp.Diff(want, storetest.Must(rows.Claims(t.Context(), s.Reader, storetest.Chat, "place", nil))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	silent := claiming(t, s, 30, func(turn *msg.Turn) { turn.Place = "still"; turn.Topic = "#still" })
	gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, silent), silent, ""), 400)
	if diff := cmp.Diff([]rows.Claim{{storetest.Folder, 30, 30, 400}}, storetest.Must(rows.Claims(t.Context(), s.Reader, storetest.Chat, "still", nil))(t)); diff != "" {
		t.Errorf("silence (-want +got):\n%s", diff)
	}
}

// delegatedBy stores a turn delegated by another, in the same place.
func delegatedBy(t *testing.T, s *store.Store, root *msg.Turn) *msg.Turn {
	t.Helper()
	return gatedtest.Queued(t, s, func(turn *msg.Turn) {
		turn.Kind, turn.Folder, turn.Topic = msg.Delegated, storetest.Folder+"/kid", "#d1"
		turn.ClaimsEngagement, turn.RootTurnID = root.ClaimsEngagement, root.ID
	})
}

func TestClaims_DelegatedTurn_CountsForItsRoot(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	root := claiming(t, s, 5)
	kid := delegatedBy(t, s, root)
	gatedtest.StoreReply(t, s, gatedtest.Answer(gatedtest.Begun(t, s, root), root, ""), 300)
	want := []rows.Claim{{storetest.Folder, 5, 5, 0}, {storetest.Folder, 5, 5, 300}}
	if diff := cmp.Diff(want, storetest.Must(rows.Claims(t.Context(), s.Reader, storetest.Chat, "place", nil))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, kid.ID, msg.ReasonCancelled, 350) })
	if got := storetest.Must(rows.Claims(t.Context(), s.Reader, storetest.Chat, "place", nil))(t)[0].OverAt; got != 350 {
		t.Errorf("ended at %d", got)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	eng := msg.Group{Folder: "acme/eng", Name: "Eng", CreatedAt: 5, Config: json.RawMessage(`{"observe":"none"}`)}
	acme := msg.Group{Folder: "acme", CreatedAt: 6, Config: json.RawMessage(`{}`)}
	put := func(g msg.Group) (fresh bool) {
		t.Helper()
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			fresh, err = tx.PutGroup(&g)
			return err
		})
		return fresh
	}
	if !put(eng) || !put(acme) {
		t.Error("new groups are not fresh")
	}
	if put(msg.Group{Folder: "acme", Name: "other", Config: json.RawMessage(`{}`)}) {
		t.Error("registered twice")
	}
	groups, err := s.Groups(t.Context())
	if diff := cmp.Diff([]msg.Group{acme, eng}, groups); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}

	changed := msg.Group{Folder: "acme", Name: "Acme", Config: json.RawMessage(`{"model":"x"}`)}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for folder, want := range map[string]bool{"acme/eng": true, "absent": false} {
			if found, err := rows.DeleteGroup(tx, folder); found != want || err != nil {
				t.Errorf("delete %s: %v %v", folder, found, err)
			}
		}
		if found, err := rows.UpdateGroup(tx, &changed); !found || err != nil {
			t.Errorf("update: %v %v", found, err)
		}
		found, err := rows.UpdateGroup(tx, &msg.Group{Folder: "absent", Config: json.RawMessage(`{}`)})
		if found {
			t.Error("updated a group that does not exist")
		}
		return err
	})
	changed.CreatedAt = acme.CreatedAt
	got, err := s.Group(t.Context(), "acme")
	if diff := cmp.Diff(&changed, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := s.Group(t.Context(), "acme/eng"); got != nil || err != nil {
		t.Errorf("deleted group: %+v %v", got, err)
	}
}
