package adapter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/daemon"
	"arizuko/pkg/daemon/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// post is what an adapter reads.
func post(id, content string) *msg.Message {
	return &msg.Message{ChatJID: room, PlatformID: id, Sender: "irc:ann", Content: content}
}

func TestReceive_FillsInAndStores(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		now := time.Now().UnixMilli()
		late := post("2", "late")
		late.Timestamp, late.Direction, late.Source, late.ReceivedAt = 7, msg.Out, "another", 9
		in := Inbound{
			Messages: []*msg.Message{post("1", "hi"), late},
			Chats:    []msg.Chat{{JID: room, Kind: msg.ChatChannel, Title: "Room", StickyGroup: "not set by platforms"}},
			Cursor:   &Cursor{"offset", "2"},
		}
		shell := r.shell()
		if err := shell.Receive(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for i, want := range []*msg.Message{
			{ID: 1, ChatJID: room, PlatformID: "1", Content: "hi", Timestamp: now},
			{ID: 2, ChatJID: room, PlatformID: "2", Content: "late", Timestamp: 7},
		} {
			want.Direction, want.Kind, want.Verb, want.Sender, want.Source, want.ReceivedAt =
				msg.In, msg.KindMessage, msg.VerbMessage, "irc:ann", "ircd", now
			if diff := cmp.Diff(want, r.row(in.Messages[i].ID)); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		}
		if chat, err := r.store.Chat(t.Context(), room); err != nil || chat.Kind != msg.ChatChannel || chat.Title != "Room" || chat.StickyGroup != "" {
			t.Errorf("chat %+v, %v", chat, err)
		}
		r.expectCursor("2")
	})
}

func (r *fixture) expectCursor(want string) {
	r.t.Helper()
	if got, err := r.store.DaemonCursor(r.t.Context(), "ircd", "offset"); got != want || err != nil {
		r.t.Errorf("cursor %q, %v, want %q", got, err, want)
	}
}

func TestReceive_Duplicate_KeepsRow(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		shell := r.shell()
		first := post("1", "hi")
		if err := shell.Receive(t.Context(), Inbound{Messages: []*msg.Message{first}, Cursor: &Cursor{"offset", "1"}}); err != nil {
			t.Fatal(err)
		}
		before := r.row(first.ID)
		pass(time.Hour)
		again, fresh := post("1", "changed"), post("2", "fresh")
		if err := shell.Receive(t.Context(), Inbound{Messages: []*msg.Message{again, fresh, post("2", "twice")}}); err != nil {
			t.Fatal(err)
		}
		if again.ID != first.ID || fresh.ID == first.ID {
			t.Errorf("rows %d, %d, and at first %d", again.ID, fresh.ID, first.ID)
		}
		if diff := cmp.Diff(before, r.row(first.ID)); diff != "" {
			t.Errorf("changed (-was +is):\n%s", diff)
		}
		if last, err := r.store.LastMessageID(t.Context()); last != fresh.ID || err != nil {
			t.Errorf("last row %d, %v", last, err)
		}
		r.expectCursor("1")
	})
}

func TestReceive_KeepsPins(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		r.write(func(tx *store.Tx) error {
			return errors.Join(tx.PutChat(room, msg.ChatDM, "Old", 1), gatedtest.PinGroup(tx, room, "acme", 5), gatedtest.PinTopic(tx, room, "#deploy"))
		})
		err := r.shell().Receive(t.Context(), Inbound{Chats: []msg.Chat{{JID: room, Kind: msg.ChatGroup, Title: "New"}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.store.Chat(t.Context(), room)
		want := &msg.Chat{JID: room, Kind: msg.ChatGroup, Title: "New", StickyGroup: "acme", StickyTopic: "#deploy", StickyAt: 5}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestReceive_WriteFails_StoresNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		bad := post("2", "of no chat")
		bad.ChatJID = "nowhere"
		err := r.shell().Receive(t.Context(), Inbound{
			Messages: []*msg.Message{post("1", "good"), bad, post("3", "good")},
			Chats:    []msg.Chat{{JID: room, Kind: msg.ChatGroup}},
			Cursor:   &Cursor{"offset", "3"},
		})
		if !errors.Is(err, store.ErrRefused) {
			t.Errorf("error %v", err)
		}
		last, lastErr := r.store.LastMessageID(t.Context())
		chat, chatErr := r.store.Chat(t.Context(), room)
		if last != 0 || chat != nil || lastErr != nil || chatErr != nil {
			t.Errorf("stored up to row %d and chat %+v (%v, %v)", last, chat, lastErr, chatErr)
		}
		r.expectCursor("")
	})
}

func TestReceive_NotifiesHeartbeat(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		beats := make(chan rows.Daemon, 10)
		heartbeat := daemon.NewHeartbeat("ircd", "v1", discard, func(_ context.Context, row rows.Daemon) error {
			beats <- row
			return nil
		})
		pass(time.Hour)
		if err := r.shell(func(o *Options) { o.Heartbeat = heartbeat }).Receive(t.Context(), Inbound{}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().UnixMilli()
		pass(time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- heartbeat.Run(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if row := <-beats; row.LastEventAt != at {
			t.Errorf("last event at %d, want %d", row.LastEventAt, at)
		}
	})
}

func TestReceive_FollowsThreadOfTarget(t *testing.T) {
	inBubble(t, func(t *testing.T, r *fixture) {
		shell := r.shell()
		threaded, plain, reply := post("1", "hi"), post("2", "ho"), post("3", "hey")
		threaded.ThreadID, threaded.Topic = "7", "7"
		about := func(id, target, thread string) *msg.Message {
			m := post(id, "👍")
			m.Verb, m.TargetID, m.ThreadID, m.Topic = msg.VerbReaction, target, thread, thread
			return m
		}
		for name, tt := range map[string]struct {
			m    *msg.Message
			want string
		}{
			"in a thread":             {about("1:r", "1", ""), "7"},
			"in none":                 {about("2:r", "2", ""), ""},
			"where the platform says": {about("1:r2", "1", "8"), "8"},
			"of an unknown target":    {about("9:r", "9", ""), ""},
			"an answer":               {reply, ""},
		} {
			if err := shell.Receive(t.Context(), Inbound{Messages: []*msg.Message{threaded, plain, tt.m}}); err != nil {
				t.Fatal(err)
			}
			if got := r.row(tt.m.ID); got.ThreadID != tt.want || got.Topic != tt.want {
				t.Errorf("%s: thread %q, topic %q, want %q", name, got.ThreadID, got.Topic, tt.want)
			}
		}
	})
}
