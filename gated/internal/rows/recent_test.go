package rows_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"arizuko/gated/internal/rows"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// recentTexts are the contents of a chat's recent rows.
func recentTexts(t *testing.T, s *store.Store, scope rows.Scope, upto int64) (all []string) {
	t.Helper()
	for _, m := range storetest.Must(rows.Recent(t.Context(), s.Reader, scope, upto))(t) {
		all = append(all, m.Content)
	}
	return all
}

const everything = 1 << 62

func TestRecent_CountsWhatWasSaid(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	in := func(set func(*msg.Message), d store.Decision) {
		m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Sender: "telegram:7", Timestamp: 1, ReceivedAt: 2}
		set(m)
		storetest.Stored(t, s, m)
		if d.Disposition != "" {
			storetest.Decide(t, s, m.ID, d)
		}
	}
	out := func(text string, kind msg.Kind, source string, state msg.OutState) {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Kind: kind, IsBot: true, Content: text, Source: source, OutState: state})
	}
	said := func(text, verb string) func(*msg.Message) {
		return func(m *msg.Message) { m.Content, m.Verb = text, verb }
	}
	in(said("undecided", msg.VerbMessage), store.Decision{})
	in(said("routed", msg.VerbMention), store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: storetest.Folder})
	in(said("observed", msg.VerbReply), store.Decision{Disposition: msg.Observed, Reason: msg.ReasonRouteObserve, RoutedTo: storetest.Folder})
	in(said("no route", ""), store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoRoute})
	in(said("prefix", msg.VerbMessage), store.Decision{Disposition: msg.Prefix, Reason: msg.ReasonPrefixTopic})
	in(func(m *msg.Message) { m.Attachments = []msg.Attachment{{Name: "cat.jpg"}} }, store.Decision{})
	in(func(m *msg.Message) { m.Content, m.IsBot = "another bot", true }, store.Decision{})

	in(said("👍", msg.VerbReaction), store.Decision{})
	in(said("joined", msg.VerbJoin), store.Decision{})
	in(said("left", msg.VerbLeave), store.Decision{})
	in(said("", msg.VerbMessage), store.Decision{})
	in(said("/ping", msg.VerbMessage), store.Decision{Disposition: msg.Command, Reason: msg.ReasonCommand})
	in(said("#deploy", msg.VerbMessage), store.Decision{Disposition: msg.Sticky, Reason: msg.ReasonStickyTopic})
	in(said("@ops", msg.VerbMessage), store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonPinDenied})
	in(said("ignored", msg.VerbMessage), store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonBuiltinDrop})
	in(said("not admitted", msg.VerbMessage), store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoAccess})
	in(func(m *msg.Message) { m.Content, m.DerivedFrom, m.Source = "derived", 1, msg.SourcePrefix }, store.Decision{})

	out("answer", msg.KindMessage, msg.SourceAgent, msg.OutSent)
	out("queued", msg.KindMessage, msg.SourceTool, msg.OutQueued)
	out("caption", msg.KindFile, msg.SourceTool, msg.OutAmbiguous)
	out("cancelled", msg.KindMessage, msg.SourceAgent, msg.OutCancelled)
	out("failed", msg.KindMessage, msg.SourceAgent, msg.OutFailed)
	out("notice", msg.KindMessage, msg.SourceNotice, msg.OutSent)
	out("pong", msg.KindMessage, msg.SourceCommand, msg.OutSent)
	out("👍", msg.KindReaction, msg.SourceTool, msg.OutSent)
	storetest.Inbound(t, s, "telegram:-2", "elsewhere")

	want := []string{"undecided", "routed", "observed", "no route", "prefix", "", "another bot", "answer", "queued", "caption"}
	differ(t, "rows", recentTexts(t, s, rows.Scope{ChatJID: storetest.Chat}, everything), want)
	differ(t, "up to a row", recentTexts(t, s, rows.Scope{ChatJID: storetest.Chat}, 2), want[:2])
}

func TestRecent_AppliesChanges(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	post := func(id, text string) *msg.Message {
		return storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, PlatformID: id, Content: text, Sender: "telegram:7"})
	}
	change := func(target, verb, text string) *msg.Message {
		return storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Verb: verb, TargetID: target, Content: text, Sender: "telegram:7"})
	}
	first := post("1", "one")
	post("2", "two")
	post("3", "three")
	post("4", "four")
	answer := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "anser", Source: msg.SourceAgent, OutState: msg.OutSent})
	wrong := storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Content: "wrong", Source: msg.SourceAgent, OutState: msg.OutSent})
	before := change("1", msg.VerbEdit, "one, edited").ID
	change("1", msg.VerbEdit, "one, edited again")
	change("2", msg.VerbEdit, "two, edited")
	change("2", msg.VerbDelete, "")
	denied := change("3", msg.VerbEdit, "three, denied")
	storetest.Decide(t, s, denied.ID, store.Decision{Disposition: msg.Dropped, Reason: msg.ReasonNoAccess})
	change("4", msg.VerbReaction, "👍")
	own := func(kind msg.Kind, of *msg.Message, text string, state msg.OutState) {
		storetest.Stored(t, s, &msg.Message{ChatJID: storetest.Chat, Direction: msg.Out, Kind: kind, DerivedFrom: of.ID, Content: text, Source: msg.SourceTool, OutState: state})
	}
	own(msg.KindEdit, answer, "answer", msg.OutQueued)
	own(msg.KindEdit, answer, "refused", msg.OutFailed)
	own(msg.KindReaction, answer, "👍", msg.OutSent)
	own(msg.KindDelete, wrong, "", msg.OutSent)

	scope := rows.Scope{ChatJID: storetest.Chat}
	differ(t, "rows", recentTexts(t, s, scope, everything), []string{"one, edited again", "three", "four", "answer"})
	differ(t, "before later changes", recentTexts(t, s, scope, before), []string{"one, edited", "two", "three", "four", "anser", "wrong"})

	if got := storetest.Must(factrows.LastChange(t.Context(), s.Reader, first.ID, everything))(t); *got != (factrows.Change{Content: "one, edited again"}) {
		t.Errorf("change of an edited row: %+v", got)
	}
	if got := storetest.Must(factrows.LastChange(t.Context(), s.Reader, wrong.ID, everything))(t); !got.Deleted {
		t.Errorf("change of a deleted row: %+v", got)
	}
	if got := storetest.Must(factrows.LastChange(t.Context(), s.Reader, first.ID, first.ID))(t); got != nil {
		t.Errorf("change before the edit: %+v", got)
	}
}

func TestRecent_LinksReplies(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(m *msg.Message) int64 { m.ChatJID = storetest.Chat; return storetest.Stored(t, s, m).ID }
	root := put(&msg.Message{Direction: msg.In, PlatformID: "10", Content: "root"})
	answer := put(&msg.Message{Direction: msg.Out, Content: "long", ReplyToID: "10", Source: msg.SourceAgent, OutState: msg.OutQueued})
	storetest.Write(t, s, func(tx *store.Tx) error {
		if err := tx.ClaimOutbound(answer, 2, 5); err != nil {
			return err
		}
		for part, id := range []string{"11", "12"} {
			err := tx.PutDelivery(store.Delivery{MessageID: answer, Part: part, State: msg.OutSent, PlatformID: id}, 5)
			if err != nil {
				return err
			}
		}
		return tx.SettleOutbound(answer, msg.OutSent, "11")
	})
	put(&msg.Message{Direction: msg.In, Content: "to a part", ReplyToID: "12"})
	put(&msg.Message{Direction: msg.In, Content: "to nothing", ReplyToID: "99"})
	rows := storetest.Must(rows.Recent(t.Context(), s.Reader, rows.Scope{ChatJID: storetest.Chat}, everything))(t)
	var parents []int64
	for _, m := range rows {
		parents = append(parents, m.Parent)
	}
	differ(t, "parents", parents, []int64{0, root, answer, 0})
}

func TestRecent_ThreadsAndTopics(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for _, m := range []msg.Message{
		{ChatJID: storetest.Chat, Content: "top"}, {ChatJID: storetest.Chat, Content: "in 7", ThreadID: "7"}, {ChatJID: storetest.Chat, Content: "in 8", ThreadID: "8"},
		{ChatJID: "web:acme", Content: "main"}, {ChatJID: "web:acme", Content: "tab", Topic: "#a"},
	} {
		m.Direction = msg.In
		storetest.Stored(t, s, &m)
	}
	general, tab := "", "#a"
	for _, tt := range []struct {
		scope rows.Scope
		want  []string
	}{
		{rows.Scope{ChatJID: storetest.Chat}, []string{"top", "in 7", "in 8"}},
		{rows.Scope{ChatJID: storetest.Chat, ThreadID: "7"}, []string{"in 7"}},
		{rows.Scope{ChatJID: "web:acme", WebTopic: &general}, []string{"main"}},
		{rows.Scope{ChatJID: "web:acme", WebTopic: &tab}, []string{"tab"}},
	} {
		differ(t, fmt.Sprintf("%+v", tt.scope), recentTexts(t, s, tt.scope, everything), tt.want)
	}
}

// TestRecent_Thread_BeginsWithWhatItWasOpenedFrom: in a thread that was opened from the second part of an answer, from a message, and
// from one that was deleted; and in a forum, whose thread has its first post itself.
func TestRecent_Thread_BeginsWithWhatItWasOpenedFrom(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	put := func(m msg.Message) *msg.Message { m.ChatJID = storetest.Chat; return storetest.Stored(t, s, &m) }
	long := put(msg.Message{Direction: msg.Out, Content: "long answer", Source: msg.SourceAgent, OutState: msg.OutQueued})
	storetest.Write(t, s, func(tx *store.Tx) error {
		return tx.Exec(`INSERT INTO deliveries (message_id, part, seq, state, platform_id, updated_at) VALUES (?1, 0, 1, 'sent', '20', 1), (?1, 1, 2, 'sent', '21', 1)`, long.ID)
	})
	post := put(msg.Message{Direction: msg.In, PlatformID: "30", Content: "post"})
	put(msg.Message{Direction: msg.In, PlatformID: "40", Content: "regretted"})
	put(msg.Message{Direction: msg.In, Verb: msg.VerbDelete, TargetID: "40"})
	put(msg.Message{Direction: msg.In, PlatformID: "50", ThreadID: "50", Content: "of a forum"})
	for _, thread := range []string{"21", "30", "40", "50", "60"} {
		put(msg.Message{Direction: msg.In, ThreadID: thread, Content: "in " + thread})
		put(msg.Message{Direction: msg.In, ThreadID: thread, Content: "also in " + thread})
	}
	for thread, want := range map[string][]rows.RecentRow{
		"21": {{ID: long.ID, Content: "long answer", Opens: true}, {Parent: long.ID, Content: "in 21"}, {Parent: long.ID, Content: "also in 21"}},
		"30": {{ID: post.ID, Content: "post", Opens: true}, {Parent: post.ID, Content: "in 30"}, {Parent: post.ID, Content: "also in 30"}},
		"40": {{Content: "in 40"}, {Content: "also in 40"}},
		"50": {{Content: "of a forum"}, {Content: "in 50"}, {Content: "also in 50"}},
		"60": {{Content: "in 60"}, {Content: "also in 60"}},
	} {
		var got []rows.RecentRow
		for _, m := range storetest.Must(rows.Recent(t.Context(), s.Reader, rows.Scope{ChatJID: storetest.Chat, ThreadID: thread}, everything))(t) {
			short := rows.RecentRow{Content: m.Content, Opens: m.Opens}
			if m.Opens {
				short.ID = m.ID
			} else if thread != "50" {
				short.Parent = m.Parent
			}
			got = append(got, short)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(rows.RecentRow{})); diff != "" {
			t.Errorf("thread %s (-want +got):\n%s", thread, diff)
		}
	}
	last := put(msg.Message{Direction: msg.In, ThreadID: "30", Content: "last"})
	differ(t, "around its last message", textsOf(storetest.Must(rows.Around(t.Context(), s.Reader, last, 5))(t)), []string{"post", "in 30", "also in 30", "last"})
	if got := recentTexts(t, s, rows.Scope{ChatJID: storetest.Chat, ThreadID: "30"}, post.ID-1); len(got) != 0 {
		t.Errorf("before it was there: %q", got)
	}
}

func TestRecent_IsBounded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	storetest.Write(t, s, func(tx *store.Tx) error {
		for i := range 1105 {
			m := &msg.Message{ChatJID: storetest.Chat, Direction: msg.In, Content: fmt.Sprint(i)}
			if i >= 150 {
				m.Direction, m.Source, m.OutState = msg.Out, msg.SourceNotice, msg.OutSent
			}
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	if got := recentTexts(t, s, rows.Scope{ChatJID: storetest.Chat}, everything); len(got) != 45 || got[0] != "105" {
		t.Errorf("of 1,000 rows %d count, from %q on", len(got), got[0])
	}
	if got := recentTexts(t, s, rows.Scope{ChatJID: storetest.Chat}, 150); len(got) != 100 || got[0] != "50" {
		t.Errorf("%d rows from %q on", len(got), got[0])
	}
	long := storetest.Stored(t, s, &msg.Message{ChatJID: "telegram:-2", Direction: msg.In, Content: fmt.Sprintf("%05000d", 1)})
	rows := storetest.Must(rows.Recent(t.Context(), s.Reader, rows.Scope{ChatJID: long.ChatJID}, everything))(t)
	if len(rows[0].Content) != 2048 || rows[0].Omitted != 5000-2048 {
		t.Errorf("%d bytes, %d omitted", len(rows[0].Content), rows[0].Omitted)
	}
}
