package contextobjects

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// TestActivate_EachEvent_HasItsReasonAndTTL has one case per event.
func TestActivate_EachEvent_HasItsReasonAndTTL(t *testing.T) {
	t.Parallel()
	reminder := Object{ChatJID: chatA, Kind: msg.ContextReminder, ID: "reminder:5", DueAt: start + ms(48*time.Hour)}
	for _, c := range []struct {
		name   string
		event  Event
		object Object
		reason string
		active time.Duration // below 0 for ever
	}{
		{"by summary", ArticleSummarized, object(msg.ContextArticle, 7), "activated_by_summary", 2 * time.Hour},
		{"by summary reused", SummaryReused, object(msg.ContextSummary, 7), "activated_by_summary", 2 * time.Hour},
		{"by url discussion", URLDiscussed, object(msg.ContextLink, 7), "activated_by_url_discussion", 2 * time.Hour},
		{"by media inspection", MediaInspected, object(msg.ContextImage, 7), "activated_by_media_inspection", time.Hour},
		{"by poll create", PollCreated, poll(7), "activated_by_poll_create", -1},
		{"by poll list", PollListed, poll(7), "activated_by_poll_list", -1},
		{"by reminder create", ReminderCreated, reminder, "activated_by_reminder_create", 20 * time.Minute},
		{"by reminder list", ReminderListed, reminder, "activated_by_reminder_list", 20 * time.Minute},
		{"by reminder update", ReminderUpdated, reminder, "activated_by_reminder_update", 20 * time.Minute},
		{"by resolver", ResolvedByResolver, object(msg.ContextMessage, 7), "activated_by_resolver", 20 * time.Minute},
		{"by follow-up", FollowupAttached, object(msg.ContextBotMessage, 7), "activated_by_followup", 20 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			o := f.activate(c.event, c.object)
			res := f.want("at once", f.query(""), ScopeChat, o.ID)
			if !strings.Contains(strings.Join(res.Matches[0].Reasons.Codes(), " "), c.reason) {
				t.Errorf("reasons %v", res.Matches[0].Reasons.Codes())
			}
			if c.active < 0 {
				f.pass(1000 * time.Hour)
				f.want("much later", f.query(""), ScopeChat, o.ID)
				return
			}
			f.pass(c.active - time.Millisecond)
			f.want("just before its end", f.query(""), ScopeChat, o.ID)
			f.pass(time.Millisecond)
			f.want("at its end", f.query(""), ScopeChat)
		})
	}
}

// TestActivate_PlainMentionOrAttachment_ActivatesNothing stores messages that are no event.
func TestActivate_PlainMentionOrAttachment_ActivatesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write(func(tx *store.Tx) error {
		for _, m := range []*msg.Message{
			{ChatJID: chatA, PlatformID: "1", Direction: msg.In, Verb: msg.VerbMention, Content: "@bot see https://example.org/article"},
			{ChatJID: chatA, PlatformID: "2", Direction: msg.In, Content: "look", Attachments: []msg.Attachment{{Path: "media/202601/a.jpg", MIME: "image/jpeg"}}},
		} {
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
		}
		return nil
	})
	f.want("after a mention and an attachment", f.query(""), ScopeChat)
	if err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		_, err := f.x.Activate(tx, "mentioned", object(msg.ContextArticle, 1), f.now)
		return err
	}); err == nil || !strings.Contains(err.Error(), `unknown event "mentioned"`) {
		t.Errorf("an event that is none: %v", err)
	}
}

func TestActivate_SameObjectAgain_KeepsItsCreationAndCollectsReasons(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := object(msg.ContextArticle, 7)
	first.Label, first.CreatedBy = "Tides", alice
	f.activate(ArticleSummarized, first)
	f.pass(time.Hour)
	again := inTopic("#b", object(msg.ContextArticle, 7))
	again.CreatedBy = bob
	got := f.activate(FollowupAttached, again)
	want := Object{ChatJID: chatA, ID: "article:7", Kind: msg.ContextArticle, Topic: "#b", SourceMessageID: 7, Label: "Tides", CreatedBy: alice,
		CreatedAt: start, LastTouchedAt: start + ms(time.Hour), ActiveUntil: start + ms(3*time.Hour),
		Reasons: msg.ActivatedBySummary | msg.ActivatedByFollowup}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the object (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Object{chatA + " article:7": want}, f.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestActivate_MaxTTL_CountsFromCreation touches an article every hour.
func TestActivate_MaxTTL_CountsFromCreation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 24 {
		f.activate(FollowupAttached, object(msg.ContextArticle, 7))
		f.pass(time.Hour)
	}
	f.want("24 hours after its creation", f.query(""), ScopeChat)
	if o := f.activate(FollowupAttached, object(msg.ContextArticle, 7)); o.CreatedAt != f.now {
		t.Errorf("a new event after its end: created %d ms ago", f.now-o.CreatedAt)
	}
}

func TestActivate_RolledBack_ChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	o := f.activate(PollCreated, poll(1))
	before := f.stored()
	failed := errors.New("the rest of the call failed")
	err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		if _, err := f.x.Activate(tx, URLDiscussed, object(msg.ContextLink, 9), f.now); err != nil {
			return err
		}
		if err := f.x.ClosePoll(tx, chatA, 1, f.now, f.now); err != nil {
			return err
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	f.want("after the failure", f.query(""), ScopeChat, o.ID)
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if res := f.lookup(f.query("")); !has(res.Matches[0].Reasons, msg.OpenPoll) {
		t.Error("the poll is closed")
	}
}

func TestActivate_BadObjects_AreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for what, o := range map[string]Object{
		"unknown kind": {ChatJID: chatA, Kind: "song", SourceMessageID: 1},
		"no id":        {ChatJID: chatA, Kind: msg.ContextArticle},
		"no chat":      {Kind: msg.ContextArticle, SourceMessageID: 1},
		"long id":      {ChatJID: chatA, Kind: msg.ContextLink, ID: strings.Repeat("x", maxIDLength+1)},
		"long URL":     {ChatJID: chatA, Kind: msg.ContextLink, ID: "link:1", URL: strings.Repeat("é", MaxURL+1)},
	} {
		err := f.st.Write(t.Context(), func(tx *store.Tx) error {
			_, err := f.x.Activate(tx, URLDiscussed, o, f.now)
			return err
		})
		if err == nil {
			t.Errorf("%s was stored", what)
		}
	}
	long := object(msg.ContextArticle, 1)
	long.Label = "a\nb\x00 \t" + strings.Repeat("é", 1_000_000)
	if o := f.activate(ArticleSummarized, long); len([]rune(o.Label)) != maxLabel || !strings.HasPrefix(o.Label, "a b éé") {
		t.Errorf("label %.20q of %d runes", o.Label, len([]rune(o.Label)))
	}
}

// TestActivate_TooManyInAChat_EndsTheOldest keeps open polls longest.
func TestActivate_TooManyInAChat_EndsTheOldest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(PollCreated, poll(1))
	f.write(func(tx *store.Tx) error {
		for i := range int64(maxPerChat + 20) {
			f.now++
			if _, err := f.x.Activate(tx, FollowupAttached, object(msg.ContextArticle, 1000+i), f.now); err != nil {
				return err
			}
		}
		return nil
	})
	all := f.stored()
	if len(all) != maxPerChat {
		t.Errorf("%d objects", len(all))
	}
	if _, kept := all[chatA+" poll:1"]; !kept {
		t.Error("the open poll is gone")
	}
	if _, kept := all[chatA+" article:1020"]; kept {
		t.Error("the article that was touched longest ago is still there")
	}
}

// TestActivate_EndedObjects_DoNotCountTowardTheLimit has messages that were touched after the articles and end before them.
func TestActivate_EndedObjects_DoNotCountTowardTheLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	add := func(kind Kind, from, n int64) {
		f.write(func(tx *store.Tx) error {
			for i := range n {
				f.now++
				if _, err := f.x.Activate(tx, FollowupAttached, object(kind, from+i), f.now); err != nil {
					return err
				}
			}
			return nil
		})
	}
	add(msg.ContextArticle, 1000, maxPerChat-10)
	add(msg.ContextMessage, 2000, 10)
	f.pass(21 * time.Minute)
	add(msg.ContextArticle, 3000, 10)
	if got := f.lookup(f.query("")).Found; got != maxPerChat {
		t.Errorf("%d live objects, want %d", got, maxPerChat)
	}
	add(msg.ContextArticle, 4000, 1)
	if _, kept := f.stored()[chatA+" article:1000"]; kept {
		t.Error("beyond the limit, the object that was touched longest ago is still there")
	}
}

func TestActivate_StoresAllFields(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	article := inTopic("#a", object(msg.ContextArticle, 1))
	article.Label, article.URL, article.CreatedBy, article.CreatedByBot = "Tides", "https://example.org/tides", alice, true
	closed := poll(2)
	closed.ClosedAt = start - 1
	want := map[string]Object{}
	for _, o := range []Object{
		f.activate(ArticleSummarized, article),
		f.activate(PollListed, closed),
		f.activate(ReminderCreated, Object{ChatJID: chatA, Kind: msg.ContextReminder, ID: "reminder:3", DueAt: start + ms(time.Hour)}),
		f.activate(FollowupAttached, Object{ChatJID: chatB, Kind: msg.ContextMessage, SourceMessageID: 9}),
	} {
		want[o.ChatJID+" "+o.ID] = o
	}
	if diff := cmp.Diff(want, f.stored()); diff != "" || len(want) != 4 {
		t.Errorf("stored (-activated +stored):\n%s", diff)
	}
}

func TestLookup_ShorterTTLs_EndObjectsEarlier(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.activate(PollCreated, poll(2))
	f.x.TTLs.Medium = time.Hour
	f.pass(time.Hour - time.Millisecond)
	f.want("before the shorter TTL", f.query(""), ScopeChat, "poll:2", "article:1")
	f.pass(time.Millisecond)
	f.want("after the shorter TTL", f.query(""), ScopeChat, "poll:2")
}

func TestLookup_MovedChat_KeepsItsObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	link := Object{Kind: msg.ContextLink, ID: "link:abc", URL: "https://example.org"}
	for _, jid := range []string{chatA, newer} {
		link.ChatJID, link.Label = jid, "in "+jid
		f.activate(URLDiscussed, link)
	}
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.write(func(tx *store.Tx) error { return chatmove.Move(tx, chatA, newer, f.now) })
	f.activate(FollowupAttached, object(msg.ContextMessage, 2)) // by the former address
	for _, jid := range []string{chatA, newer} {
		q := f.query("")
		q.ChatJID = jid
		f.want(jid, q, ScopeChat, "article:1", "link:abc", "message:2")
	}
	if got := f.stored()[newer+" link:abc"].Label; got != "in "+newer {
		t.Errorf("of two objects the one %q is left", got)
	}
	f.write(func(tx *store.Tx) error { return f.x.EndOf(tx, chatA, 1) })
	f.want("after the article's message was deleted", f.query(""), ScopeChat, "link:abc", "message:2")
}
