package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"arizuko/dashd/internal/pages"
	"arizuko/pkg/apierr"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	maxFailedRead = 1000 // failed turns that are grouped by cause
	maxRetries    = 100  // at once
)

// causes groups the newest failed turns by what went wrong. Chosen is the one with the key of the address.
func (c turnPages) causes(r *http.Request) (*shown, error) {
	turns, err := c.Store.Turns(r.Context(), store.TurnList{State: msg.TurnFailed, Limit: maxFailedRead})
	if err != nil {
		return nil, err
	}
	page := pages.Retry{Now: c.Now().UnixMilli(), Bounded: len(turns) == maxFailedRead}
	key := r.URL.Query().Get("cause")
	for _, t := range turns {
		i := slices.IndexFunc(page.Causes, func(f pages.FailedCause) bool { return f.Key == causeOf(t) })
		if i < 0 {
			page.Causes, i = append(page.Causes, pages.FailedCause{Key: causeOf(t)}), len(page.Causes)
		}
		page.Causes[i].Turns = append(page.Causes[i].Turns, t)
	}
	if i := slices.IndexFunc(page.Causes, func(f pages.FailedCause) bool { return f.Key == key }); i >= 0 {
		page.Chosen = &page.Causes[i]
		chosen := page.Chosen.Turns[:min(len(page.Chosen.Turns), maxRetries)]
		page.Batch = batchOf(chosen, func(t *msg.Turn) (int64, string) { return t.ID, t.ChatJID })
		page.Titles, err = c.titles(r.Context(), turnChats(chosen))
	}
	return &shown{data: page}, err
}

// batchOf is the rows of a list, to be changed at once.
func batchOf[T any](list []T, row func(T) (id int64, chat string)) pages.Batch {
	b := pages.Batch{Chats: map[string]int{}}
	for _, each := range list {
		id, chat := row(each)
		b.IDs = append(b.IDs, id)
		b.Chats[chat]++
	}
	return b
}

// causeOf is the same for turns that failed alike: numbers in the error don't count.
func causeOf(t *msg.Turn) string {
	letters := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, t.Error)
	sum := sha256.Sum256([]byte(string(t.Reason) + "\x00" + letters))
	return hex.EncodeToString(sum[:8])
}

// retryAll asks gated to retry the turns of a form, the oldest first, until maxReplayTime is over. Those that are in
// the queue again, or have ended otherwise, are left out: the same button goes on after a failure.
func (c turnPages) retryAll(r *http.Request) (next, notice string, err error) {
	next = "/turns/retry?" + url.Values{"cause": {r.PostForm.Get("cause")}}.Encode()
	ids, err := idsIn(r.PostForm.Get("ids"), "turn", maxRetries)
	if err != nil {
		return next, "", err
	}
	slices.Sort(ids)
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	done, begun := replayCount{verb: "In the queue again"}, time.Now()
	for i, id := range ids {
		if time.Since(begun) > maxReplayTime {
			return next, fmt.Sprintf("%s %d more are left: press again to continue.", done.String(), len(ids)-i), nil
		}
		switch err := c.ask(ctx, "gated", http.MethodPost, "/v1"+turnPath(id)+"/retry", nil, nil); apierr.KindOf(err) {
		case apierr.Conflict, apierr.NotFound:
			done.skipped, done.why = done.skipped+1, err.Error()
		default:
			if err != nil {
				return next, "", done.failed(err)
			}
			done.copied++
		}
	}
	return next, done.String(), nil
}

// idsIn reads the numbers of rows in a field of a form.
func idsIn(text, of string, most int) (ids []int64, err error) {
	for field := range strings.FieldsSeq(text) {
		id, err := idOf(field, of)
		if err != nil || len(ids) == most {
			return nil, apierr.New(apierr.BadRequest, "The form is incomplete: start again.")
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		err = apierr.New(apierr.BadRequest, "No %s was chosen.", of)
	}
	return ids, err
}

// back is the page that a form was on, if the browser says so.
func back(r *http.Request, otherwise string) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || !strings.HasPrefix(from.Path, "/") || strings.HasPrefix(from.Path, "//") {
		return otherwise
	}
	query := from.Query()
	query.Del(flashParameter)
	return (&url.URL{Path: from.Path, RawQuery: query.Encode()}).String()
}
