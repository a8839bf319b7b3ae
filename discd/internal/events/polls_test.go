package events

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/prometheus/client_golang/prometheus"

	"arizuko/pkg/adapter"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// A vote whose poll is being sent holds up no event, and is stored when the poll's id is known.
func TestReceive_VoteBeforeItsPollIsKnown_WaitsBesideEvents(t *testing.T) {
	st := storetest.OpenAt(t, storetest.Path(t), nil)
	l := NewListener(nil, st, "token", adapter.Network{})
	l.decoder.me.Platform = "discord"
	s := adapter.New(nil, adapter.Options{
		Platform: "discord", Daemon: "discd", Listener: l, Store: st, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Now: time.Now,
		Heartbeat: daemon.NewHeartbeat("discd", "", slog.New(slog.DiscardHandler), func(context.Context, rows.Daemon) error { return nil }),
	})
	write := func(do func(tx *store.Tx) error) {
		t.Helper()
		if err := st.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	receive := func(kind, raw string) {
		t.Helper()
		if err := l.receive(t.Context(), s, &discordgo.Event{Type: kind, RawData: []byte(raw)}); err != nil {
			t.Fatal(err)
		}
	}
	poll := &msg.Message{ChatJID: "discord:dm-5", Direction: msg.Out, Kind: msg.KindPoll, Content: "{}", OutState: msg.OutQueued}
	write(func(tx *store.Tx) error { _, _, err := tx.PutMessage(poll); return err })
	write(func(tx *store.Tx) error { return tx.ClaimOutbound(poll.ID, 1, 1) })
	receive("MESSAGE_POLL_VOTE_ADD", `{"user_id":"7","channel_id":"5","message_id":"61","answer_id":2}`)
	receive("MESSAGE_CREATE", `{"id":"62","channel_id":"5","content":"hi","author":{"id":"7","username":"alice"}}`)
	if m, err := st.Message(t.Context(), poll.ID+1); err != nil || m == nil || m.Content != "hi" || !l.decoder.ballots.Waiting() {
		t.Fatalf("stored %+v, %v while the vote waits", m, err)
	}

	write(func(tx *store.Tx) error { return tx.SettleOutbound(poll.ID, msg.OutSent, "61") })
	if _, err := l.decoder.ballots.Retry(t.Context(), s); err != nil || l.decoder.ballots.Waiting() {
		t.Fatalf("the vote waits on, %v", err)
	}
	m, err := st.Message(t.Context(), poll.ID+2)
	if err != nil || m == nil || m.Verb != msg.VerbVote || m.TargetID != "61" || m.Sender != "discord:7" || m.Content != `{"options":[2],"change":"add"}` {
		t.Errorf("the vote is stored as %+v, %v", m, err)
	}
}
