package rows_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"arizuko/dashd/internal/rows"
	"arizuko/gated/gatedtest"
	"arizuko/pkg/agentproto"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestAudit_Filters_NewestFirstInPages(t *testing.T) {
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 6 {
			who, what := []string{"cli", "web:ada"}[i%2], []string{"add route", "approve", "change route"}[i%3]
			if err := tx.PutAudit(who, what, fmt.Sprint(i+1), int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
	for name, tt := range map[string]struct {
		query factrows.AuditQuery
		want  []string
	}{
		"all":           {factrows.AuditQuery{Limit: 10}, []string{"6", "5", "4", "3", "2", "1"}},
		"a page":        {factrows.AuditQuery{Limit: 2}, []string{"6", "5"}},
		"the next page": {factrows.AuditQuery{Limit: 2, Before: 5}, []string{"4", "3"}},
		"by who":        {factrows.AuditQuery{Who: "cli", Limit: 10}, []string{"5", "3", "1"}},
		"by what":       {factrows.AuditQuery{What: "approve", Limit: 10, Before: 5}, []string{"2"}},
		"by both":       {factrows.AuditQuery{Who: "cli", What: "approve", Limit: 10}, []string{"5"}},
		"by neither":    {factrows.AuditQuery{Who: "web:bob", Limit: 10}, nil},
	} {
		rows, err := factrows.Audit(t.Context(), s.Reader, tt.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Detail)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	list, err := factrows.Audit(t.Context(), s.Reader, factrows.AuditQuery{Limit: 1})
	if diff := cmp.Diff([]factrows.AuditRow{{ID: 6, At: 5, Who: "web:ada", What: "change route", Detail: "6"}}, list); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for limit, want := range map[int][]string{10: {"add route", "approve", "change route"}, 2: {"add route", "approve"}} {
		if got, err := rows.AuditWhats(t.Context(), s.Reader, limit); err != nil || !slices.Equal(got, want) {
			t.Errorf("kinds: %v, %v, want %v", got, err, want)
		}
	}
}

func TestAuditWhats_NoChange_None(t *testing.T) {
	s := storetest.Open(t)
	if got, err := rows.AuditWhats(t.Context(), s.Reader, 5); err != nil || len(got) != 0 {
		t.Errorf("kinds: %v, %v", got, err)
	}
}

func TestNewestInbound_Rows_AsRoutesSeeThem(t *testing.T) {
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:-1", msg.ChatGroup, "Dev", 1); err != nil {
			return err
		}
		for _, m := range []*msg.Message{
			{ChatJID: "telegram:-1", PlatformID: "7", Direction: msg.In, Verb: msg.VerbMention, Sender: "telegram:42", SenderName: "Ada", ThreadID: "t", Topic: "#x", Content: "hello", Timestamp: 5, ReceivedAt: 6},
			{ChatJID: "slack:C1", Direction: msg.In, Verb: msg.VerbMessage, Sender: "agent:main", Timestamp: 5, ReceivedAt: 7, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Delegation}},
			{ChatJID: "slack:C1", Direction: msg.In, Verb: msg.VerbMessage, Sender: "agent:main", Timestamp: 5, ReceivedAt: 8, ForwardedFrom: &msg.ReturnAddress{Kind: msg.Injection}},
			{ChatJID: "slack:C1", Direction: msg.In, Kind: msg.KindEdit, Verb: msg.VerbEdit, TargetID: "3", Sender: "slack:U1", Timestamp: 5, ReceivedAt: 9},
		} {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return tx.Decide(1, store.Decision{Disposition: msg.Routed, RoutedTo: "main", Reason: msg.ReasonRoute, Topic: "#x", ThreadID: "t"}, 9)
	})
	got, err := rows.NewestInbound(t.Context(), s.Reader, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := []rows.Inbound{
		{ID: 4, ChatJID: "slack:C1", Sender: "slack:U1", Verb: "edit", ReceivedAt: 9, Change: true},
		{ID: 3, ChatJID: "slack:C1", Sender: "agent:main", Verb: "message", ReceivedAt: 8},
		{ID: 2, ChatJID: "slack:C1", Sender: "agent:main", Verb: "message", ReceivedAt: 7, Own: true},
		{ID: 1, ChatJID: "telegram:-1", Kind: "group", Title: "Dev", Topic: "#x", ThreadID: "t", Sender: "telegram:42", SenderName: "Ada", Verb: "mention",
			PlatformID: "7", ReceivedAt: 6, Reason: "route", Folder: "main", Content: "hello"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := rows.NewestInbound(t.Context(), s.Reader, 1); err != nil || len(got) != 1 || got[0].ID != 4 {
		t.Errorf("the newest: %v, %v", got, err)
	}
}

// seenChats follows a list of chats to its end and returns the addresses, and how many pages ended before they were full.
func seenChats(t *testing.T, s *store.Store, f rows.ChatFilter) (jids []string, bounded int) {
	t.Helper()
	for range 100 {
		page := storetest.Must(rows.ListChats(t.Context(), s.Reader, f))(t)
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
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 7 {
			if err := tx.PutChat(fmt.Sprintf("telegram:-%d", i), msg.ChatGroup, fmt.Sprintf("Room Ä%d", i%2), int64(100+i/2)); err != nil {
				return err
			}
		}
		return tx.PutChat("telegram+work:-9", msg.ChatDM, "", 5)
	})
	all := []string{"telegram:-6", "telegram:-5", "telegram:-4", "telegram:-3", "telegram:-2", "telegram:-1", "telegram:-0", "telegram+work:-9"}
	for limit := 1; limit < 10; limit++ {
		if got, bounded := seenChats(t, s, rows.ChatFilter{Limit: limit}); bounded > 0 || !slices.Equal(got, all) {
			t.Errorf("%d a page: %q, %d bounded", limit, got, bounded)
		}
	}
	for _, tt := range []struct {
		filter rows.ChatFilter
		want   []string
	}{
		{rows.ChatFilter{Platform: "telegram+work"}, []string{"telegram+work:-9"}},
		{rows.ChatFilter{Text: "room ä1"}, []string{"telegram:-5", "telegram:-3", "telegram:-1"}},
		{rows.ChatFilter{Text: "AM:-4"}, []string{"telegram:-4"}},
		{rows.ChatFilter{Text: "100%"}, nil},
	} {
		tt.filter.Limit = 2
		if got, _ := seenChats(t, s, tt.filter); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %q", tt.filter, got)
		}
	}
	if got := storetest.Must(rows.Platforms(t.Context(), s.Reader))(t); !slices.Equal(got, []string{"telegram+work", "telegram"}) {
		t.Errorf("platforms %q", got)
	}
}

func TestTitles_ManyAndBroken_EachItsOwn(t *testing.T) {
	s := storetest.Open(t)
	broken := "telegram:\xff"
	if storetest.Server() != "" {
		broken = "telegram:-100" // a server has no text that is broken
	}
	want, asked := map[string]string{broken: "Broken"}, []string{"", broken, broken, "telegram:\uFFFD", "telegram:none"}
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 45 {
			jid := fmt.Sprintf("telegram:-%d", i)
			want[jid], asked = fmt.Sprintf("Room %d", i), append(asked, jid)
		}
		for jid, title := range want {
			if err := tx.PutChat(jid, msg.ChatGroup, title, 1); err != nil {
				return err
			}
		}
		return nil
	})
	got := map[string]string{}
	if err := rows.Titles(t.Context(), s.Reader, asked, func(jid, title string) { got[jid] += title }); err != nil {
		t.Fatal(err)
	}
	same(t, "titles", got, want)
}

func TestFindSenders_NewestNameAndID_EachOnce(t *testing.T) {
	s := storetest.Open(t)
	for _, m := range []msg.Message{
		{ChatJID: "telegram:-1", Direction: msg.In, Sender: "telegram:42", SenderName: "Ada"}, {ChatJID: "telegram:-1", Direction: msg.In, Sender: "telegram:42", SenderName: "Countess"},
		{ChatJID: "slack:C1", Direction: msg.In, Sender: "slack:U7", SenderName: "Grace"}, {ChatJID: "slack:C1", Direction: msg.Out, Sender: "agent:x", SenderName: "Grace"},
	} {
		storetest.Stored(t, s, &m)
	}
	for text, want := range map[string][]rows.Sender{
		"countess": {{ID: "telegram:42", Name: "Countess"}}, "Ada": nil, ":u7": {{ID: "slack:U7", Name: "Grace"}}, "a": {{ID: "slack:U7", Name: "Grace"}, {ID: "telegram:42", Name: "Countess"}},
	} {
		if diff := cmp.Diff(want, storetest.Must(rows.FindSenders(t.Context(), s.Reader, text, 5))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	if got := storetest.Must(rows.FindSenders(t.Context(), s.Reader, "", 1))(t); len(got) != 1 {
		t.Errorf("one: %v", got)
	}
}

func TestListChats_RareText_LooksAtBoundedRows(t *testing.T) {
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.PutChat("telegram:-1", msg.ChatGroup, "needle", 1); err != nil {
			return err
		}
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 7000)
			INSERT INTO chats (jid, platform, kind, last_seen_at) SELECT 'discord:' || i, 'discord', 'group', i FROM n`)
	})
	if got, bounded := seenChats(t, s, rows.ChatFilter{Text: "needle", Limit: 50}); bounded != 2 || !slices.Equal(got, []string{"telegram:-1"}) {
		t.Errorf("%q, %d bounded", got, bounded)
	}
}

func TestOpenWindows_EndedPinnedAndPast_LeftOut(t *testing.T) {
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i, e := range []msg.Engagement{
			{ChatJID: "telegram:-1", Folder: storetest.Folder, Until: 100, At: 10},
			{ChatJID: "telegram:-1", Place: "7", Folder: storetest.Folder, Until: 60, At: 10},
			{ChatJID: "telegram:-2", Folder: storetest.Folder, Until: 50, At: 10},              // past
			{ChatJID: "telegram:-3", Folder: storetest.Folder, Until: 90, At: 10, EndedAt: 20}, // ended
			{ChatJID: "telegram:-4", Folder: storetest.Folder, Until: 90, At: 10},              // pinned later
			{ChatJID: "telegram:-5", At: 10},
			{ChatJID: "telegram:-6", Folder: storetest.Folder, Until: 60, At: 10},
		} {
			if err := tx.PutChat(e.ChatJID, msg.ChatGroup, fmt.Sprintf("chat %d", i), 1); err != nil {
				return err
			}
			if err := factrows.PutEngagement(tx, e); err != nil {
				return err
			}
		}
		return gatedtest.PinGroup(tx, "telegram:-4", storetest.Folder, 30)
	})
	var got []string
	after, jid, place := int64(50), "", ""
	for {
		page := storetest.Must(rows.OpenWindows(t.Context(), s.Reader, after, jid, place, 1))(t)
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
	storetest.Write(t, s, func(tx *store.Tx) error {
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
	want := []rows.TopicSession{{"", "s0", 5}, {"#a", "s1", 6}}
	if diff := cmp.Diff(want, storetest.Must(rows.FolderSessions(t.Context(), s.Reader, storetest.Folder, "", 9))(t)); diff != "" {
		t.Error(diff)
	}
	if got := storetest.Must(rows.FolderSessions(t.Context(), s.Reader, storetest.Folder, "#a", 9))(t); len(got) != 1 || got[0].ID != "s1" {
		t.Errorf("from #a: %v", got)
	}
	runs := storetest.Must(rows.FolderRuns(t.Context(), s.Reader, storetest.Folder, 9))(t)
	if len(runs) != 2 || runs[0].ID != 3 || runs[1].ID != 1 || runs[1].Error != "exit status 1" || runs[0].Result != "" {
		t.Errorf("runs %+v", runs)
	}
	if id, at, err := rows.LastFolderTurn(t.Context(), s.Reader, storetest.Folder); id != 4 || at != 9 || err != nil {
		t.Errorf("the last turn: %d at %d, %v", id, at, err)
	}
	if n, err := rows.CountOpenTurns(t.Context(), s.Reader, "telegram:-1", "", "", 9); n.Open != 1 || err != nil {
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
		storetest.Write(t, s, func(tx *store.Tx) error { return tx.PutChat(chat, msg.ChatGroup, "", int64(id)) })
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
	if storetest.Must(rows.Answered(t.Context(), s.Reader, platforms))(t) {
		t.Error("an instance without chats has answered")
	}
	for _, tt := range []struct {
		chat, state string
		want        bool
	}{
		{"web:main", "sent", false}, {"hand:-100", "sent", false}, {"telegram:-1", "queued", false}, {"telegram:-2", "failed", false}, {"slack+work:C1", "sent", true},
	} {
		add(tt.chat, tt.state)
		if got := storetest.Must(rows.Answered(t.Context(), s.Reader, platforms))(t); got != tt.want {
			t.Errorf("after an answer in %s that is %s: %t", tt.chat, tt.state, got)
		}
	}
	storetest.Exec(t, path, `INSERT INTO chat_reply_state (jid, topic, last_reply_id) VALUES ('web:main', '', 1), ('slack+work:C2', '', NULL);
		DELETE FROM messages WHERE turn_id IS NOT NULL; DELETE FROM turns`)
	if storetest.Must(rows.Answered(t.Context(), s.Reader, platforms))(t) {
		t.Error("it counts a chat as answered that got no answer")
	}
	storetest.Exec(t, path, `UPDATE chat_reply_state SET last_reply_id = 1`)
	if !storetest.Must(rows.Answered(t.Context(), s.Reader, platforms))(t) {
		t.Error("forgotten with the history")
	}
}

func TestSpend_Usage_IsSummedByDayGroupAndChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(folder, jid string) *msg.Turn {
		return gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Folder, turn.ChatJID = folder, jid })
	}
	use := func(turn *msg.Turn, day string, cost float64) {
		storetest.Write(t, s, func(tx *store.Tx) error {
			return gatedtest.AddUsage(tx, turn.ID, agentproto.Usage{Input: 10, Output: 1, CostUSD: cost}, day)
		})
	}
	over := in("acme", "telegram:1")
	use(over, "2026-11-22", 1)
	use(over, "2026-11-23", 2) // a turn that goes on past midnight
	use(in("acme", "telegram:1"), "2026-11-23", 4)
	use(in("acme", "telegram:2"), "2026-11-23", 8)
	use(in("other", "telegram:2"), "2026-11-24", 16)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return gatedtest.AddUsage(tx, over.ID, agentproto.Usage{ContextUsed: 5}, "2026-11-30") // nothing was used
	})
	row := func(name string, turns int64, events int64, cost float64) factrows.SpendRow {
		return factrows.SpendRow{Name: name, Spend: factrows.Spend{Turns: turns, Input: 10 * events, Output: events, CostUSD: cost}}
	}
	all := factrows.SpendList{From: "2026-11-01", To: "2026-11-30", Limit: 10}
	acme, day := all, all
	acme.Folder, day.From, day.To, day.Limit = "acme", "2026-11-23", "2026-11-23", 1
	for name, c := range map[string]struct {
		read func() ([]factrows.SpendRow, error)
		want []factrows.SpendRow
	}{
		"days": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByDay, all)
		},
			[]factrows.SpendRow{row("2026-11-22", 1, 1, 1), row("2026-11-23", 2, 3, 14), row("2026-11-24", 1, 1, 16)}},
		"days of a group": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByDay, acme)
		},
			[]factrows.SpendRow{row("2026-11-22", 1, 1, 1), row("2026-11-23", 2, 3, 14)}},
		"groups": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByGroup, all)
		},
			[]factrows.SpendRow{row("other", 1, 1, 16), row("acme", 3, 4, 15)}},
		"chats": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByChat, all)
		},
			[]factrows.SpendRow{row("telegram:2", 2, 2, 24), row("telegram:1", 2, 3, 7)}},
		"chats of a group": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByChat, acme)
		},
			[]factrows.SpendRow{row("telegram:2", 1, 1, 8), row("telegram:1", 2, 3, 7)}},
		"the first chat of a day": {func() ([]factrows.SpendRow, error) {
			return factrows.ListSpend(t.Context(), s.Reader, factrows.ByChat, day)
		},
			[]factrows.SpendRow{row("telegram:2", 1, 1, 8)}},
	} {
		if got := storetest.Must(c.read())(t); !cmp.Equal(got, c.want) {
			t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
		}
	}
	if got := storetest.Must(factrows.FolderSpend(t.Context(), s.Reader, "acme", "2026-11-23", "2026-11-23"))(t); got.CostUSD != 14 {
		t.Errorf("of the group on a day: %+v", got)
	}
	if got := storetest.Must(rows.ChatSpend(t.Context(), s.Reader, "telegram:2", "2026-11-01", "2026-11-30"))(t); got.CostUSD != 24 {
		t.Errorf("of the chat: %+v", got)
	}
	if got := storetest.Must(rows.ChatSpend(t.Context(), s.Reader, "telegram:9", "2026-11-01", "2026-11-30"))(t); got != (factrows.Spend{}) {
		t.Errorf("of an unknown chat: %+v", got)
	}
}

func TestOpenTurns_CountedAndListed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	first := gatedtest.Queued(t, s)
	other := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	run := gatedtest.Begun(t, s, first)
	second, third := gatedtest.Queued(t, s), gatedtest.Queued(t, s)
	begunAt := storetest.Must(s.Turn(t.Context(), first.ID))(t).StartedAt
	expect := func(want rows.OpenTurns) {
		t.Helper()
		if got := storetest.Must(rows.CountOpenTurns(t.Context(), s.Reader, storetest.Chat, "", "", 100))(t); got != want {
			t.Errorf("open are %+v, want %+v", got, want)
		}
	}
	lists := func(running, queued []int64) {
		t.Helper()
		oldest, count, err := factrows.OldestTurns(t.Context(), s.Reader, msg.TurnRunning, 1)
		if err != nil || count != len(running) || !slices.Equal(turnIDs(oldest), running[:min(1, count)]) {
			t.Errorf("running %v of %d, %v; want %v", turnIDs(oldest), count, err, running)
		}
		oldest, count, err = factrows.OldestTurns(t.Context(), s.Reader, msg.TurnQueued, 1)
		if err != nil || count != len(queued) || !slices.Equal(turnIDs(oldest), queued[:min(1, count)]) {
			t.Errorf("queued %v of %d, %v; want %v", turnIDs(oldest), count, err, queued)
		}
	}
	expect(rows.OpenTurns{Open: 3, Running: 1, Begun: begunAt, Oldest: first.ID})
	lists([]int64{first.ID}, []int64{other.ID, second.ID, third.ID})
	gatedtest.StoreReply(t, s, gatedtest.Answer(run, first, "done"), 300)
	expect(rows.OpenTurns{Open: 2, Oldest: second.ID})
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, second.ID, msg.ReasonCancelled, 300) })
	expect(rows.OpenTurns{Open: 1, Oldest: third.ID})
	lists(nil, []int64{other.ID, third.ID})
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, third.ID, msg.ReasonCancelled, 300) })
	expect(rows.OpenTurns{})
}

func TestCountOpenTurns_ThreadOrPlace(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	thread := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ThreadID, turn.Place = "7", "7" })
	fork := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Place = "#fix" })
	running := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.Topic, turn.Place = "#a", "#a" })
	gatedtest.Begun(t, s, running)
	for _, tt := range []struct {
		thread, place string
		open          int
		oldest        int64
	}{{"", "", 3, thread.ID}, {"7", "", 1, thread.ID}, {"", "#fix", 1, fork.ID}, {"8", "", 0, 0}, {"", "#none", 0, 0}} {
		if got := storetest.Must(rows.CountOpenTurns(t.Context(), s.Reader, storetest.Chat, tt.thread, tt.place, 100))(t); got.Open != tt.open || got.Oldest != tt.oldest {
			t.Errorf("thread %q, place %q: %+v", tt.thread, tt.place, got)
		}
	}
	if got := storetest.Must(rows.CountOpenTurns(t.Context(), s.Reader, storetest.Chat, "", "", 2))(t); got.Open != 2 || got.Running != 1 || got.Oldest != thread.ID {
		t.Errorf("up to 2: %+v", got)
	}
}

func TestQueuedBefore(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	running := gatedtest.Queued(t, s)
	gatedtest.Begun(t, s, running)
	cancelled := gatedtest.Queued(t, s)
	storetest.Write(t, s, func(tx *store.Tx) error { return gatedtest.CancelTurn(tx, cancelled.ID, msg.ReasonCancelled, 300) })
	first := gatedtest.Queued(t, s)
	inBackoff := gatedtest.Queued(t, s, func(turn *msg.Turn) { turn.ChatJID = "telegram:-2" })
	storetest.Write(t, s, func(tx *store.Tx) error {
		return gatedtest.RequeueTurn(tx, inBackoff.ID, gatedtest.Requeue{Attempt: true, Problem: "broke", NotBefore: 500})
	})
	last := gatedtest.Queued(t, s)
	for _, tt := range []struct {
		turn, now int64
		want      int
	}{
		{first.ID, 499, 0}, {inBackoff.ID, 499, 1}, {last.ID, 499, 1}, {last.ID, 500, 2}, {noID, 500, 3},
	} {
		if got := storetest.Must(rows.QueuedBefore(t.Context(), s.Reader, tt.turn, tt.now))(t); got != tt.want {
			t.Errorf("before turn %d at %d: %d, want %d", tt.turn, tt.now, got, tt.want)
		}
	}
}

func textsOf(rows []*msg.Message) (all []string) {
	for _, m := range rows {
		all = append(all, m.Content)
	}
	return all
}

func turnIDs(turns []*msg.Turn) (all []int64) {
	for _, t := range turns {
		all = append(all, t.ID)
	}
	return all
}

// outbound stores an outbound row in a state, "" for none.
func outbound(t testing.TB, s *store.Store, chatJID, thread string, state msg.OutState) *msg.Message {
	t.Helper()
	return storetest.Stored(t, s, &msg.Message{ChatJID: chatJID, ThreadID: thread, Direction: msg.Out, OutState: state, Content: "hi"})
}

var outStates = []msg.OutState{"", msg.OutQueued, msg.OutSending, msg.OutSent, msg.OutAmbiguous, msg.OutFailed, msg.OutCancelled}
