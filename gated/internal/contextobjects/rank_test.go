package contextobjects

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// TestLookup_Score has a case for each weight: what it adds, its code, and the confidence.
func TestLookup_Score(t *testing.T) {
	t.Parallel()
	stale := start - ms(2*time.Hour) + 1 // a medium TTL that ends in a millisecond
	base := Object{ChatJID: chatA, ID: "article:1", Kind: msg.ContextArticle, SourceMessageID: 1, CreatedAt: start, LastTouchedAt: start,
		ActiveUntil: start + ms(2*time.Hour), Reasons: msg.ActivatedByResolver}
	with := func(change func(*Object)) Object {
		o := base
		change(&o)
		return o
	}
	plain := Query{ChatJID: chatA, Now: start}
	topical := Query{ChatJID: chatA, Topic: "#a", TopicKnown: true, Now: start}
	for _, c := range []struct {
		name       string
		object     Object
		query      Query
		score      int
		confidence float64
		codes      string
	}{
		{"recent", base, plain, 30, 0.154, "touched_recently activated_by_resolver"}, // of 195: there is no topic to have
		{"half its TTL ago", base, Query{ChatJID: chatA, Now: start + ms(time.Hour)}, 15, 0.077, "touched_recently activated_by_resolver"},
		{"last fifth", base, Query{ChatJID: chatA, Now: start + ms(96*time.Minute)}, 6 - 15, 0, "activated_by_resolver near_expiry"},
		{"last millisecond", with(func(o *Object) { o.LastTouchedAt, o.ActiveUntil = stale, start+1 }), plain, -15, 0, "activated_by_resolver near_expiry"},
		{"explicit", with(func(o *Object) { o.Reasons = msg.ActivatedBySummary }), plain, 50, 0.256, "touched_recently activated_by_summary"},
		{"kind", base, Query{ChatJID: chatA, Now: start, Kinds: []Kind{msg.ContextArticle}}, 50, 0.256, "touched_recently activated_by_resolver"},
		{"owned", with(func(o *Object) { o.CreatedBy = alice }), Query{ChatJID: chatA, Now: start, Sender: alice}, 40, 0.205,
			"touched_recently activated_by_resolver sender_owned"},
		{"unknown sender owns nothing", base, Query{ChatJID: chatA, Now: start, Sender: ""}, 30, 0.154, "touched_recently activated_by_resolver"},
		{"reply chain", base, Query{ChatJID: chatA, Now: start, ReplyChain: []int64{65, 1}}, 130, 0.667,
			"touched_recently activated_by_resolver same_reply_chain"},
		{"topic", with(func(o *Object) { o.Topic = "#a" }), topical, 90, 0.353, "touched_recently activated_by_resolver same_topic"}, // of 255
		{"reply chain and topic", with(func(o *Object) { o.Topic = "#a" }),
			Query{ChatJID: chatA, Topic: "#a", TopicKnown: true, Now: start, ReplyChain: []int64{1}}, 190, 0.745,
			"touched_recently activated_by_resolver same_reply_chain same_topic"},
		{"fallback", with(func(o *Object) { o.Topic = "#a" }), plain, 0, 0, "touched_recently activated_by_resolver chat_scope_fallback"},
		{"open poll", with(func(o *Object) { o.ID, o.Kind, o.ActiveUntil = "poll:1", msg.ContextPoll, msg.Forever }), plain, 45, 0.231,
			"touched_recently activated_by_resolver open_poll"},
		{"old open poll", with(func(o *Object) {
			o.Kind, o.ActiveUntil, o.LastTouchedAt = msg.ContextPoll, msg.Forever, start-ms(48*time.Hour)
		}), plain,
			15, 0.077, "activated_by_resolver open_poll"},
		{"closed poll", with(func(o *Object) { o.Kind, o.ClosedAt = msg.ContextPoll, start }), plain, 30, 0.154, "touched_recently activated_by_resolver"},
		{"future reminder", with(func(o *Object) { o.Kind, o.DueAt = msg.ContextReminder, start+1 }), plain, 45, 0.231,
			"touched_recently activated_by_resolver future_reminder"},
		{"reminder that has fired", with(func(o *Object) { o.Kind, o.DueAt = msg.ContextReminder, start }), plain, 30, 0.154,
			"touched_recently activated_by_resolver"},
		{"everything", with(func(o *Object) {
			o.Kind, o.ActiveUntil, o.Topic, o.CreatedBy, o.Reasons = msg.ContextPoll, msg.Forever, "#a", alice, msg.ActivatedByPollCreate
		}), Query{ChatJID: chatA, Topic: "#a", TopicKnown: true, Now: start, ReplyChain: []int64{1}, Sender: alice, Kinds: msg.ContextKinds()}, 255, 1,
			"touched_recently activated_by_poll_create same_reply_chain same_topic open_poll sender_owned"},
		{"clock that went back", base, Query{ChatJID: chatA, Now: start - ms(time.Hour)}, 30, 0.154, "touched_recently activated_by_resolver"},
	} {
		res := testObjects().lookup(&c.query, []Object{c.object})
		if len(res.Matches) != 1 {
			t.Errorf("%s: %d matches", c.name, len(res.Matches))
			continue
		}
		m := res.Matches[0]
		if codes := strings.Join(m.Reasons.Codes(), " "); m.Score != c.score || m.Confidence != c.confidence || codes != c.codes {
			t.Errorf("%s: %d, %v, %s\nwant %d, %v, %s", c.name, m.Score, m.Confidence, codes, c.score, c.confidence, c.codes)
		}
	}
}

// TestLookup_Scope has links, each as "source topic", and wants those found, each as "source score".
func TestLookup_Scope(t *testing.T) {
	t.Parallel()
	twoTopics, ofTopics := []string{"1 #a", "2 #b"}, []string{"1 #b", "3 #b", "2 #a"}
	topic := func(name string) Query { return Query{Topic: name, TopicKnown: true} }
	for _, c := range []struct {
		name  string
		links []string
		query Query
		scope Scope
		want  []string
	}{
		{"a topic", twoTopics, topic("#a"), ScopeTopic, []string{"1 110"}},
		{"another topic", twoTopics, topic("#b"), ScopeTopic, []string{"2 110"}},
		{"a topic without objects", twoTopics, topic("#c"), ScopeTopic, nil},
		{"the default topic of a forum", []string{"1 "}, Query{TopicKnown: true, Topics: true}, ScopeTopic, []string{"1 110"}},
		{"the default topic, beside one that has an object", []string{"1 ", "2 #a"}, topic(""), ScopeTopic, []string{"1 110"}},
		{"a chat without topics", []string{"1 "}, topic(""), ScopeChat, []string{"1 50"}},
		{"a chat without topics, the caller's unknown", []string{"1 "}, Query{}, ScopeChat, []string{"1 50"}},
		{"the caller's topic unknown", []string{"1 #a"}, Query{}, ScopeChat, []string{"1 20"}},
		{"the caller's topic unknown, in the reply chain", []string{"1 #a"}, Query{ReplyChain: []int64{1}}, ScopeReplyChain, []string{"1 150"}},
		{"a reply to another topic's link", ofTopics, Query{Topic: "#a", TopicKnown: true, ReplyChain: []int64{40, 1}}, ScopeReplyChain, []string{"1 150", "2 110"}},
		{"a reply to something else", ofTopics, Query{Topic: "#a", TopicKnown: true, ReplyChain: []int64{40}}, ScopeTopic, []string{"2 110"}},
		{"a reply to a link that the filter leaves out", ofTopics, Query{Topic: "#a", TopicKnown: true, ReplyChain: []int64{1}, Kinds: []Kind{msg.ContextPoll}}, ScopeTopic, nil},
		{"nothing", nil, topic(""), ScopeChat, nil},
		{"nothing in a topic", nil, topic("#a"), ScopeTopic, nil},
	} {
		var objects []Object
		for _, link := range c.links {
			source, topic, _ := strings.Cut(link, " ")
			o := Object{Kind: msg.ContextLink, ID: source, Topic: topic, CreatedAt: start, LastTouchedAt: start, Reasons: msg.ActivatedByURLDiscussion}
			o.SourceMessageID, _ = strconv.ParseInt(source, 10, 64)
			o.ActiveUntil = testObjects().TTLs.until(&o)
			objects = append(objects, o)
		}
		c.query.Now, c.query.Max = start, MaxResults
		res := testObjects().lookup(&c.query, objects)
		var got []string
		for _, m := range res.Matches {
			got = append(got, fmt.Sprint(m.Object.ID, " ", m.Score))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || res.Scope != c.scope || res.Found != len(c.want) || res.Truncated {
			t.Errorf("%s: scope %s, want %s; %d found (-want +got):\n%s", c.name, res.Scope, c.scope, res.Found, diff)
		}
	}
}

func TestLookup_StaleObjects_Expire(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(MediaInspected, object(msg.ContextPDF, 1))
	f.activate(URLDiscussed, object(msg.ContextLink, 2))
	f.pass(time.Hour)
	f.want("after an hour", f.query(""), ScopeChat, "link:2")
	if err := Prune(t.Context(), f.st, f.now); err != nil {
		t.Fatal(err)
	}
	other := f.query("")
	other.ChatJID = chatB
	f.want("another chat", other, ScopeChat)
	if left := f.stored(); len(left) != 1 || left[chatA+" link:2"].ID == "" {
		t.Errorf("after Prune these are left: %v", left)
	}
}

// TestActivate_Resolver_RefreshesWithinTheTTLOnly touches an image, whose TTL is an hour.
func TestActivate_Resolver_RefreshesWithinTheTTLOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	image := inTopic("#a", object(msg.ContextImage, 1))
	f.activate(MediaInspected, image)
	f.pass(50 * time.Minute)
	image.Topic = "#b"
	o := f.activate(ResolvedByResolver, image)
	if o.ActiveUntil != f.now+ms(time.Hour) || o.CreatedAt != start || o.Topic != "#a" {
		t.Errorf("after the resolver: %+v", o)
	}
	for range 30 { // every 50 minutes for more than a day
		f.pass(50 * time.Minute)
		if f.now < start+ms(24*time.Hour) {
			o = f.activate(ResolvedByResolver, image)
		}
	}
	if o.ActiveUntil != start+ms(24*time.Hour) {
		t.Errorf("it ends %v after its creation", time.Duration(o.ActiveUntil-start)*time.Millisecond)
	}
	f.want("after a day", f.query("#a"), ScopeTopic)
	err := f.st.Write(t.Context(), func(tx *store.Tx) error {
		_, err := f.x.Activate(tx, ResolvedByResolver, image, f.now)
		return err
	})
	if !errors.Is(err, ErrInactive) {
		t.Errorf("the resolver on an object that has ended: %v", err)
	}
}

func TestClosePoll_OpenOutlivesMaxTTL_ClosedLastsItsGrace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(PollCreated, poll(1))
	f.pass(100 * time.Hour)
	res := f.want("open for four days", f.query(""), ScopeChat, "poll:1")
	if !has(res.Matches[0].Reasons, msg.OpenPoll) || has(res.Matches[0].Reasons, msg.NearExpiry) {
		t.Errorf("reasons %v", res.Matches[0].Reasons.Codes())
	}
	f.write(func(tx *store.Tx) error { return f.x.ClosePoll(tx, chatA, 1, f.now, f.now) })
	f.pass(15*time.Minute - time.Millisecond)
	res = f.want("closed, within its grace", f.query(""), ScopeChat, "poll:1")
	if has(res.Matches[0].Reasons, msg.OpenPoll) {
		t.Errorf("reasons %v", res.Matches[0].Reasons.Codes())
	}
	f.activate(ResolvedByResolver, poll(1))
	f.pass(time.Millisecond)
	f.want("after its grace, although the resolver touched it", f.query(""), ScopeChat)
	closed := poll(1)
	closed.ClosedAt = f.now - ms(time.Hour)
	if o := f.activate(PollListed, closed); o.ActiveUntil > f.now {
		t.Errorf("listing a poll that was closed an hour ago made it active: %+v", o)
	}
	f.want("listed an hour later", f.query(""), ScopeChat)
	again := f.activate(PollCreated, poll(2))
	f.pass(time.Hour)
	for range 2 { // the platform says it, too
		f.write(func(tx *store.Tx) error { return f.x.ClosePoll(tx, chatA, 2, f.now, f.now) })
		o := f.lookup(f.query("")).Matches[0].Object
		if at := again.LastTouchedAt + ms(time.Hour); o.LastTouchedAt != at || o.ClosedAt != at {
			t.Errorf("closed %d ms, touched %d ms after it was made", o.ClosedAt-again.CreatedAt, o.LastTouchedAt-again.CreatedAt)
		}
		f.pass(time.Minute)
	}
	f.write(func(tx *store.Tx) error { return f.x.ClosePoll(tx, chatA, 99, f.now, f.now) }) // not active: nothing to do
}

func TestSetReminderDue_Cancelled_IsNoFutureReminder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(ReminderCreated, Object{ChatJID: chatA, Kind: msg.ContextReminder, ID: "reminder:5", DueAt: start + ms(time.Hour)})
	f.write(func(tx *store.Tx) error { return f.x.SetReminderDue(tx, chatA, 5, 0, f.now) })
	res := f.want("after it was cancelled", f.query(""), ScopeChat, "reminder:5")
	if has(res.Matches[0].Reasons, msg.FutureReminder) {
		t.Errorf("reasons %v", res.Matches[0].Reasons.Codes())
	}
}

// TestLookup_MixedObjects_AreOrderedByScore has ties: the one touched last is first, then the smallest id.
func TestLookup_MixedObjects_AreOrderedByScore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	mine := inTopic("#a", object(msg.ContextArticle, 1))
	mine.CreatedBy = alice
	f.activate(ArticleSummarized, mine)
	f.activate(ArticleSummarized, inTopic("#a", object(msg.ContextArticle, 3)))
	f.activate(ArticleSummarized, inTopic("#a", object(msg.ContextArticle, 2)))
	f.activate(MediaInspected, inTopic("#b", object(msg.ContextImage, 4)))
	f.activate(PollCreated, inTopic("#a", poll(5)))
	q := f.query("#a")
	q.Sender, q.ReplyChain = alice, []int64{4}
	res := f.want("all of them", q, ScopeReplyChain, "media.image:4", "poll:5", "article:1", "article:2", "article:3")
	var scores []int
	for _, m := range res.Matches {
		scores = append(scores, m.Score)
	}
	if diff := cmp.Diff([]int{150, 125, 120, 110, 110}, scores); diff != "" {
		t.Errorf("scores (-want +got):\n%s", diff)
	}
}

func TestLookup_AllowedKinds_Filter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	f.activate(MediaInspected, object(msg.ContextImage, 2))
	f.activate(PollCreated, poll(3))
	q := f.query("")
	q.Kinds = []Kind{msg.ContextPoll, msg.ContextImage}
	f.want("polls and images", q, ScopeChat, "poll:3", "media.image:2")
}

func TestLookup_MaxResults_IsClampedAndSaysTruncated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range int64(25) {
		f.activate(FollowupAttached, object(msg.ContextArticle, 100+i))
	}
	for _, c := range []struct{ limit, want int }{{-1, 1}, {0, 1}, {1, 1}, {5, 5}, {20, 20}, {21, 20}, {1000, 20}} {
		q := f.query("")
		q.Max = c.limit
		res := f.lookup(q)
		if len(res.Matches) != c.want || !res.Truncated || res.Found != 25 {
			t.Errorf("at most %d: %d of %d, truncated %v", c.limit, len(res.Matches), res.Found, res.Truncated)
		}
	}
	q := f.query("")
	q.ReplyChain = []int64{100, 101}
	q.Max = 2
	if res := f.lookup(q); res.Found != 25 || !res.Truncated {
		t.Errorf("%+v", res)
	}
	q.TopicKnown, q.Topic = true, "#other"
	if res := f.lookup(q); res.Found != 2 || res.Truncated {
		t.Errorf("as many as asked for: %+v", res)
	}
}

func TestLookup_ListingTouchesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.activate(ArticleSummarized, object(msg.ContextArticle, 1))
	before := f.stored()
	for range 10 {
		f.pass(time.Minute)
		f.lookup(f.query(""))
		storetest.Must(f.x.Resolve(t.Context(), f.st.Reader, f.query(""), Reference{}))(t)
	}
	if diff := cmp.Diff(before, f.stored()); diff != "" {
		t.Errorf("stored (-before +after):\n%s", diff)
	}
}
