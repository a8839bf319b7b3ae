package backend

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/egress/proxy"
	"arizuko/gated/internal/egress/questions"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/egress"
	egressrows "arizuko/pkg/egress/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store"
)

// maxExcerpt is how much of a body a question shows, in bytes.
const maxExcerpt = 600

// Backend implements proxy.Backend. Set all fields.
type Backend struct {
	Store    *store.Store
	Gated    *httpx.Client
	Key      string                 // the instance's secret
	Requests *prometheus.CounterVec // that have ended, by state

	mu      sync.Mutex
	rules   egress.Rules
	version int64 // of rules
}

var _ proxy.Backend = (*Backend)(nil)

// Run implements proxy.Backend.
func (b *Backend) Run(ctx context.Context, token string) (run proxy.Run, err error) {
	id, err := parseToken(b.Key, token)
	if err != nil {
		return run, err
	}
	folder, turn, err := rows.RunAtWork(ctx, b.Store.Reader, id)
	switch {
	case err != nil:
		return run, err
	case folder == "":
		return run, fmt.Errorf("run %d has ended", id)
	}
	return proxy.Run{ID: id, Turn: turn, Folder: folder}, nil
}

// Rules implements proxy.Backend.
func (b *Backend) Rules(ctx context.Context) (egress.Rules, error) {
	version, err := egressrows.Version(ctx, b.Store.Reader)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if version == b.version && b.rules != nil {
		return b.rules, nil
	}
	rules, err := egressrows.Rules(ctx, b.Store.Reader)
	if err == nil {
		b.rules, b.version = rules, version
	}
	return rules, err
}

// Put implements proxy.Backend.
func (b *Backend) Put(ctx context.Context, r *egress.Receipt) error {
	if r.EndedAt != 0 {
		b.Requests.WithLabelValues(string(r.State)).Inc()
	}
	put := egressrows.PutReceipt
	if r.ID != 0 {
		put = egressrows.EndReceipt
	}
	scope := store.Scope{fmt.Sprintf("egress/%d", r.RunID)}
	return b.Store.WriteIn(ctx, scope, func(tx *store.Tx) error { return put(tx, r) })
}

// Ask implements proxy.Backend.
func (b *Backend) Ask(ctx context.Context, run proxy.Run, r *egress.Receipt, query string, body []byte) (allowed bool,
	reason string, err error) {
	in := questions.Request{
		Receipt: r.ID, Turn: run.Turn, Query: query, Secret: r.Secret, BodyHash: r.BodyHash,
		BodyBytes: int64(len(body)), Excerpt: excerpt(body), Request: *r.ForRules(),
	}
	for {
		var answer questions.Answer
		if err := b.Gated.Do(ctx, http.MethodPost, questions.Path, in, &answer); err != nil {
			return false, "", err // gated ends the question once the receipt has ended
		}
		if r.AskID, in.Waits = cmp.Or(answer.Ask, r.AskID), answer.Ask; !answer.Pending {
			r.By = answer.By
			return answer.Allowed, answer.Reason, nil
		}
	}
}

// excerpt is the beginning of a body that is a text, "" for another one.
func excerpt(body []byte) string {
	text := agentproto.Truncate(string(body[:min(len(body), maxExcerpt)]), maxExcerpt)
	for _, c := range text {
		if c == utf8.RuneError || unicode.IsControl(c) && !unicode.IsSpace(c) {
			return ""
		}
	}
	return text
}
