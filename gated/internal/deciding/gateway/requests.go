package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"arizuko/gated/internal/deciding/decide"
	"arizuko/gated/internal/deciding/services"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	factrows "arizuko/pkg/facts/rows"
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

	st    *store.Store
	onbod *httpx.Client
	log   *slog.Logger
	clock func() time.Time
	waits *waits
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

func newRequests(cfg *Config, st *store.Store, log *slog.Logger, waits *waits) *requests {
	return &requests{
		done: make(chan requestDone), chats: map[string]bool{}, refusals: map[string]refusal{},
		st: st, onbod: cfg.Onbod, log: log, clock: cfg.Now, waits: waits,
	}
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

// waiting reports whether chats wait for an onbod that does not answer.
func (r *requests) waiting() bool { return r.failures > 0 && len(r.chats) > 0 }

// open queues the call for a chat without a group.
func (r *requests) open(chat string, row int64) {
	if !r.chats[chat] {
		r.chats[chat] = true
		r.queue = append(r.queue, requestCall{chat, row})
	}
}

// start starts as many calls as may be out.
func (r *requests) start(ctx context.Context) {
	for r.untilRetry(r.clock()) == 0 {
		c := r.queue[0]
		r.queue = r.queue[1:]
		r.running++
		go func() {
			select {
			case r.done <- r.ask(ctx, c):
			case <-ctx.Done():
			}
		}()
	}
}

// finish takes up the chat of a call that has ended. The request itself is read
// from the table. A call that onbod did not answer is repeated later.
func (r *requests) finish(d requestDone) {
	failpoint.At(failpoint.Requested)
	r.running--
	switch {
	case d.failed != nil:
		r.log.Error("message cannot be read to open a request; retrying", "row", d.row, "chat", d.chat, "err", d.failed)
		r.retryAt = r.clock().Add(minRequestDelay)
		r.queue = append(r.queue, d.requestCall)
		return
	case d.down != nil:
		if r.failures++; r.failures == 1 {
			r.log.Error("onbod opened no request; messages of chats without a group wait", "url", r.onbod.Base, "chat",
				d.chat, "err", d.down)
		}
		r.retryAt = r.clock().Add(min(minRequestDelay<<min(r.failures-1, 10), maxRequestDelay))
		r.queue = append(r.queue, d.requestCall)
		return
	case !d.skipped:
		if r.failures > 0 {
			r.log.Info("onbod opens requests again", "url", r.onbod.Base)
		}
		r.failures = 0
	}
	delete(r.chats, d.chat)
	if d.answer.State != decide.CallNone {
		r.refusals[d.chat] = refusal{d.answer, r.clock().UnixMilli() + refusalTime.Milliseconds()}
	}
	c := r.waits.chat(d.chat)
	r.waits.restart(c)
	c.state.ReadsRequest = true
	r.waits.add(c)
}

// ask asks onbod to open a request. A panic costs the chat its request for a while.
func (r *requests) ask(ctx context.Context, c requestCall) (d requestDone) {
	d = requestDone{requestCall: c}
	defer func() {
		if cause := recover(); cause != nil {
			problem := fmt.Sprintf("panic: %v\n%s", cause, debug.Stack())
			r.log.Error("request for chat cannot be opened", "row", c.row, "chat", c.chat, "err", problem)
			d.answer = decide.Call{State: decide.CallRefused, Error: problem}
		}
	}()
	body, err := r.body(ctx, c.row)
	if err != nil || body == nil {
		d.failed, d.skipped = err, err == nil
		return d
	}
	var answer onboardapi.Asked
	err = services.Do(ctx, r.onbod, http.MethodPost, onboardapi.Path, body, &answer)
	switch {
	case apierr.KindOf(err) == apierr.BadRequest && !httpx.IsForeign(err):
		r.log.Error("onbod refused the request for chat", "row", c.row, "chat", c.chat, "err", err)
		d.answer = decide.Call{State: decide.CallRefused, Error: "onbod refused the row: " + err.Error()}
	case err != nil:
		d.down = err
	case answer.State == factrows.RequestRejected:
		d.answer = decide.Call{State: decide.CallRejected}
	case answer.State == onboardapi.Limited:
		d.answer = decide.Call{State: decide.CallLimited}
	case answer.State == factrows.RequestApproved: // lately: routes should lead to its group by now
		pause(ctx, unseenTime)
	default:
		r.await(ctx, body.ChatJID)
	}
	return d
}

// await waits a while if the table has no request that onbod says to have: with
// another onbod than that of our database, the call would be repeated at once.
func (r *requests) await(ctx context.Context, chat string) {
	if request, err := factrows.PendingRequest(ctx, r.st.Reader, chat); err == nil && request == nil {
		r.log.Warn("onbod opened a request, the database has no pending one", "chat", chat, "url", r.onbod.Base)
		pause(ctx, unseenTime)
	}
}

// body reads onbod's input about a row and its chat, nil if the row is decided.
func (r *requests) body(ctx context.Context, row int64) (*onboardapi.Ask, error) {
	m, err := r.st.Message(ctx, row)
	if err != nil || m == nil || m.Disposition != "" {
		return nil, err
	}
	chat, err := r.st.Chat(ctx, m.ChatJID)
	if err != nil {
		return nil, err
	}
	b := &onboardapi.Ask{
		ChatJID: m.ChatJID, Sender: m.Sender, SenderName: m.SenderName, Kind: msg.KindOfJID(m.ChatJID),
		ThreadID: m.ThreadID,
		Sample:   strings.ToValidUTF8(m.Content[:min(len(m.Content), maxSample)], ""),
	}
	if chat != nil {
		b.Title, b.Kind = chat.Title, chat.Kind
	}
	return b, nil
}

// loadRequest reads the facts about a chat's request and its parked rows, if the decisions depend on them.
func (f *reader) loadRequest(ctx context.Context, b *batch) error {
	jid := b.chat.jid
	if !b.state.ReadsRequest && !f.outside.parked[jid] {
		return nil
	}
	b.Request = decide.Request{Read: true, Call: f.requests.of(jid, f.now())}
	request, err := factrows.PendingRequest(ctx, f.st.Reader, jid)
	if err != nil {
		return err
	}
	if f.outside.parked[jid] {
		rows, err := rows.Parked(ctx, f.st.Reader, jid, maxSampledRows)
		if err != nil {
			return err
		}
		b.Parked, b.Samples = len(rows), samples(rows)
		if len(rows) == 0 {
			delete(f.outside.parked, jid)
		}
	}
	if request == nil {
		if request, err = factrows.LastDecidedRequest(ctx, f.st.Reader, jid); err != nil {
			return err
		}
	}
	if request != nil {
		q := &b.Request
		q.State, q.Code, q.Noted, q.DecidedAt = decide.RequestState(request.State), request.Code, request.Noted(),
			request.DecidedAt
	}
	return nil
}

// maxSampledRows is more than a chat has parked rows, except after a move: then it has
// those of two.
const maxSampledRows = 200

// samples returns one row of each kind that routes tell apart, oldest first.
func samples(rows []*msg.Message) (all []decide.Row) {
	type kind struct {
		sender, name, verb string
		addressed          bool
	}
	seen := map[kind]bool{}
	for _, m := range rows {
		k := kind{m.Sender, m.SenderName, m.Verb, m.Addressed}
		if !seen[k] {
			seen[k] = true
			r := decide.Row{Message: m, Kind: decide.KindOf(m), Post: m.PlatformID}
			if r.Kind == decide.KindChange {
				r.Kind = decide.KindMention // no other edit is parked
			}
			all = append(all, r)
		}
	}
	return all
}
