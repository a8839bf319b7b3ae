package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// ids of the rows that fill stores.
type ids struct {
	original, derived, answer int64
	command, reply            int64
	unasked                   int64
}

// fill stores a message with a prefix and its answer, a command and its reply,
// and an outbound row that answers none.
func fill(t *testing.T, st *store.Store) (i ids) {
	t.Helper()
	put := func(tx *store.Tx, m msg.Message) int64 {
		m.ChatJID, m.Timestamp, m.ReceivedAt = "telegram:1", 1, 2
		if _, _, err := tx.PutMessage(&m); err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	out := msg.Message{Direction: msg.Out, OutState: msg.OutQueued}
	run := &msg.Run{Folder: "main", ChatJID: "telegram:1", Runtime: "process", StartedAt: 6}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Surface: "telegram-dm", CreatedAt: 5}
	for _, step := range []func(*store.Tx) error{
		func(tx *store.Tx) error {
			i.original = put(tx, msg.Message{PlatformID: "p1", Direction: msg.In, Content: "@eng hi"})
			i.derived = put(tx, msg.Message{Direction: msg.In, Content: "hi", DerivedFrom: i.original})
			turn.TriggerMessageID = i.derived
			if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
				return err
			}
			if err := tx.Decide(i.original, store.Decision{Disposition: msg.Prefix, Reason: msg.ReasonPrefixGroup}, 5); err != nil {
				return err
			}
			return tx.Decide(i.derived, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonPrefixGroup, RoutedTo: "main", TurnID: turn.ID}, 5)
		},
		func(tx *store.Tx) error { return gatedtest.StartRun(tx, run, turn.ID) },
		func(tx *store.Tx) error {
			return gatedtest.AnswerTurn(tx, gatedtest.Reply{RunID: run.ID, TurnID: turn.ID, Text: "hello", Final: true}, 9)
		},
		func(tx *store.Tx) error {
			i.command = put(tx, msg.Message{PlatformID: "p2", Direction: msg.In, Content: "/ping"})
			pong := out
			pong.ReplyToID, pong.Source = "p2", msg.SourceCommand
			i.reply = put(tx, pong)
			i.unasked = put(tx, out)
			return tx.Decide(i.command, store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand}, 5)
		},
	} {
		storetest.Write(t, st, step)
	}
	replies, err := factrows.TurnReplies(t.Context(), st.Reader, turn.ID)
	if err != nil || len(replies) != 1 {
		t.Fatal(replies, err)
	}
	i.answer = replies[0].ID
	storetest.Write(t, st, func(tx *store.Tx) error { return tx.ClaimOutbound(i.answer, 2, 11) })
	return i
}

// shape is which rows, turns, runs and parts a path has.
func shape(p *Path) string {
	var all []string
	for _, m := range p.Rows {
		all = append(all, fmt.Sprintf("message %d", m.ID))
	}
	for _, t := range p.Turns {
		all = append(all, fmt.Sprintf("turn %d of %v", t.ID, idsOf(t.Batch)))
		for _, r := range t.Runs {
			all = append(all, fmt.Sprintf("run %d", r.ID))
		}
		for _, r := range t.Replies {
			all = append(all, fmt.Sprintf("answer %d in %d parts", r.ID, len(r.Parts)))
		}
	}
	for _, r := range p.Replies {
		all = append(all, fmt.Sprintf("reply %d", r.ID))
	}
	return strings.Join(all, ", ")
}

func TestRead(t *testing.T) {
	st := storetest.Open(t)
	i := fill(t, st)
	whole := fmt.Sprintf("message %d, message %d, turn 1 of [%d], run 1, answer %d in 2 parts", i.original, i.derived, i.derived, i.answer)
	for _, tt := range []struct {
		name string
		id   int64
		want string
	}{
		{"a message", i.original, whole},
		{"the row derived from it", i.derived, whole},
		{"its answer, backwards", i.answer, whole},
		{"a command", i.command, fmt.Sprintf("message %d, reply %d", i.command, i.reply)},
		{"its reply, backwards", i.reply, fmt.Sprintf("message %d, reply %d", i.command, i.reply)},
		{"an outbound row that answers none", i.unasked, fmt.Sprintf("reply %d", i.unasked)},
	} {
		p, err := Read(t.Context(), st.Reader, tt.id)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if p.Asked.ID != tt.id {
			t.Errorf("%s: asked %d", tt.name, p.Asked.ID)
		}
		if diff := cmp.Diff(tt.want, shape(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for _, id := range []int64{-1, 0, 999} {
		if _, err := Read(t.Context(), st.Reader, id); err == nil || !strings.Contains(err.Error(), "no message") {
			t.Errorf("id %d: %v", id, err)
		}
	}
}

func TestRead_DelegatedTurn_IsFollowed(t *testing.T) {
	st := storetest.Open(t)
	asked := msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 2}
	delegated := msg.Message{ChatJID: "group:main/eng", Direction: msg.In, Content: "build it", Timestamp: 6, ReceivedAt: 6}
	root := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: "telegram:1", Surface: "telegram-dm", CreatedAt: 5}
	child := &msg.Turn{Kind: msg.Delegated, Folder: "main/eng", ChatJID: "telegram:1", Surface: "telegram-dm", Depth: 1, CreatedAt: 7}
	put := func(m *msg.Message, turn *msg.Turn) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			turn.TriggerMessageID = m.ID
			if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
				return err
			}
			return tx.Decide(m.ID, store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID}, 8)
		}
	}
	storetest.Write(t, st, put(&asked, root))
	delegated.ForwardedFrom = &msg.ReturnAddress{Kind: msg.Delegation, TurnID: root.ID, RootTurnID: root.ID, Depth: 1}
	child.RootTurnID = root.ID
	storetest.Write(t, st, put(&delegated, child))
	p, err := Read(t.Context(), st.Reader, asked.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("message %d, message %d, turn %d of [%d], turn %d of [%d]",
		asked.ID, delegated.ID, root.ID, asked.ID, child.ID, delegated.ID)
	if diff := cmp.Diff(want, shape(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSteps_AreInTheOrderOfTheirTimes(t *testing.T) {
	for _, p := range []*Path{answered(), failing(), prefixed(), hostile()} {
		all := Steps(p)
		if len(all) == 0 || !slices.IsSortedFunc(all, func(a, b Step) int { return int(a.At - b.At) }) {
			t.Errorf("steps %+v", all)
		}
	}
}

func TestRead_ParkedRow_HasItsRequest(t *testing.T) {
	st := storetest.Open(t)
	m := &msg.Message{ChatJID: "telegram:1", Direction: msg.In, Content: "hi", Timestamp: 1, ReceivedAt: 2}
	storetest.Write(t, st, func(tx *store.Tx) error {
		if _, _, err := tx.PutMessage(m); err != nil {
			return err
		}
		if err := storetest.PutRequest(tx, &factrows.Request{Code: "ABCD-1234", ChatJID: m.ChatJID, Kind: msg.ChatDM, CreatedAt: 3}); err != nil {
			return err
		}
		return tx.Decide(m.ID, store.Decision{Disposition: msg.Onboarding, Reason: msg.ReasonAwaitingApproval}, 4)
	})
	p, err := Read(t.Context(), st.Reader, m.ID)
	if err != nil || p.Request == nil || p.Request.Code != "ABCD-1234" {
		t.Errorf("the request is %+v, %v", p.Request, err)
	}
}
