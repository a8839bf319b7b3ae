package rows_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestChats(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const jid = "telegram:-5"
	if c := storetest.Must(s.Chat(t.Context(), jid))(t); c != nil {
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
		{"pinned to a group", func(tx *store.Tx) error { return rows.PinGroup(tx, jid, "acme/eng", 4) },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News", StickyGroup: "acme/eng", StickyAt: 4}},
		{"pinned to a topic", func(tx *store.Tx) error { return rows.PinTopic(tx, jid, "#deploy") },
			msg.Chat{JID: jid, Kind: msg.ChatChannel, Title: "News", StickyGroup: "acme/eng", StickyTopic: "#deploy", StickyAt: 4}},
		{"renamed", func(tx *store.Tx) error { return tx.PutChat(jid, msg.ChatGroup, "Old news", 5) },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyGroup: "acme/eng", StickyTopic: "#deploy", StickyAt: 4}},
		{"group pin cleared", func(tx *store.Tx) error { return rows.PinGroup(tx, jid, "", 6) },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyTopic: "#deploy", StickyAt: 6}},
		{"topic pin cleared", func(tx *store.Tx) error { return rows.PinTopic(tx, jid, "") },
			msg.Chat{JID: jid, Kind: msg.ChatGroup, Title: "Old news", StickyAt: 6}},
	}
	for _, step := range steps {
		storetest.Write(t, s, step.do)
		differ(t, step.name, storetest.Must(s.Chat(t.Context(), jid))(t), &step.want)
	}
	if platform := storetest.Value[string](t, s, `SELECT platform FROM chats WHERE jid = ?`, jid); platform != "telegram" {
		t.Errorf("platform %q", platform)
	}
	if seen := storetest.Value[int64](t, s, `SELECT last_seen_at FROM chats WHERE jid = ?`, jid); seen != 5 {
		t.Errorf("last seen at %d, want when the adapter last wrote it", seen)
	}
}

func TestPinGroup_PokesRoutd(t *testing.T) {
	t.Parallel()
	pokes := make(chan string, 1)
	s := storetest.OpenAt(t, storetest.Path(t), func(daemon string) { pokes <- daemon })
	storetest.Write(t, s, func(tx *store.Tx) error { return rows.PinGroup(tx, storetest.Chat, storetest.Folder, 1) })
	if got := storetest.Receive(t, "the poke", pokes); got != "routd" {
		t.Errorf("poked %s", got)
	}
}

func TestThreadTopics(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	bind := func(chatJID, thread, topic string) {
		storetest.Write(t, s, func(tx *store.Tx) error { return rows.BindThread(tx, chatJID, thread, topic) })
	}
	bind(storetest.Chat, "7", "#old")
	bind(storetest.Chat, "7", "#deploy")
	bind("telegram:-2", "7", "#else")
	for _, tt := range []struct{ chat, thread, want string }{
		{storetest.Chat, "7", "#deploy"}, {"telegram:-2", "7", "#else"}, {storetest.Chat, "8", ""}, {storetest.Chat, "", ""},
	} {
		if got := storetest.Must(factrows.TopicOfThread(t.Context(), s.Reader, tt.chat, tt.thread))(t); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.chat, tt.thread, got, tt.want)
		}
	}
}

func TestReadChatFacts_Rows_AreFound(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	facts := func(jid string) rows.ChatFacts {
		t.Helper()
		return storetest.Must(rows.ReadChatFacts(t.Context(), s.Reader, jid, map[string]bool{"x:named": true}))(t)
	}
	if diff := cmp.Diff(rows.ChatFacts{Operators: map[string]bool{"x:named": true}}, facts("telegram:none")); diff != "" {
		t.Error("of nothing", diff)
	}
	_, turn := working(t, s)
	asked(t, s, turn, permission(), 100)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(rows.PutOperatorCode(tx, &rows.OperatorCode{Hash: "h", By: "x:named", ExpiresAt: 9}, 1), rows.AddOperator(tx, "x:made", "h", 2),
			rows.PutOperatorCode(tx, &rows.OperatorCode{Hash: "open", By: "x:named"}, 1),
			tx.PutChat(storetest.Chat, msg.ChatDM, "Ada", 1),
			tx.Exec(`INSERT INTO stops (chat_jid, before_message, through_turn, created_at) VALUES (?, 5, 0, 1)`, storetest.Chat))
	})
	got := facts(storetest.Chat)
	if got.Chat == nil || got.Chat.Title != "Ada" || len(got.Stops) != 1 || !got.Asks || got.Code == nil || got.Code.Hash != "open" ||
		len(got.Operators) != 2 || !got.Operators["x:made"] {
		t.Errorf("facts: %+v", got)
	}
	if other := facts("telegram:none"); other.Chat != nil || len(other.Stops) != 0 || other.Asks || len(other.Operators) != 2 {
		t.Errorf("of another chat: %+v", other)
	}
}
