package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/pkg/adapter"
	"arizuko/pkg/adapter/adaptertest"
	"arizuko/pkg/adapter/adaptertest/nettest"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// Rows wait for an adapter that only uses SQL, through outages of its platform and restarts of its own.
func TestAdapter_Conformance(t *testing.T) {
	adaptertest.Run(t, adaptertest.Platform{
		Name: "matrix", Chats: [2]string{"matrix:!one", "matrix:!two"}, Thread: "$thread", Replies: true, Raw: true,
		Foreign: true, New: newRemote, Outages: true, Lane: func(i int) string { return fmt.Sprint("matrix:!lane", i) },
	})
}

func newRemote(t testing.TB, _ func() *store.Store) adaptertest.Remote {
	r := &room{ids: map[string]string{}}
	n := nettest.Serve(t, r)
	client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}, Timeout: 10 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	return adaptertest.Remote{
		Run: func(ctx context.Context, database string, settled func(int64)) error {
			a, err := Open(database, filepath.Dir(database), func(string, error) {})
			if err != nil {
				return err
			}
			s := sender{Adapter: a, client: client, settled: settled, until: map[string]time.Time{}}
			return errors.Join(s.run(ctx), a.Close())
		},
		Received: r.list, Fail: r.plan.Fail, SetOutage: n.SetOutage, Requests: n.Requests,
	}
}

// The pauses of the sender.
const (
	pollEvery  = time.Second
	retryAfter = 2 * time.Second
)

// sender delivers the rows of Matrix, in order in each chat. Its requests have the ids of the rows, so that the server
// carries out none twice.
type sender struct {
	*Adapter
	client  *http.Client
	settled func(id int64)

	mu    sync.Mutex
	until map[string]time.Time // when a chat whose row failed is tried again
}

// run delivers until ctx ends, and finishes the part that it is sending then. Its error is one of the database.
func (s *sender) run(ctx context.Context) error {
	for ctx.Err() == nil {
		queued, err := s.Queued(context.WithoutCancel(ctx), "matrix")
		if err != nil {
			return err
		}
		byChat := map[string][]Outbound{}
		for _, m := range queued {
			byChat[m.ChatJID] = append(byChat[m.ChatJID], m)
		}
		var sending sync.WaitGroup
		errs := make(chan error, len(byChat))
		for chat, rows := range byChat {
			sending.Go(func() { errs <- s.deliver(ctx, chat, rows) })
		}
		sending.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				return err
			}
		}
		adapter.Pause(ctx, pollEvery)
	}
	return nil
}

// deliver sends the rows of a chat, up to the first that has to wait.
func (s *sender) deliver(ctx context.Context, chat string, rows []Outbound) error {
	for _, m := range rows {
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		if time.Now().Before(s.waits(chat)) {
			return nil
		}
		id, wait, refusal := s.send(context.WithoutCancel(ctx), m)
		var err error
		switch {
		case wait > 0:
			s.wait(chat, wait)
			return nil
		case refusal != "":
			err = s.Failed(context.WithoutCancel(ctx), m.ID, refusal, time.Time{})
		default:
			err = s.Sent(context.WithoutCancel(ctx), m.ID, id, time.Time{})
		}
		switch {
		case errors.Is(err, ErrNotQueued): // it was cancelled
		case err != nil:
			return err
		default:
			s.settled(m.ID)
		}
	}
	return nil
}

func (s *sender) waits(chat string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until[chat]
}

func (s *sender) wait(chat string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[chat] = time.Now().Add(d)
}

// send returns the id that the server gave a row, how long the row has to wait, or why it is refused.
func (s *sender) send(ctx context.Context, m Outbound) (id string, wait time.Duration, refusal string) {
	form := url.Values{"thread": {m.ThreadID}, "reply": {m.ReplyToID}, "text": {m.Content}}
	_, chat := msg.SplitJID(m.ChatJID)
	to := "http://matrix.test/" + url.PathEscape(chat) + "/" + strconv.FormatInt(m.ID, 10)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, err.Error()
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := s.client.Do(req)
	if err != nil {
		return "", retryAfter, ""
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	var answer struct{ ID, Error string }
	switch seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")); {
	case err != nil, res.StatusCode >= http.StatusInternalServerError, json.Unmarshal(body, &answer) != nil: // or a page
		return "", max(retryAfter, time.Duration(seconds)*time.Second), ""
	case res.StatusCode == http.StatusTooManyRequests:
		return "", time.Duration(max(1, seconds)) * time.Second, ""
	case answer.ID == "" && answer.Error == "": // not of this server
		return "", retryAfter, ""
	}
	return answer.ID, 0, answer.Error
}

// room is a server that takes messages for chats.
type room struct {
	plan adaptertest.Plan

	mu       sync.Mutex
	ids      map[string]string // by request
	received []adaptertest.Received
}

func (r *room) list() []adaptertest.Received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

func (r *room) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := req.ParseForm(); err != nil {
		panic(http.ErrAbortHandler)
	}
	chat, _, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
	chat = "matrix:" + chat
	if r.plan.Unreached(chat) {
		panic(http.ErrAbortHandler)
	}
	var fault adaptertest.Fault
	r.plan.Deliver(req.Context(), chat, func(f adaptertest.Fault) { fault = f }, func() { r.answer(w, req, chat, fault) })
}

// answer takes a message, or fails as the fault says.
func (r *room) answer(w http.ResponseWriter, req *http.Request, chat string, f adaptertest.Fault) {
	status, answer := http.StatusOK, map[string]string{}
	switch f.Class {
	case msg.Permanent:
		status, answer["error"] = http.StatusForbidden, "M_FORBIDDEN"
	case msg.Rate:
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(f.After.Seconds()))))
		status = http.StatusTooManyRequests
	case msg.Ambiguous:
		if f.Arrived {
			r.take(req, chat)
		}
		status = http.StatusBadGateway
	default:
		answer["id"] = r.take(req, chat)
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

// take stores a message, once, and returns its id.
func (r *room) take(req *http.Request, chat string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if id := r.ids[req.URL.Path]; id != "" {
		return id
	}
	r.received = append(r.received, adaptertest.Received{
		ChatJID: chat, Thread: req.Form.Get("thread"), ReplyTo: req.Form.Get("reply"), Text: req.Form.Get("text"),
	})
	r.ids[req.URL.Path] = fmt.Sprint("$", len(r.received))
	return r.ids[req.URL.Path]
}
