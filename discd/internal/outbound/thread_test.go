package outbound

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"arizuko/discd/internal/discordapi"
	"arizuko/pkg/adapter"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	fake "arizuko/pkg/testkit/fakes/discord"
)

// forked makes a row for a thread at the channel's first message, which may be a fork's.
func (b *senderFixture) forked(t *testing.T, exists bool) (*msg.Message, adapter.Part) {
	t.Helper()
	thread := b.channel.Messages()[0].ID
	m, part := b.row(t, msg.Message{Content: "when then?", ThreadID: thread})
	known, err := b.Store.Fork(t.Context(), m.ChatJID, "#deploy#fix")
	if err == nil && exists && known == nil {
		fork := &msg.Fork{ChatJID: m.ChatJID, Topic: "#deploy#fix", ThreadID: thread, OwnThread: true, MessageID: m.ID}
		err = b.Store.Write(t.Context(), func(tx *store.Tx) error { return tx.PutFork(fork) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, part
}

func TestSend_ForkWithoutThread_CreatesItOnce(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.forked(t, true)
	b.send(t, m, part)
	if threads := b.channel.Threads(); len(threads) != 2 || threads[1].ID != m.ThreadID && threads[0].ID != m.ThreadID {
		t.Fatalf("threads: %+v", threads)
	}
	m, part = b.forked(t, true)
	b.send(t, m, part)
	sent := b.Sent()
	if len(sent) != 3 || sent[0].Route != fake.StartThreadFromMessage || sent[1].ChannelID != m.ThreadID || sent[2].ChannelID != m.ThreadID {
		t.Errorf("sent: %+v", sent)
	}
}

// A crash between the thread and its first message, and calls whose answers are lost.
func TestSend_ForkWithoutThread_Retries(t *testing.T) {
	for _, route := range []string{fake.StartThreadFromMessage, fake.CreateMessage} {
		b := newSenderFixture(t)
		m, part := b.forked(t, true)
		b.InjectFault(fake.Fault{Route: route, Status: http.StatusBadGateway, After: true})
		for range 3 {
			if _, err := b.Send(t.Context(), m, part); err == nil {
				break
			}
		}
		if threads := b.channel.Threads(); len(threads) != 2 || b.made() != 1 {
			t.Errorf("%s: %d threads, %d messages", route, len(threads), b.made())
		}
	}
}

func TestSend_UnknownThread_NotCreated(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.forked(t, false)
	var failure *adapter.Failure
	if _, err := b.Send(t.Context(), m, part); !errors.As(err, &failure) || failure.Class != msg.Permanent || !discordapi.RefusedFor(err, unknownChannel) {
		t.Errorf("a thread of no fork: %v", err)
	}
	if threads := b.channel.Threads(); len(threads) != 1 {
		t.Errorf("%d threads", len(threads))
	}
}

func TestFind_ThreadNotCreated_FindsNothing(t *testing.T) {
	b := newSenderFixture(t)
	m, part := b.forked(t, true)
	b.time = b.time.Add(nonceLifetime + time.Minute)
	b.find(t, m, part, "", 0)
}
