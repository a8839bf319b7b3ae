package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// seenChats follows a list of chats to its end and returns the addresses, and how many pages ended before they were full.
func seenChats(t *testing.T, s *store.Store, f store.ChatFilter) (jids []string, bounded int) {
	t.Helper()
	for range 100 {
		page := must(s.ListChats(t.Context(), f))(t)
		for _, c := range page.Rows {
			jids = append(jids, c.JID)
		}
		if page.Bounded {
			bounded++
		}
		if page.Next == nil {
			return jids, bounded
		}
		f.Before = *page.Next
	}
	t.Fatal("the list does not end")
	return nil, 0
}

func TestListChats_FiltersAndPages_EachOnce(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		for i := range 7 {
			if err := tx.PutChat(fmt.Sprintf("telegram:-%d", i), msg.ChatGroup, fmt.Sprintf("Room Ä%d", i%2), int64(100+i/2)); err != nil {
				return err
			}
		}
		return tx.PutChat("telegram+work:-9", msg.ChatDM, "", 5)
	})
	all := []string{"telegram:-6", "telegram:-5", "telegram:-4", "telegram:-3", "telegram:-2", "telegram:-1", "telegram:-0", "telegram+work:-9"}
	for limit := 1; limit < 10; limit++ {
		if got, bounded := seenChats(t, s, store.ChatFilter{Limit: limit}); bounded > 0 || !slices.Equal(got, all) {
			t.Errorf("%d a page: %q, %d bounded", limit, got, bounded)
		}
	}
	for _, tt := range []struct {
		filter store.ChatFilter
		want   []string
	}{
		{store.ChatFilter{Platform: "telegram+work"}, []string{"telegram+work:-9"}},
		{store.ChatFilter{Text: "room ä1"}, []string{"telegram:-5", "telegram:-3", "telegram:-1"}},
		{store.ChatFilter{Text: "AM:-4"}, []string{"telegram:-4"}},
		{store.ChatFilter{Text: "100%"}, nil},
	} {
		tt.filter.Limit = 2
		if got, _ := seenChats(t, s, tt.filter); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt.filter, got)
		}
	}
	if got := must(s.Platforms(t.Context()))(t); !slices.Equal(got, []string{"telegram+work", "telegram"}) {
		t.Errorf("platforms %q", got)
	}
}

func TestListChats_RareText_LooksAtBoundedRows(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:-1", msg.ChatGroup, "needle", 1); err != nil {
			return err
		}
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 7000)
			INSERT INTO chats (jid, platform, kind, last_seen_at) SELECT 'discord:' || i, 'discord', 'group', i FROM n`)
	})
	if got, bounded := seenChats(t, s, store.ChatFilter{Text: "needle", Limit: 50}); bounded != 2 || !slices.Equal(got, []string{"telegram:-1"}) {
		t.Errorf("%q, %d bounded", got, bounded)
	}
}

func TestOpenWindows_EndedPinnedAndPast_LeftOut(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		for i, e := range []msg.Engagement{
			{ChatJID: "telegram:-1", Folder: folder, Until: 100, At: 10},
			{ChatJID: "telegram:-1", Place: "7", Folder: folder, Until: 60, At: 10},
			{ChatJID: "telegram:-2", Folder: folder, Until: 50, At: 10},              // past
			{ChatJID: "telegram:-3", Folder: folder, Until: 90, At: 10, EndedAt: 20}, // ended
			{ChatJID: "telegram:-4", Folder: folder, Until: 90, At: 10},              // pinned later
			{ChatJID: "telegram:-5", At: 10},
			{ChatJID: "telegram:-6", Folder: folder, Until: 60, At: 10},
		} {
			if err := tx.PutChat(e.ChatJID, msg.ChatGroup, fmt.Sprintf("chat %d", i), 1); err != nil {
				return err
			}
			if err := tx.PutEngagement(e); err != nil {
				return err
			}
		}
		return tx.PinGroup("telegram:-4", folder, 30)
	})
	var got []string
	after, jid, place := int64(50), "", ""
	for {
		page := must(s.OpenWindows(t.Context(), after, jid, place, 1))(t)
		if len(page) == 0 {
			break
		}
		w := page[0]
		got = append(got, fmt.Sprintf("%s %s %d %s", w.ChatJID, w.Place, w.Until, w.Title))
		after, jid, place = w.Until, w.ChatJID, w.Place
	}
	want := []string{"telegram:-1 7 60 chat 1", "telegram:-6  60 chat 6", "telegram:-1  100 chat 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFolderSessionsAndRuns_OfAnotherGroup_LeftOut(t *testing.T) {
	s := storetest.Open(t)
	write(t, s, func(tx *store.Tx) error {
		for _, statement := range []string{
			`INSERT INTO sessions (group_folder, topic, session_id, updated_at) VALUES ('acme', '', 's0', 5), ('acme', '#a', 's1', 6), ('eng', '', 's2', 7)`,
			`INSERT INTO runs (id, folder, topic, chat_jid, runtime, started_at, closed_at, ended_at) VALUES
			(1, 'acme', '', 'telegram:-1', 'bwrap', 1, 2, 3), (2, 'eng', '', 'telegram:-1', 'bwrap', 1, 2, 3), (3, 'acme', '#a', 'telegram:-1', 'docker', 4, NULL, NULL)`,
			`INSERT INTO session_log (run_id, started_at, folder, topic, result, error) VALUES (1, 1, 'acme', '', 'error', 'exit status 1')`,
			`INSERT INTO messages (id, chat_jid, direction, content, timestamp, received_at) VALUES (1, 'telegram:-1', 'in', 'x', 1, 1)`,
			`INSERT INTO turns (id, run_id, kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, started_at, ended_at) VALUES
			(1, 1, 'conversation', 'acme', 'telegram:-1', '', 1, 's', 1, 'failed', 1, 2, 3), (2, 1, 'conversation', 'acme', 'telegram:-1', '', 1, 's', 1, 'failed', 1, 2, 3),
			(3, 2, 'conversation', 'eng', 'telegram:-1', '', 1, 's', 1, 'done', 1, 2, 3), (4, 3, 'conversation', 'acme', 'telegram:-1', '', 1, 's', 1, 'running', 4, 9, NULL)`,
		} {
			if err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	})
	want := []store.TopicSession{{"", "s0", 5}, {"#a", "s1", 6}}
	if diff := cmp.Diff(want, must(s.FolderSessions(t.Context(), folder, "", 9))(t)); diff != "" {
		t.Error(diff)
	}
	if got := must(s.FolderSessions(t.Context(), folder, "#a", 9))(t); len(got) != 1 || got[0].ID != "s1" {
		t.Errorf("from #a: %v", got)
	}
	runs := must(s.FolderRuns(t.Context(), folder, 9))(t)
	if len(runs) != 2 || runs[0].ID != 3 || runs[1].ID != 1 || runs[1].Error != "exit status 1" || runs[0].Result != "" {
		t.Errorf("runs %+v", runs)
	}
	if id, at, err := s.LastFolderTurn(t.Context(), folder); id != 4 || at != 9 || err != nil {
		t.Errorf("the last turn: %d at %d, %v", id, at, err)
	}
	if n, err := s.OpenTurnCount(t.Context(), "telegram:-1", 9); n != 1 || err != nil {
		t.Errorf("%d open turns, %v", n, err)
	}
}

func TestAnswered_OnceAnAnswerHasArrivedOnAPlatform(t *testing.T) {
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	platforms, id := []string{"telegram", "slack"}, 0
	// add stores a turn of a chat with an answer in a state, and a message of no turn that was sent.
	add := func(chat, state string) {
		t.Helper()
		id++
		write(t, s, func(tx *store.Tx) error { return tx.PutChat(chat, msg.ChatGroup, "", int64(id)) })
		insert := func(direction, turn, state string) {
			storetest.Exec(t, path, `INSERT INTO messages (chat_jid, direction, sender, content, topic, timestamp, received_at, source, turn_id, out_state)
				VALUES ('`+chat+`', '`+direction+`', '', 'x', '', 1, 1, 'test', `+turn+`, `+state+`)`)
		}
		insert("in", "NULL", "NULL")
		storetest.Exec(t, path, `INSERT INTO turns (kind, folder, chat_jid, topic, trigger_message_id, surface, ceiling, state, created_at, ended_at)
			SELECT 'conversation', 'main', chat_jid, '', id, '', 0, 'done', 1, 2 FROM messages ORDER BY id DESC LIMIT 1`)
		insert("out", "(SELECT max(id) FROM turns)", "'"+state+"'")
		insert("out", "NULL", "'sent'")
	}
	if must(s.Answered(t.Context(), platforms))(t) {
		t.Error("an instance without chats has answered")
	}
	for _, tt := range []struct {
		chat, state string
		want        bool
	}{
		{"web:main", "sent", false}, {"hand:-100", "sent", false}, {"telegram:-1", "queued", false}, {"telegram:-2", "failed", false}, {"slack+work:C1", "sent", true},
	} {
		add(tt.chat, tt.state)
		if got := must(s.Answered(t.Context(), platforms))(t); got != tt.want {
			t.Errorf("after an answer in %s that is %s: %t", tt.chat, tt.state, got)
		}
	}
	storetest.Exec(t, path, `INSERT INTO chat_reply_state (jid, topic, last_reply_id) VALUES ('web:main', '', 1), ('slack+work:C2', '', NULL);
		DELETE FROM messages WHERE turn_id IS NOT NULL; DELETE FROM turns`)
	if must(s.Answered(t.Context(), platforms))(t) {
		t.Error("it counts a chat as answered that got no answer")
	}
	storetest.Exec(t, path, `UPDATE chat_reply_state SET last_reply_id = 1`)
	if !must(s.Answered(t.Context(), platforms))(t) {
		t.Error("forgotten with the history")
	}
}
