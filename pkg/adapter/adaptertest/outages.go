package adaptertest

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// maxReconnect is how long after the end of an outage an adapter is connected again.
	maxReconnect = 15 * time.Second
	// maxHang is how long sends that hang may delay other chats.
	maxHang = time.Minute
	// maxResume is how long after an outage rows may take of which nothing can have arrived.
	maxResume = 5 * time.Second
	// maxResolve is how long others may take: the last of the spaced copies of a part is sent half an hour after the
	// one before.
	maxResolve = 40 * time.Minute
	// maxUntimed is how long a page may be waited for that does not say it, and maxBanned how many requests may be made
	// in a minute of such pages.
	maxUntimed = 15 * time.Second
	maxBanned  = 40
)

// outageCases are the cases of a remote that is out of order for minutes.
func outageCases() []testCase {
	fails := func(p Platform) bool { return p.Outages }
	lanes := func(p Platform) bool { return p.Lane != nil }
	failing := func(p Platform) bool { return p.Outages && p.Lane != nil }
	minute := func(o Outage, sure bool) func(*fixture) {
		return func(b *fixture) { outage(b, o, time.Minute, sure) }
	}
	return []testCase{
		{"thirty minutes down", fails, func(b *fixture) { outage(b, Outage{Kind: Refusing}, 30*time.Minute, true) }},
		{"silent peer", fails, func(b *fixture) { outage(b, Outage{Kind: Silent}, 5*time.Minute, false) }},
		{"unanswered calls", fails, func(b *fixture) { outage(b, Outage{Kind: Unanswering}, 5*time.Minute, false) }},
		{"reset before the request", fails, minute(Outage{Kind: ResettingTLS}, true)},
		{"cut after the request", fails, minute(Outage{Kind: CuttingRequests}, false)},
		{"cut before the answer", fails, minute(Outage{Kind: CuttingAnswers}, false)},
		{"minute of 502", fails, minute(Outage{Kind: Paging, Status: 502}, false)},
		// Longer than the marked copies of a part last, if they were sent meanwhile.
		{"hour of 502", fails, func(b *fixture) { outage(b, Outage{Kind: Paging, Status: 502}, time.Hour, false) }},
		{"minute of 503", fails, minute(Outage{Kind: Paging, Status: 503, RetryAfter: 20 * time.Second}, false)},
		{"page instead of an answer", fails, minute(Outage{Kind: Paging, Status: 200}, false)},
		{"answer of another server", fails, minute(Outage{Kind: Paging, Status: 200, Text: "{}"}, false)},
		{"page instead of a refusal", fails, minute(Outage{Kind: Paging, Status: 403}, true)},
		{"page instead of a rate limit", fails, minute(Outage{Kind: Paging, Status: 429, RetryAfter: 20 * time.Second},
			true)},
		{"page instead of a rate limit, without a time", fails, minute(Outage{Kind: Paging, Status: 429}, true)},
		{"text instead of a refusal", fails, minute(Outage{Kind: Paging, Status: 403, Text: "error code: 1020"}, true)},
		{"text instead of a rate limit", fails, minute(Outage{Kind: Paging, Status: 429, Text: "error code: 1015"},
			true)},
		{"minute of 502 for sends alone", failing, func(b *fixture) {
			sendsFail(b, Fault{Class: msg.Ambiguous},
				time.Minute)
		}},
		{"sends alone unanswered", failing, func(b *fixture) {
			sendsFail(b, Fault{Class: msg.Ambiguous, Hangs: true},
				5*time.Minute)
		}},
		{"sixteen hung sends", lanes, sixteenHungSends},
		{"restarts while down", fails, func(b *fixture) { restarts(b, Outage{Kind: Refusing}, true) }},
		{"restarts while calls are unanswered", fails, func(b *fixture) {
			restarts(b, Outage{Kind: Unanswering},
				false)
		}},
		{"rows waiting in an outage", fails, rowsWaiting},
	}
}

// outage checks the fate of rows queued before and during an outage. sure means that no part of them can have
// arrived, so that each is sent once and unmarked.
func outage(b *fixture, o Outage, lasts time.Duration, sure bool) {
	b.listening = true
	b.start()
	b.online(maxReconnect)
	first := b.say("before")
	b.ends(msg.OutSent, first)
	b.remote.SetOutage(o)
	asked := b.requests()
	texts, ids := []string{"before"}, []int64{}
	for i := range 3 {
		texts = append(texts, fmt.Sprintf("during %d", i))
		ids = append(ids, b.say(texts[i+1]))
		b.pass(lasts / 3)
	}
	if b.connectedNow() {
		b.Errorf("the outage was not noticed in %v", lasts)
	}
	untimed := o.Status == http.StatusTooManyRequests && o.RetryAfter == 0
	if asked = b.requests() - asked; untimed && asked > maxBanned {
		b.Errorf("%d requests while the address is banned, want %d at most", asked, maxBanned)
	}
	if untimed {
		o.RetryAfter = maxUntimed
	}
	b.remote.SetOutage(Outage{})
	b.online(maxReconnect + o.RetryAfter)
	last := b.say("after")
	texts, ids = append(texts, "after"), append(ids, last)
	b.resolved(ids, texts, o, sure)
}

// requests counts those that have arrived, 0 if it is not known.
func (b *fixture) requests() int {
	if b.remote.Requests == nil {
		return 0
	}
	return b.remote.Requests()
}

// sendsFail makes every send fail for a time in which the connection works.
func sendsFail(b *fixture, f Fault, lasts time.Duration) {
	b.listening = true
	b.start()
	b.online(maxReconnect)
	b.fail(f)
	texts := []string{"first", "second"}
	ids := []int64{b.say(texts[0]), b.say(texts[1])}
	for end := time.Now().Add(lasts); time.Now().Before(end); b.pass(time.Second) {
		b.fail(f)
	}
	b.fail(Fault{})
	if b.remote.Listen != nil && !b.connectedNow() {
		b.Error("the connection is taken for broken")
	}
	b.resolved(ids, texts, Outage{}, false)
}

// restarts stops and starts the shell while rows wait for the end of an outage.
func restarts(b *fixture, o Outage, sure bool) {
	b.listening = true
	b.remote.SetOutage(o)
	var ids []int64
	var texts []string
	for i := range 4 {
		stop := b.start()
		texts = append(texts, fmt.Sprintf("start %d", i))
		ids = append(ids, b.say(texts[i]))
		b.pass(time.Minute)
		stop()
	}
	b.start()
	b.remote.SetOutage(Outage{})
	b.online(maxReconnect)
	b.resolved(ids, texts, o, sure)
}

// resolved checks that the rows of an outage that is over end, and that their texts have arrived.
func (b *fixture) resolved(ids []int64, texts []string, o Outage, sure bool) {
	b.Helper()
	limit := maxResolve
	if sure {
		limit = maxResume + o.RetryAfter
	}
	for _, id := range ids {
		b.within(limit, "the end of a row", func() bool { return isEnd(b.row(id).OutState) })
	}
	if !sure {
		b.pass(maxResolve) // until late messages are there, too
	}
	b.eachArrived(texts, sure)
	for _, id := range ids {
		if state := b.row(id).OutState; state != msg.OutSent && (sure || b.resolves()) {
			b.Errorf("row %d is %s: %+v", id, state, b.parts(id))
		}
	}
}

// eachArrived checks that texts have arrived in the first chat in order, each at most once without a mark. sure means
// exactly once, and none with a mark.
func (b *fixture) eachArrived(texts []string, sure bool) {
	b.Helper()
	var order []string
	for _, got := range b.received(b.platform.Chats[0]) {
		i := slices.IndexFunc(texts, func(text string) bool { return strings.HasSuffix(got, text) })
		switch {
		case i < 0:
			b.Errorf("received %q", got)
		case !slices.Contains(order, texts[i]):
			order = append(order, texts[i])
		}
	}
	if want := slices.DeleteFunc(slices.Clone(texts), func(text string) bool {
		return !slices.Contains(order, text) && !sure && !b.resolves()
	}); !slices.Equal(order, want) {
		b.Errorf("received %q, want %q", order, want)
	}
	for _, text := range texts {
		bare, marked := b.copies(text)
		if bare > 1 && !b.policy().repeats || sure && (bare != 1 || marked > 0) {
			b.Errorf("%q is there %d times, and %d times with a mark", text, bare, marked)
		}
	}
}

// resolves reports whether the adapter sends a part that may have arrived, instead of ending it as ambiguous.
func (b *fixture) resolves() bool {
	p := b.policy()
	return p.repeats || p.finds || p.marks
}

// online waits until the platform is connected. A platform without a listener has no connection.
func (b *fixture) online(limit time.Duration) {
	b.Helper()
	if b.remote.Listen == nil {
		return
	}
	b.within(limit, "the connection", b.connectedNow)
}

func (b *fixture) connectedNow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.connection == daemon.Connected
}

// sixteenHungSends hang in one chat each, as many as are sent at once. A row for another chat waits for at most one
// of them.
func sixteenHungSends(b *fixture) {
	const hung = 16
	for i := range hung {
		chat := b.platform.Lane(i)
		b.remote.Fail(chat, Fault{Class: msg.Ambiguous, Hangs: true})
		b.say(fmt.Sprintf("hung %d", i), func(m *msg.Message) { m.ChatJID = chat })
	}
	b.start()
	b.pass(time.Second)
	other := b.say("other")
	b.within(maxHang+time.Second, "the other chat", func() bool { return isEnd(b.row(other).OutState) })
	b.expect("other")
}

// rowsWaiting queues rows for two chats while the remote is down. All arrive in order within some minutes.
func rowsWaiting(b *fixture) {
	rows := cmp.Or(b.platform.Waiting, 1000)
	if testing.Short() {
		rows = 100
	}
	var want [2][]string
	var last [2]int64
	b.remote.SetOutage(Outage{Kind: Refusing})
	b.listening = true
	b.start()
	b.write(func(tx *store.Tx) error {
		for i := range rows {
			m := b.outbound(fmt.Sprintf("row %d", i))
			m.ChatJID = b.platform.Chats[i%2]
			if _, _, err := tx.PutMessage(m); err != nil {
				return err
			}
			want[i%2], last[i%2] = append(want[i%2], m.Content), m.ID
		}
		return nil
	})
	b.pass(10 * time.Minute)
	b.remote.SetOutage(Outage{})
	for _, id := range last {
		b.within(10*time.Minute, "the last row", func() bool { return isEnd(b.row(id).OutState) })
	}
	for i, chat := range b.platform.Chats {
		if got := b.received(chat); !slices.Equal(got, want[i]) {
			b.Errorf("%s received %d rows, not the %d in order", chat, len(got), len(want[i]))
		}
	}
}
