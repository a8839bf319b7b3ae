package outbound

import (
	"errors"
	"log/slog"
	"testing"

	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

func TestSend_Poll_KeepsItsIDAndEndsOnce(t *testing.T) {
	s := newFixture()
	base, err := s.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	st := storetest.Open(t)
	p := &Sender{API: telegramapi.NewClient(base, s.Token(), adapter.NewCallClient()), Store: st, Log: slog.New(slog.DiscardHandler)}
	row := &msg.Message{ChatJID: telegramapi.JID(s.dm.ChatID), Direction: msg.Out, Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`}
	if err := st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err }); err != nil {
		t.Fatal(err)
	}
	send := func(m *msg.Message) (string, error) {
		t.Helper()
		parts, err := p.Cut(m)
		if err != nil {
			t.Fatal(err)
		}
		return p.Send(t.Context(), m, parts[0])
	}
	id, err := send(row)
	sent := s.Sent()
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	poll := sent[len(sent)-1].Messages[0].Poll
	if found, err := st.MessageByPollRef(t.Context(), "teled", poll.ID); err != nil || found == nil || found.ID != row.ID {
		t.Errorf("poll %s: %+v, %v", poll.ID, found, err)
	}
	end := &msg.Message{ChatJID: row.ChatJID, Kind: msg.KindPoll, TargetID: id, Content: row.Content}
	for range 2 {
		if id, err := send(end); id != "" || err != nil {
			t.Errorf("the end: %q, %v", id, err)
		}
	}
	end.TargetID = "9999"
	if _, err := send(end); err != nil {
		t.Errorf("the end of a deleted poll: %v", err)
	}

	s.InjectFault(fake.Fault{Method: "sendPoll", Status: 400, Description: "Bad Request: non-anonymous polls can't be sent to channel chats"})
	var remark *adapter.Remark
	if id, err := send(row); id == "" || !errors.As(err, &remark) {
		t.Errorf("into a channel: %q, %v", id, err)
	}
}
