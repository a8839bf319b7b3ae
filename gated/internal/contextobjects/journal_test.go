package contextobjects

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

func TestOpen_AfterRestart_HasWhatIsWithinItsTTL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	article := inTopic("#a", object(msg.ContextArticle, 1))
	article.Label, article.URL, article.CreatedBy, article.CreatedByBot = "Tides", "https://example.org/tides", alice, true
	f.activate(ArticleSummarized, article)
	f.activate(PollCreated, inTopic("#a", poll(2)))
	f.activate(ReminderCreated, Object{ChatJID: chatA, Topic: "#a", Kind: msg.ContextReminder, ID: "reminder:3", DueAt: start + ms(time.Hour)})
	f.activate(FollowupAttached, Object{ChatJID: chatB, Kind: msg.ContextMessage, SourceMessageID: 9})
	before := f.x.memory()
	f.restart()
	if diff := cmp.Diff(before, f.x.memory()); diff != "" || len(before) != 4 {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	f.pass(time.Hour)
	f.restart()
	f.want("an hour later", f.query("#a"), ScopeTopic, "poll:2", "article:1")
	if n := f.x.Len(); n != 2 {
		t.Errorf("%d objects in memory", n)
	}
}

func TestOpen_ShorterTTLs_EndObjectsEarlier(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.activate(PollCreated, poll(2))
	set := testSettings()
	set.TTLs.Medium = time.Hour
	x, err := Open(t.Context(), set, f.st, f.now)
	if err != nil {
		t.Fatal(err)
	}
	f.x = x
	f.pass(time.Hour)
	f.want("after the shorter TTL", f.query(""), ScopeChat, "poll:2")
}

// TestFollow_MovedChat_KeepsItsObjects moves a chat as another process does, in the rows alone.
func TestFollow_MovedChat_KeepsItsObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const newer = "telegram:-1001"
	link := Object{Kind: msg.ContextLink, ID: "link:abc", URL: "https://example.org"}
	for _, jid := range []string{chatA, newer} {
		link.ChatJID, link.Label = jid, "in "+jid
		f.activate(URLDiscussed, link)
	}
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.write(func(tx *store.Tx) error { return tx.MoveChat(chatA, newer, f.now) })
	f.activate(FollowupAttached, object(msg.ContextMessage, 2)) // by the former address
	for _, jid := range []string{chatA, newer} {
		if present, err := f.x.Follow(t.Context(), f.st.Reader, jid, f.now); present != newer || err != nil {
			t.Fatalf("%s is at %s, %v", jid, present, err)
		}
	}
	q := f.query("")
	q.ChatJID = newer
	f.want("the new chat", q, ScopeChat, "article:1", "link:abc", "message:2")
	f.want("the former chat", f.query(""), ScopeChat)
	if diff := cmp.Diff(f.journal(), f.x.memory()); diff != "" {
		t.Errorf("memory differs from the journal (-journal +memory):\n%s", diff)
	}
	if got := f.x.memory()[newer+" link:abc"].Label; got != "in "+newer {
		t.Errorf("of two objects the one %q is left", got)
	}
	f.restart()
	f.want("after a restart", q, ScopeChat, "article:1", "link:abc", "message:2")
}

// A chat that has objects is looked up without a read, also where chats have moved; a move is noticed after
// followDelay.
func TestFollow_ChatWithObjects_ReadsNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const newer = "telegram:-1001"
	o := object(msg.ContextArticle, 1)
	o.ChatJID = "telegram:-9"
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.activate(ArticleSummarized, o)
	f.write(func(tx *store.Tx) error { return tx.MoveChat("telegram:-9", newer, f.now) })
	follow := func(ctx context.Context, jid string) (string, error) { return f.x.Follow(ctx, f.st.Reader, jid, f.now) }
	if present, err := follow(t.Context(), chatA); present != chatA || err != nil {
		t.Fatalf("%s, %v", present, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel() // each read fails
	f.now += followDelay.Milliseconds() - 1
	for jid, want := range map[string]string{chatA: chatA, newer: newer, "telegram:-9": newer} {
		if present, err := follow(ended, jid); present != want || err != nil {
			t.Errorf("%s is at %s, %v", jid, present, err)
		}
	}
	f.now++
	if _, err := follow(ended, chatA); err == nil {
		t.Error("moves were not read again")
	}
	if _, err := follow(ended, "telegram:-10"); err == nil {
		t.Error("the chat of no objects: moves were not read")
	}
}

// TestIndex_MemoryIsTheJournal applies events, failures, restarts and moves in any order: what is
// active in memory is what is active in the journal.
func TestIndex_MemoryIsTheJournal(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	st := storetest.OpenAt(t, path, nil)
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++ // each has chats of its own, in one database
		f := &fixture{t: t, path: path, st: st, now: start + int64(round)*ms(1000*time.Hour)}
		if err := st.Write(t.Context(), func(tx *store.Tx) error {
			_, err := rows.DeleteEndedContextObjects(tx, msg.Forever, 1<<20)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		f.restart()
		jid := func(n int) string { return fmt.Sprintf("telegram:-%d%d", round, n) }
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			chat := jid(rapid.IntRange(1, 2).Draw(rt, "chat"))
			f.now += ms(time.Minute) * rapid.Int64Range(0, 30).Draw(rt, "minutes")
			id := rapid.Int64Range(1, 5).Draw(rt, "id")
			switch step := rapid.IntRange(0, 10).Draw(rt, "step"); step {
			case 0:
				f.restart()
			case 1:
				if err := f.x.Prune(t.Context(), st, f.now); err != nil {
					rt.Fatal(err)
				}
			case 2:
				f.write(func(tx *store.Tx) error { return f.x.ClosePoll(tx, chat, id, f.now, f.now) })
			case 3:
				f.write(func(tx *store.Tx) error { return tx.MoveChat(jid(1), jid(2), f.now) })
				if err := f.x.followAll(t.Context(), st.Reader, f.now); err != nil {
					rt.Fatal(err)
				}
			case 10:
				f.write(func(tx *store.Tx) error { return f.x.EndOf(tx, chat, id) })
				for _, o := range f.journal() {
					if o.ChatJID == chat && o.SourceMessageID == id {
						rt.Fatalf("after its message was deleted: %+v", o)
					}
				}
			default:
				o := drawObject(rt)
				o.ChatJID, o.ID, o.SourceMessageID = chat, msg.ContextObjectID(o.Kind, id), id
				event, failure := FollowupAttached, error(nil)
				if !event.Fits(o.Kind) {
					event = ReminderListed
				}
				if step == 4 {
					failure = fmt.Errorf("the call failed")
				}
				_ = st.Write(t.Context(), func(tx *store.Tx) error {
					if _, err := f.x.Activate(tx, event, o, f.now); err != nil {
						rt.Fatal(err)
					}
					return failure
				})
			}
			if diff := cmp.Diff(active(f.journal(), f.now), active(f.x.memory(), f.now)); diff != "" {
				rt.Fatalf("memory differs from the journal (-journal +memory):\n%s", diff)
			}
		}
	})
}

func active(all map[string]Object, now int64) map[string]Object {
	for id, o := range all {
		if o.ActiveUntil <= now {
			delete(all, id)
		}
	}
	return all
}

// Two processes share the rows: what one activates, closes and moves is what the other finds.
func TestFollow_OtherProcess_ReadsItsObjects(t *testing.T) {
	f := newFixture(t)
	settings := testSettings()
	settings.Shared = true
	other, err := Open(t.Context(), settings, f.st, f.now)
	if err != nil {
		t.Fatal(err)
	}
	const chat = "telegram:7"
	found := func() (ids []string) {
		t.Helper()
		present, err := other.Follow(t.Context(), f.st.Reader, chat, f.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range other.Lookup(&Query{ChatJID: present, Now: f.now, Max: 10}, nil).Matches {
			ids = append(ids, m.Object.ID)
		}
		return ids
	}
	activate := func(message int64) {
		t.Helper()
		f.write(func(tx *store.Tx) error {
			_, err := f.x.Activate(tx, ArticleSummarized, Object{ChatJID: chat, Kind: msg.ContextArticle, SourceMessageID: message}, f.now)
			return err
		})
	}
	if ids := found(); ids != nil {
		t.Fatalf("it begins with %v", ids)
	}
	activate(41)
	if ids := found(); !slices.Equal(ids, []string{msg.ContextObjectID(msg.ContextArticle, 41)}) {
		t.Errorf("after the other's first object it finds %v", ids)
	}
	activate(42)
	if ids := found(); len(ids) != 2 {
		t.Errorf("after the other's second object it finds %v", ids)
	}
	f.pass(48 * time.Hour)
	if ids := found(); ids != nil {
		t.Errorf("after their end it finds %v", ids)
	}
}
