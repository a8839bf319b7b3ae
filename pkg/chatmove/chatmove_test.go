package chatmove_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/gated/gatedtest"
	"arizuko/pkg/adapter/rows"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/chatmove"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestMoveChat_MovesEveryTable moves a chat with rows in every table to an address that
// already has messages.
func TestMoveChat_MovesEveryTable(t *testing.T) {
	t.Parallel()
	const from, to = "telegram:-5", "telegram:-1005"
	s := storetest.Open(t)
	out := &msg.Message{ChatJID: from, Direction: msg.Out, OutState: msg.OutQueued, ReplyToID: "1", Content: "answer", Source: msg.SourceAgent}
	in := &msg.Message{ChatJID: from, PlatformID: "1", Direction: msg.In, Content: "question"}
	fresh := &msg.Message{ChatJID: to, PlatformID: "1", Direction: msg.In, Content: "first in the new chat"}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: "main", ChatJID: from, ReplyTo: "1", Topic: "#a", ThreadID: "7", Place: "7"}
	move := func(tx *store.Tx) error { return chatmove.Move(tx, from, to, 50) }
	storetest.Write(t, s, func(tx *store.Tx) error {
		for _, m := range []*msg.Message{in, out, fresh} {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		turn.TriggerMessageID = in.ID
		_, putTurn := gatedtest.PutTurn(tx, turn, 0)
		for _, err := range []error{
			putTurn,
			tx.PutChat(from, msg.ChatGroup, "Team", 1), gatedtest.PinTopic(tx, from, "#a"), tx.PutChat(to, msg.ChatGroup, "Team, again", 2),
			gatedtest.BindThread(tx, from, "7", "#a"), tx.PutThread(msg.Thread{ChatJID: from, ID: "7", Title: "Deploys"}),
			factrows.PutEngagement(tx, msg.Engagement{ChatJID: from, Place: "7", Folder: "main", Until: 100, At: 10}),
			tx.PutRoute(&msg.Route{Match: "chat_jid=" + from + " verb=mention", Target: "main"}),
			tx.PutRoute(&msg.Route{Match: "platform=telegram room=-5", Target: "main"}),
			tx.PutRoute(&msg.Route{Match: "room=-50", Target: "main"}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	storetest.Write(t, s, move)
	storetest.Write(t, s, move) // Telegram says it twice: in either chat
	if m := storetest.Must(s.Message(t.Context(), in.ID))(t); m.ChatJID != to || m.PlatformID != "old:1" {
		t.Errorf("the question is %s %s", m.ChatJID, m.PlatformID)
	}
	if m := storetest.Must(s.Message(t.Context(), fresh.ID))(t); m.PlatformID != "1" {
		t.Errorf("the new chat's own message is %s", m.PlatformID)
	}
	lanes := storetest.Must(rows.OutboxLanes(t.Context(), s.Reader, "telegram"))(t)
	if diff := cmp.Diff([]store.Lane{{ChatJID: to}}, lanes); diff != "" {
		t.Errorf("outbound rows wait (-want +got):\n%s", diff)
	}
	if got := storetest.Must(s.Turn(t.Context(), turn.ID))(t); got.ChatJID != to || got.ReplyTo != "old:1" {
		t.Errorf("the turn is in %s and replies to %s", got.ChatJID, got.ReplyTo)
	}
	if c := storetest.Must(s.Chat(t.Context(), to))(t); c.StickyTopic != "#a" || c.Title != "Team, again" {
		t.Errorf("the chat is %+v", c)
	}
	if storetest.Must(s.Chat(t.Context(), from))(t) != nil {
		t.Error("the old chat still has a row")
	}
	if e := storetest.Must(factrows.Engagement(t.Context(), s.Reader, to, "7"))(t); e.Folder != "main" {
		t.Errorf("engaged: %+v", e)
	}
	if storetest.Must(factrows.TopicOfThread(t.Context(), s.Reader, to, "7"))(t) != "#a" || storetest.Must(rows.Thread(t.Context(), s.Reader, to, "7"))(t).Title != "Deploys" {
		t.Error("the thread did not move")
	}
	var matches []string
	for _, r := range storetest.Must(s.Routes(t.Context()))(t) {
		matches = append(matches, r.Match)
	}
	want := []string{"chat_jid=" + to + " verb=mention", "platform=telegram room=-1005", "room=-50"}
	if diff := cmp.Diff(want, matches); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if storetest.Must(s.Address(t.Context(), from))(t) != to || storetest.Must(s.Address(t.Context(), to))(t) != to {
		t.Error("the old address has no alias")
	}
	audit := storetest.Must(factrows.Audit(t.Context(), s.Reader, factrows.AuditQuery{Limit: 9}))(t)
	moved := []factrows.AuditRow{{ID: 1, At: 50, Who: "teled", What: factrows.AuditMove, Detail: from + " to " + to + ": routes changed: 1 2"}}
	if diff := cmp.Diff(moved, audit); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

const oldJID, newJID = "telegram:-5", "telegram:-1005"

func undecidedIDs(t testing.TB, s *store.Store, jid string) (ids []int64) {
	t.Helper()
	for _, m := range storetest.Must(gatedtest.Undecided(t.Context(), s.Reader, jid, 0, 100_000))(t) {
		ids = append(ids, m.ID)
	}
	return ids
}

// TestMoveChat_ManyRows_MovesPagesInOrder moves 9,000 rows and turns, with a crash
// after every commit.
func TestMoveChat_ManyRows_MovesPagesInOrder(t *testing.T) {
	t.Parallel()
	const n, undecided = 3000, 1500
	path := storetest.Path(t)
	s := storetest.OpenAt(t, path, nil)
	storetest.OldChat(t, s, oldJID, n, undecided)
	seq := storetest.Value[int64](t, s, storetest.LastDelivery())
	waiting := undecidedIDs(t, s, oldJID)
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 50) })
	fresh := storetest.Inbound(t, s, newJID, "in the new chat")
	late := storetest.Stored(t, s, &msg.Message{ChatJID: oldJID, PlatformID: "9999", ReplyToID: "7", Direction: msg.In})
	if late.ChatJID != newJID || late.PlatformID != "old:9999" || late.ReplyToID != "old:7" {
		t.Errorf("a late row is %+v", late)
	}
	if again, isNew, err := storetest.Put(t.Context(), s, &msg.Message{ChatJID: oldJID, PlatformID: "2999", Direction: msg.In}); err != nil || isNew || again != n-1 {
		t.Errorf("a redelivered row that is not moved yet: %d, %v, %v", again, isNew, err)
	}
	if got := undecidedIDs(t, s, newJID); got != nil {
		t.Errorf("%d rows of the new chat may be decided before those of the old one", len(got))
	}
	if got := undecidedIDs(t, s, oldJID); got != nil {
		t.Errorf("%d rows may be decided in the old chat", len(got))
	}

	pages := 0
	for more := true; more; pages++ {
		storetest.Write(t, s, func(tx *store.Tx) (err error) {
			more, err = chatmove.MoveSome(tx, oldJID, 51)
			return err
		})
		left := storetest.Value[int](t, s, `SELECT count(*) FROM messages WHERE chat_jid = ? AND disposition IS NULL AND direction = 'in'`, oldJID)
		if got := undecidedIDs(t, s, newJID); left > 0 && got != nil || left == 0 && len(got) != undecided+2 {
			t.Fatalf("%d rows are left and %d may be decided", left, len(got))
		}
	}
	if pages < 8 || pages > 12 {
		t.Errorf("%d pages", pages)
	}
	if got := undecidedIDs(t, s, newJID); !slices.Equal(got, append(waiting, fresh.ID, late.ID)) {
		t.Errorf("%d rows are undecided, in another order", len(got))
	}
	for what, query := range map[string]string{
		"rows of the old chat":  `SELECT count(*) FROM messages WHERE chat_jid = 'telegram:-5'`,
		"turns of the old chat": `SELECT count(*) FROM turns WHERE chat_jid = 'telegram:-5' OR NOT glob('old:[0-9]*', reply_to)`,
		"ids without one prefix": `SELECT count(*) FROM messages WHERE received_at < 10000 AND timestamp > 2
			AND (NOT glob('old:[o0-9]*', platform_id) OR glob('old:old*', platform_id) OR NOT glob('old:[0-9]*', reply_to_id))`,
		"parts without one prefix": `SELECT count(*) FROM deliveries WHERE NOT glob('old:o[0-9]*', platform_id)`,
		"moves under way":          `SELECT count(*) FROM chat_aliases WHERE moving = 1`,
	} {
		if got := storetest.Value[int](t, s, query); got != 0 {
			t.Errorf("%d %s", got, what)
		}
	}
	if got := storetest.Value[int64](t, s, storetest.LastDelivery()); got != seq {
		t.Errorf("the move made %d deliveries new to routd", got-seq)
	}
}

func TestMoveChat_UndeliveredRows_KeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
			INSERT INTO messages (chat_jid, direction, timestamp, received_at, out_state) SELECT ?, 'out', i, i, 'queued' FROM n`, oldJID)
	})
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 50) })
	storetest.Stored(t, s, &msg.Message{ChatJID: newJID, Direction: msg.Out, OutState: msg.OutQueued})
	other := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:9", Direction: msg.Out, OutState: msg.OutQueued})
	for _, jid := range []string{oldJID, newJID} {
		if m := storetest.Must(rows.NextOutbound(t.Context(), s.Reader, store.Lane{ChatJID: jid}))(t); m != nil {
			t.Errorf("row %d of %s is next while older ones are moved", m.ID, jid)
		}
	}
	if got := storetest.Must(rows.OutboxLanes(t.Context(), s.Reader, "telegram"))(t); len(got) != 1 || got[0].ChatJID != other.ChatJID {
		t.Errorf("lanes %v", got)
	}
	if pages := storetest.Must(chatmove.Finish(t.Context(), s, 51))(t); pages != 1 {
		t.Errorf("%d pages", pages)
	}
	if m := storetest.Must(rows.NextOutbound(t.Context(), s.Reader, store.Lane{ChatJID: newJID}))(t); m == nil || m.ID != 1 {
		t.Errorf("next is %+v", m)
	}
}

// TestFinishMoves_RowsOfOtherPrograms_FollowTheChat inserts rows under an address
// that the chat does not have any more.
func TestFinishMoves_RowsOfOtherPrograms_FollowTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	known := storetest.Stored(t, s, &msg.Message{ChatJID: oldJID, PlatformID: "1", Direction: msg.In})
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 50) })
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO messages (chat_jid, platform_id, direction, timestamp, received_at) VALUES (?1, '1', 'in', 1, 1), (?1, '2', 'in', 1, 1)`, oldJID)
	})
	storetest.Must(chatmove.Finish(t.Context(), s, 51))(t)
	again, other := storetest.Must(s.Message(t.Context(), known.ID+1))(t), storetest.Must(s.Message(t.Context(), known.ID+2))(t)
	if again.Disposition != msg.Dropped || again.Reason != msg.ReasonDuplicate || again.ChatJID != newJID {
		t.Errorf("the repeated row: %+v", again)
	}
	if other.Disposition != "" || other.ChatJID != newJID || other.PlatformID != "old:2" {
		t.Errorf("the new row: %+v", other)
	}
	if got := undecidedIDs(t, s, newJID); !slices.Equal(got, []int64{known.ID, other.ID}) {
		t.Errorf("undecided: %v", got)
	}
	if pages := storetest.Must(chatmove.Finish(t.Context(), s, 52))(t); pages != 0 {
		t.Errorf("%d pages with nothing to do", pages)
	}
}

func TestMoveChat_MovedTwice_FollowsTheChain(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const third = "telegram:-2005"
	first := storetest.Stored(t, s, &msg.Message{ChatJID: oldJID, PlatformID: "1", Direction: msg.In})
	second := storetest.Stored(t, s, &msg.Message{ChatJID: newJID, PlatformID: "1", Direction: msg.In})
	for _, to := range [][2]string{{newJID, third}, {oldJID, newJID}} { // the second move is reported first
		storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, to[0], to[1], 50) })
	}
	storetest.Must(chatmove.Finish(t.Context(), s, 51))(t)
	late := storetest.Stored(t, s, &msg.Message{ChatJID: oldJID, PlatformID: "2", Direction: msg.In})
	for id, want := range map[int64]string{first.ID: "old:old:1", second.ID: "old:1", late.ID: "old:old:2"} {
		if m := storetest.Must(s.Message(t.Context(), id))(t); m.ChatJID != third || m.PlatformID != want {
			t.Errorf("row %d is %s in %s, want %s", id, m.PlatformID, m.ChatJID, want)
		}
	}
	for jid, id := range map[string]int64{oldJID: first.ID, newJID: second.ID, third: 0} {
		if m := storetest.Must(s.MessageByPlatformID(t.Context(), jid, "1"))(t); m == nil && id != 0 || m != nil && m.ID != id {
			t.Errorf("message 1 of %s is %+v, want row %d", jid, m, id)
		}
	}
	storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, third, oldJID, 60) }) // and back
	storetest.Must(chatmove.Finish(t.Context(), s, 61))(t)
	if got := storetest.Must(s.Address(t.Context(), newJID))(t); got != oldJID {
		t.Errorf("the address is %s", got)
	}
	if got := len(undecidedIDs(t, s, oldJID)); got != 3 {
		t.Errorf("%d rows are undecided", got)
	}
}

// TestAliases_Loop_LosesNoRow makes a circle of addresses by hand.
func TestAliases_Loop_LosesNoRow(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO chat_aliases (old_jid, new_jid) VALUES (?1, ?2), (?2, ?1), ('a:1', 'a:1'), ('a:2', 'a:3')`, oldJID, newJID)
	})
	m := storetest.Stored(t, s, &msg.Message{ChatJID: oldJID, PlatformID: "1", Direction: msg.In})
	if m.ChatJID != oldJID || m.PlatformID != "1" {
		t.Errorf("stored as %+v", m)
	}
	storetest.Must(chatmove.Finish(t.Context(), s, 1))(t)
	if got := undecidedIDs(t, s, oldJID); !slices.Equal(got, []int64{m.ID}) {
		t.Errorf("undecided: %v", got)
	}
	if got := storetest.Value[int](t, s, `SELECT count(*) FROM chat_aliases`); got != 1 {
		t.Errorf("%d aliases are left", got)
	}
}

func TestMoveChat_LateWrites_GoToTheNewAddress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.PutChat(oldJID, msg.ChatGroup, "Team", 1), chatmove.Move(tx, oldJID, newJID, 2),
			tx.PutChat(newJID, msg.ChatGroup, "Supergroup", 3))
	})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.PutChat(oldJID, msg.ChatDM, "Team, as it was", 4), tx.EnsureChat(oldJID, 4),
			gatedtest.PinTopic(tx, oldJID, "#a"), gatedtest.PinGroup(tx, oldJID, "acme", 4), gatedtest.BindThread(tx, oldJID, "7", "#a"),
			tx.PutThread(msg.Thread{ChatJID: oldJID, ID: "7", Title: "Deploys"}))
	})
	want := &msg.Chat{JID: newJID, Kind: msg.ChatGroup, Title: "Supergroup", StickyTopic: "#a", StickyGroup: "acme", StickyAt: 4}
	if diff := cmp.Diff(want, storetest.Must(s.Chat(t.Context(), newJID))(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if storetest.Must(s.Chat(t.Context(), oldJID))(t) != nil {
		t.Error("the old address has a row again")
	}
	if storetest.Must(factrows.TopicOfThread(t.Context(), s.Reader, newJID, "7"))(t) != "#a" || storetest.Must(rows.Thread(t.Context(), s.Reader, newJID, "7"))(t).Title != "Deploys" {
		t.Error("the thread is not in the new chat")
	}
}

func TestMoveChat_EmptyPins_AreNone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		return errors.Join(tx.PutChat(oldJID, msg.ChatGroup, "", 1), tx.PutChat(newJID, msg.ChatGroup, "", 1),
			gatedtest.PinTopic(tx, oldJID, "#a"), gatedtest.PinGroup(tx, oldJID, "acme", 4),
			tx.Exec(`UPDATE chats SET sticky_topic = '', sticky_group = '' WHERE jid = ?`, newJID),
			chatmove.Move(tx, oldJID, newJID, 2))
	})
	if c := storetest.Must(s.Chat(t.Context(), newJID))(t); c.StickyTopic != "#a" || c.StickyGroup != "acme" {
		t.Errorf("the chat is %+v", c)
	}
}

func TestMoveChat_Routes_OnlyThoseOfTheChat(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const none = ""
	tests := []struct{ match, want, copied string }{
		{"chat_jid=telegram:-5", "chat_jid=telegram:-1005", none},
		{`chat_jid=telegram:\-5 verb=mention`, "chat_jid=telegram:-1005 verb=mention", none},
		{"platform=telegram chat_jid=telegram:-5 room=-5", "platform=telegram chat_jid=telegram:-1005 room=-1005", none},
		{"room=-5 platform=telegram", "room=-1005 platform=telegram", none},
		{"platform=discord room=-5", "platform=discord room=-5", none},
		{"platform=telegram account= room=-5", "platform=telegram account= room=-1005", none},
		{"platform=telegram account=* room=-5", "platform=telegram account=* room=-1005", none},
		{"platform=telegram account=work room=-5", "platform=telegram account=work room=-5", none},
		{"account= room=-5", "account= room=-5", "platform=telegram account= room=-1005"},
		{"room=-5 verb=mention", "room=-5 verb=mention", "platform=telegram room=-1005 verb=mention"},
		{"platform=* room=-5", "platform=* room=-5", "platform=telegram room=-1005"},
		{"room=-5*", "room=-5*", none},
		{"chat_jid=telegram:-?", "chat_jid=telegram:-?", none},
		{"chat_jid=discord:-5 room=-5", "chat_jid=discord:-5 room=-5", none},
		{"room=-50", "room=-50", none},
		{"sender=telegram:-5", "sender=telegram:-5", none},
		{"", "", none},
	}
	var want []string
	storetest.Write(t, s, func(tx *store.Tx) (err error) {
		for _, tt := range tests {
			err = errors.Join(err, tx.PutRoute(&msg.Route{Seq: 10, Match: tt.match, Target: "main"}))
			want = append(want, tt.want)
			if tt.copied != none {
				want = append(want, tt.copied)
			}
		}
		return errors.Join(err, tx.PutRoute(&msg.Route{Seq: 11, Match: "room=-5", Target: "last"}))
	})
	want = append(want, "room=-5", "platform=telegram room=-1005")
	for range 2 {
		storetest.Write(t, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 1) })
		var got []string
		for _, r := range storetest.Must(s.Routes(t.Context()))(t) {
			got = append(got, r.Match)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in order of evaluation (-want +got):\n%s", diff)
		}
	}
}

// BenchmarkMoveSome moves a chat with 10^5 rows, deliveries and turns. ns/op is a
// page; maxms is the longest that a page held the write lock.
func BenchmarkMoveSome(b *testing.B) {
	s := storetest.Open(b)
	storetest.OldChat(b, s, oldJID, 100_000, 10_000)
	storetest.Write(b, s, func(tx *store.Tx) error { return chatmove.Move(tx, oldJID, newJID, 50) })
	var longest time.Duration
	pages := 0
	b.ResetTimer()
	for more := true; more; pages++ {
		start := time.Now()
		storetest.Write(b, s, func(tx *store.Tx) (err error) {
			more, err = chatmove.MoveSome(tx, oldJID, 51)
			return err
		})
		longest = max(longest, time.Since(start))
	}
	b.ReportMetric(float64(pages), "pages")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(pages), "ms/page")
	b.ReportMetric(float64(longest.Milliseconds()), "maxms")
}

func TestMoveChat_Hooks_AnswerAtTheNewAddress(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	const config = `{"hooks":{"a":{"id":"1","to":"telegram:-5"},"b":{"id":"2","to":"telegram:-50"}}}`
	storetest.Write(t, s, func(tx *store.Tx) error {
		_, err := tx.PutGroup(&msg.Group{Folder: "main", Config: []byte(config), CreatedAt: 1})
		return errors.Join(err, chatmove.Move(tx, "telegram:-5", "telegram:-1005", 1))
	})
	g := storetest.Must(s.Group(t.Context(), "main"))(t)
	if want := strings.Replace(config, `"telegram:-5"`, `"telegram:-1005"`, 1); string(g.Config) != want {
		t.Errorf("%s\nwant %s", g.Config, want)
	}
}
