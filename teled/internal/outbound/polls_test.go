package outbound

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/telegram"
	"arizuko/teled/internal/telegramapi"
)

func TestSend_Poll_KeepsItsIDAndEndsOnce(t *testing.T) {
	s, p := startSender(t)
	st := p.Store
	row := &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Direction: msg.Out, Kind: msg.KindPoll, Content: `{"question":"Lunch?","options":["yes","no"]}`}
	if err := st.Write(t.Context(), func(tx *store.Tx) error { _, _, err := tx.PutMessage(row); return err }); err != nil {
		t.Fatal(err)
	}
	send := func(m *msg.Message) (string, error) { t.Helper(); return sendAll(t, p, m) }
	id, err := send(row)
	sent := s.Sent()
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	poll := sent[len(sent)-1].Messages[0].Poll
	if found, err := rows.MessageByPollRef(t.Context(), st.Reader, "teled", poll.ID); err != nil || found == nil || found.ID != row.ID {
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

// Telegram closes a poll by itself that is open for a short time, and shows how much is left.
func TestSend_PollWithAnEnd_IsClosedByTelegramIfSoon(t *testing.T) {
	s, p := startSender(t)
	now := time.Now()
	p.Now = func() time.Time { return now }
	row := func(in time.Duration) *msg.Message {
		poll := &msg.Poll{Question: "Lunch?", Options: []string{"yes", "no"}, ClosesAt: now.Add(in).UnixMilli()}
		return &msg.Message{ChatJID: telegramapi.JID("telegram", s.dm.ChatID), Kind: msg.KindPoll, Content: poll.JSON()}
	}
	for in, closes := range map[time.Duration]bool{time.Second: false, time.Minute: true, 9 * time.Minute: true, time.Hour: false} {
		if id, err := sendAll(t, p, row(in)); id == "" || err != nil {
			t.Errorf("%v: %q, %v", in, id, err)
		}
		if got := s.last().Params["close_date"]; (got != "") != closes || closes && got != strconv.FormatInt(now.Add(in).Unix(), 10) {
			t.Errorf("%v: close_date %q", in, got)
		}
	}
	s.InjectFault(fake.Fault{Method: "sendPoll", Status: 400, Description: "Bad Request: POLL_OPEN_PERIOD_INVALID"})
	_, err := sendAll(t, p, row(time.Minute))
	wantRemark(t, err, "does not close by itself")
	if last := s.last(); last.Params["close_date"] != "" {
		t.Errorf("%+v", last.Params)
	}
}
