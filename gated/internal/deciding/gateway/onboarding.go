package gateway

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/pkg/apierr"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/onboardapi"
	"arizuko/pkg/store"
)

const (
	// maxRequests bounds the concurrent calls that open requests: onbod makes one write after another.
	maxRequests = 4
	// minRequestDelay and maxRequestDelay bound the wait before onbod is called again after it did not answer.
	minRequestDelay = time.Second
	maxRequestDelay = 10 * time.Second
	// refusalTime is how long onbod's answer counts that it opens no request for a chat.
	refusalTime = time.Minute
	// unseenTime is the wait before onbod is asked again about a chat whose request it
	// has, while the table has none.
	unseenTime = 2 * time.Second
	// maxSample is how much of a message onbod gets, in bytes.
	maxSample = 1000
	// parkedEvery bounds how often all chats with parked rows are looked for after a poke.
	parkedEvery = time.Second
)

// requests are the calls by which onbod opens requests for chats without a group: one
// per chat, few at once, and one at a time while onbod does not answer.
type requests struct {
	done     chan requestDone
	queue    []requestCall   // oldest first
	chats    map[string]bool // those with a call that is queued or out
	running  int
	failures int       // calls in a row that onbod did not answer
	retryAt  time.Time // no call before
	refusals map[string]refusal
}

// refusal is why onbod opens no request for a chat. It counts until a time, in unix ms.
type refusal struct {
	call  decide.Call
	until int64
}

// requestCall is a call about a row of a chat.
type requestCall struct {
	chat string
	row  int64
}

// requestDone is how a call ended.
type requestDone struct {
	requestCall
	answer  decide.Call
	skipped bool  // onbod was not called, the row is decided
	failed  error // the row cannot be read, onbod was not called
	down    error // onbod did not answer, or another program did
}

func newRequests() *requests {
	return &requests{done: make(chan requestDone), chats: map[string]bool{}, refusals: map[string]refusal{}}
}

// of returns how far the call about a chat is.
func (r *requests) of(chat string, now int64) decide.Call {
	if r.chats[chat] {
		return decide.Call{State: decide.CallOut}
	}
	if a := r.refusals[chat]; a.until > now {
		return a.call
	}
	return decide.Call{}
}

// limit is how many calls may be out now.
func (r *requests) limit() int {
	if r.failures > 0 {
		return 1
	}
	return maxRequests
}

// untilRetry returns the time until the next call, an hour if none is queued.
func (r *requests) untilRetry(now time.Time) time.Duration {
	if len(r.queue) == 0 || r.running >= r.limit() {
		return time.Hour
	}
	return max(r.retryAt.Sub(now), 0)
}

// prune drops refusals that no longer count.
func (r *requests) prune(now int64) {
	for chat, a := range r.refusals {
		if a.until <= now {
			delete(r.refusals, chat)
		}
	}
}

// openRequest queues the call for a chat without a group.
func (g *Gateway) openRequest(chat string, row int64) {
	if !g.requests.chats[chat] {
		g.requests.chats[chat] = true
		g.requests.queue = append(g.requests.queue, requestCall{chat, row})
	}
}

// startRequests starts as many calls as may be out.
func (g *Gateway) startRequests(ctx context.Context) {
	r := g.requests
	for r.untilRetry(g.cfg.Now()) == 0 {
		c := r.queue[0]
		r.queue = r.queue[1:]
		r.running++
		go func() {
			select {
			case r.done <- g.askRequest(ctx, c):
			case <-ctx.Done():
			}
		}()
	}
}

// finishRequest takes up the chat of a call that has ended. What onbod stored is read
// from the table. A call that onbod did not answer is repeated later.
func (g *Gateway) finishRequest(d requestDone) {
	failpoint.At(failpoint.Requested)
	r := g.requests
	r.running--
	switch {
	case d.failed != nil:
		g.log.Error("message cannot be read to open a request; retrying", "row", d.row, "chat", d.chat, "err", d.failed)
		r.retryAt = g.cfg.Now().Add(minRequestDelay)
		r.queue = append(r.queue, d.requestCall)
		return
	case d.down != nil:
		if r.failures++; r.failures == 1 {
			g.log.Error("onbod opened no request; messages of chats without a group wait", "url", g.cfg.Onbod.Base, "chat", d.chat, "err", d.down)
		}
		r.retryAt = g.cfg.Now().Add(min(minRequestDelay<<min(r.failures-1, 10), maxRequestDelay))
		r.queue = append(r.queue, d.requestCall)
		return
	case !d.skipped:
		if r.failures > 0 {
			g.log.Info("onbod opens requests again", "url", g.cfg.Onbod.Base)
		}
		r.failures = 0
	}
	delete(r.chats, d.chat)
	if d.answer.State != decide.CallNone {
		r.refusals[d.chat] = refusal{d.answer, g.now() + refusalTime.Milliseconds()}
	}
	c := g.chat(d.chat)
	g.restart(c)
	c.state.ReadsRequest = true
	g.enqueue(c)
}

// askRequest asks onbod to open a request. A panic costs the chat its request for a while.
func (g *Gateway) askRequest(ctx context.Context, c requestCall) (d requestDone) {
	d = requestDone{requestCall: c}
	defer func() {
		if cause := recover(); cause != nil {
			problem := fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			g.log.Error("request for chat cannot be opened", "row", c.row, "chat", c.chat, "err", problem)
			d.answer = decide.Call{State: decide.CallRefused, Error: problem}
		}
	}()
	body, err := g.requestBody(ctx, c.row)
	if err != nil || body == nil {
		d.failed, d.skipped = err, err == nil
		return d
	}
	var answer onboardapi.Asked
	err = call(ctx, g.cfg.Onbod, http.MethodPost, onboardapi.Path, body, &answer)
	switch {
	case apierr.KindOf(err) == apierr.BadRequest && !httpx.IsForeign(err):
		g.log.Error("onbod refused the request for chat", "row", c.row, "chat", c.chat, "err", err)
		d.answer = decide.Call{State: decide.CallRefused, Error: "onbod refused the row: " + err.Error()}
	case err != nil:
		d.down = err
	case answer.State == store.RequestRejected:
		d.answer = decide.Call{State: decide.CallRejected}
	case answer.State == onboardapi.Limited:
		d.answer = decide.Call{State: decide.CallLimited}
	case answer.State == store.RequestApproved: // lately: routes should lead to its group by now
		pause(ctx, unseenTime)
	default:
		g.awaitRequest(ctx, body.ChatJID)
	}
	return d
}

// awaitRequest waits a while if the table has no request that onbod says to have: with
// another onbod than that of our database, the call would be repeated at once.
func (g *Gateway) awaitRequest(ctx context.Context, chat string) {
	if request, err := g.st.PendingRequest(ctx, chat); err == nil && request == nil {
		g.log.Warn("onbod opened a request, the database has no pending one", "chat", chat, "url", g.cfg.Onbod.Base)
		pause(ctx, unseenTime)
	}
}

// requestBody reads what onbod needs to know about a row and its chat, nil if the row is decided.
func (g *Gateway) requestBody(ctx context.Context, row int64) (*onboardapi.Ask, error) {
	m, err := g.st.Message(ctx, row)
	if err != nil || m == nil || m.Disposition != "" {
		return nil, err
	}
	chat, err := g.st.Chat(ctx, m.ChatJID)
	if err != nil {
		return nil, err
	}
	b := &onboardapi.Ask{
		ChatJID: m.ChatJID, Sender: m.Sender, SenderName: m.SenderName, Kind: msg.KindOfJID(m.ChatJID), ThreadID: m.ThreadID,
		Sample: strings.ToValidUTF8(m.Content[:min(len(m.Content), maxSample)], ""),
	}
	if chat != nil {
		b.Title, b.Kind = chat.Title, chat.Kind
	}
	return b, nil
}

// loadRequest reads what is known about a chat's request, and about its parked rows.
func (g *Gateway) loadRequest(ctx context.Context, b *batch) error {
	jid := b.chat.jid
	b.Request = decide.Request{Read: true, Call: g.requests.of(jid, g.now())}
	request, err := g.st.PendingRequest(ctx, jid)
	if err != nil {
		return err
	}
	if g.parked[jid] {
		rows, err := g.st.Parked(ctx, jid, maxProbedRows)
		if err != nil {
			return err
		}
		b.Parked, b.Probes = len(rows), probes(rows)
		if len(rows) == 0 {
			delete(g.parked, jid)
		}
	}
	if request == nil {
		if request, err = g.st.LastDecidedRequest(ctx, jid); err != nil {
			return err
		}
	}
	if request != nil {
		q := &b.Request
		q.State, q.Code, q.Noted, q.DecidedAt = decide.RequestState(request.State), request.Code, request.Noted(), request.DecidedAt
	}
	return nil
}

// maxProbedRows is more than a chat has parked rows, except after a move: then it has
// those of two.
const maxProbedRows = 200

// probes returns one row of each kind that routes tell apart, oldest first.
func probes(rows []*msg.Message) (all []decide.Row) {
	type kind struct {
		sender, name, verb string
		addressed          bool
	}
	seen := map[kind]bool{}
	for _, m := range rows {
		k := kind{m.Sender, m.SenderName, m.Verb, m.Addressed}
		if !seen[k] {
			seen[k] = true
			all = append(all, decide.Row{Message: m, Post: m.PlatformID})
		}
	}
	return all
}

// readParked finds the chats with parked rows. All of them are looked at, or those whose
// request is no longer pending.
func (g *Gateway) readParked(ctx context.Context, all bool) error {
	began := time.Now()
	g.sweeper.parkedAt = began.Add(parkedEvery)
	chats, err := g.st.ParkedChats(ctx)
	if g.reads.Note(ctx, err) != nil {
		return err
	}
	clear(g.parked)
	for _, p := range chats {
		g.parked[p.JID] = true
		if all {
			g.enqueueLater(g.chat(p.JID))
		} else if !p.Pending {
			g.enqueue(g.chat(p.JID))
		}
	}
	// With thousands of chats it takes its time: at most a twentieth of ours.
	g.sweeper.parkedAt = began.Add(max(parkedEvery, 20*time.Since(began)))
	g.sweeper.parkedUnread = false
	return nil
}

// checkParked looks for chats whose request was decided, if a poke asks for it.
func (g *Gateway) checkParked(ctx context.Context) {
	if g.untilParked() == 0 {
		_ = g.readParked(ctx, false)
	}
}

// untilParked returns the time until decided requests are looked for, an hour if no poke
// asks for it.
func (g *Gateway) untilParked() time.Duration {
	if !g.sweeper.parkedUnread || len(g.parked) == 0 {
		return time.Hour
	}
	return max(time.Until(g.sweeper.parkedAt), 0)
}

// followParked follows chats with parked rows to their new addresses. Their rows move with the
// chat, and must be decided before its newer ones.
func (g *Gateway) followParked(ctx context.Context) error {
	if len(g.parked) == 0 {
		return nil
	}
	moves, _, err := g.st.ChatMoves(ctx)
	for from, to := range moves {
		if g.parked[from] {
			delete(g.parked, from)
			g.parked[to] = true
		}
	}
	return err
}

// noteParked notes that a plan parks rows, before they are stored: a chat that has none
// costs a read.
func (g *Gateway) noteParked(p *plan) {
	for _, e := range p.effects {
		if d, ok := e.(decide.Decide); ok && d.Disposition == msg.Onboarding {
			g.parked[p.batch.Chat.JID] = true
			return
		}
	}
}

// applyParked stores an effect on parked rows.
func (p *plan) applyParked(tx *store.Tx, e decide.Effect) error {
	switch e := e.(type) {
	case decide.TakeUpParked:
		return tx.TakeUp(p.batch.Chat.JID)
	case decide.TakeUpRow:
		p.at = e.Row
		return tx.TakeUpRow(e.Row)
	case decide.DropParked:
		return tx.DropParked(p.batch.Chat.JID, e.Reason, p.batch.Now)
	}
	return nil
}

// actParked acts on a stored effect on parked rows.
func (g *Gateway) actParked(p *plan, e decide.Effect) {
	chat := p.batch.Chat.JID
	switch e := e.(type) {
	case decide.OpenRequest:
		g.openRequest(chat, e.Row)
	case decide.TakeUpParked:
		g.log.Info("parked messages are decided again", "chat", chat, "count", p.batch.Parked)
	case decide.DropParked:
		g.meter.decided.WithLabelValues(string(msg.Dropped), string(e.Reason)).Add(float64(p.batch.Parked))
		g.log.Info("parked messages dropped", "chat", chat, "count", p.batch.Parked, "reason", e.Reason)
	}
}
