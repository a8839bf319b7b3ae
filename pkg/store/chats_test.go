package store_test

import (
	"cmp"
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestChats(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const jid = "telegram:-5"
	if c := must(s.Chat(t.Context(), jid))(t); c != nil {
		t.Errorf("unknown chat: %+v", c)
	}
	steps := []struct {
		name string
		do   func(*store.Tx) error
		want msg.Chat
	}{
		{"known by its address", func(tx *store.Tx) error { return tx.EnsureChat(jid, 1) },
			msg.Chat{JID: jid, Kind: msg.ChatGroup}},
		{"written by an adapter", func(tx *store.Tx) error { return tx.PutChat(jid, msg.ChatChannel, "News", 2) },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News"}},
		{"seen again", func(tx *store.Tx) error { return tx.EnsureChat(jid, 3) },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News"}},
		{"pinned to a group", func(tx *store.Tx) error { return tx.PinGroup(jid, "acme/eng", 4) },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News", StickyGroup: "acme/eng", StickyAt: 4}},
		{"pinned to a topic", func(tx *store.Tx) error { return tx.PinTopic(jid, "#deploy") },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News", StickyGroup: "acme/eng", StickyTopic: "#deploy", StickyAt: 4}},
		{"renamed", func(tx *store.Tx) error { return tx.PutChat(jid, msg.ChatGroup, "Old news", 5) },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyGroup: "acme/eng", StickyTopic: "#deploy", StickyAt: 4}},
		{"group pin cleared", func(tx *store.Tx) error { return tx.PinGroup(jid, "", 6) },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyTopic: "#deploy", StickyAt: 6}},
		{"topic pin cleared", func(tx *store.Tx) error { return tx.PinTopic(jid, "") },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyAt: 6}},
	}
	for _, step := range steps {
		write(t, s, step.do)
		if diff := gocmp.Diff(&step.want, must(s.Chat(t.Context(), jid))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if platform := get[string](t, s, `SELECT platform FROM chats WHERE jid = ?`, jid); platform != "telegram" {
		t.Errorf("platform %q", platform)
	}
	if seen := get[int64](t, s, `SELECT last_seen_at FROM chats WHERE jid = ?`, jid); seen != 5 {
		t.Errorf("last seen at %d, want when the adapter last wrote it", seen)
	}
}

func TestPinGroup_PokesRoutd(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 1)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	write(t, s, func(tx *store.Tx) error { return tx.PinGroup(chat, folder, 1) })
	if got := receive(t, "the poke", pokes); got != "routd" {
		t.Errorf("poked %s", got)
	}
}

func TestThreadTopics(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	bind := func(chatJID, thread, topic string) {
		write(t, s, func(tx *store.Tx) error { return tx.BindThread(chatJID, thread, topic) })
	}
	bind(chat, "7", "#old")
	bind(chat, "7", "#deploy")
	bind("telegram:-2", "7", "#else")
	for _, tt := range []struct{ chat, thread, want string }{
		{chat, "7", "#deploy"}, {"telegram:-2", "7", "#else"}, {chat, "8", ""}, {chat, "", ""},
	} {
		if got := must(s.TopicOfThread(t.Context(), tt.chat, tt.thread))(t); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.chat, tt.thread, got, tt.want)
		}
	}
}

func TestDaemons(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	beat := func(d store.Daemon) {
		write(t, s, func(tx *store.Tx) error { return tx.Heartbeat(d) })
	}
	routd := store.Daemon{Name: "routd", Version: "1", StartedAt: 1, HeartbeatAt: 2, Connection: "connecting"}
	gated := store.Daemon{Name: "gated", Version: "1", StartedAt: 1, HeartbeatAt: 2, Connection: "connected"}
	beat(routd)
	beat(gated)
	routd = store.Daemon{Name: "routd", Version: "2", StartedAt: 3, HeartbeatAt: 4, Connection: "degraded", LastEventAt: 5, LastProbeAt: 6, Detail: "x"}
	beat(routd)
	if diff := gocmp.Diff([]store.Daemon{gated, routd}, must(s.Daemons(t.Context()))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecentThreads_OfChatSinceTime(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i, m := range []msg.Message{
		{ThreadID: "old", ReceivedAt: 100}, {ThreadID: "late", ReceivedAt: 100}, {ThreadID: "early", ReceivedAt: 200}, {ReceivedAt: 300},
		{ThreadID: "late", ReceivedAt: 300}, {ThreadID: "old", ReceivedAt: 300, Verb: msg.VerbReaction}, {ThreadID: "elsewhere", ReceivedAt: 300, ChatJID: "slack:C2"},
	} {
		m.PlatformID, m.Direction, m.ChatJID = fmt.Sprint(i), msg.In, cmp.Or(m.ChatJID, "slack:C1")
		write(t, s, func(tx *store.Tx) error { _, _, err := tx.PutMessage(&m); return err })
	}
	if diff := gocmp.Diff([]string{"early", "late"}, must(s.RecentThreads(t.Context(), "slack:C1", 200))(t)); diff != "" {
		t.Errorf("threads (-want +got):\n%s", diff)
	}
}
