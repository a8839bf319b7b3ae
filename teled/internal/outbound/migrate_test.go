package outbound

import (
	"errors"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/teled/internal/telegramapi"
)

// Nothing but the refusal tells the sender where the group is.
func TestSend_GroupBecameSupergroup_MovesTheRow(t *testing.T) {
	s, p := startSender(t)
	st := p.Store
	alice := s.User("Alice", "alice")
	group := s.Group("Team", alice)
	group.AddBot(alice)
	super := group.Migrate(alice)

	from, to := telegramapi.JID("telegram", group.ChatID), telegramapi.JID("telegram", super.ChatID)
	row := &msg.Message{ChatJID: from, Direction: msg.Out, OutState: msg.OutQueued, Content: "hello"}
	if err := st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err }); err != nil {
		t.Fatal(err)
	}
	send := func(m *msg.Message) error {
		t.Helper()
		parts, err := p.Cut(m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Send(t.Context(), m, parts[0])
		return err
	}
	for range 2 { // a second send under way finds the chat moved
		var f *adapter.Failure
		if err := send(row); !errors.As(err, &f) || f.Class != msg.Transient {
			t.Errorf("to the group: %v", err)
		}
	}
	moved, err := rows.NextOutbound(t.Context(), st.Reader, store.Lane{ChatJID: to})
	if err != nil || moved == nil || moved.ID != row.ID {
		t.Fatalf("the row: %+v, %v", moved, err)
	}
	if err := send(moved); err != nil {
		t.Errorf("to the supergroup: %v", err)
	}
}
