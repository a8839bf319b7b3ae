package contextobjects

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/chatmove"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

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
