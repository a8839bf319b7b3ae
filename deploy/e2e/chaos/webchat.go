package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"arizuko/pkg/httpx"
)

// webMessage is the body of a post to the web chat.
type webMessage struct {
	Text     string `json:"text"`
	Topic    string `json:"topic"`
	ClientID string `json:"client_id"`
}

// webSender posts messages to a web chat in order, retrying each until dashd accepts it.
type webSender struct {
	dashd  *httpx.Client
	folder string

	mu    sync.Mutex
	queue []webMessage
}

func (s *webSender) add(m webMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, m)
}

func (s *webSender) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0
}

func (s *webSender) head() (m webMessage, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return webMessage{}, false
	}
	return s.queue[0], true
}

// run posts until ctx ends.
func (s *webSender) run(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}

		m, ok := s.head()
		if !ok || s.dashd.Do(ctx, http.MethodPost, "/chat/"+s.folder+"/messages", m, nil) != nil {
			continue // dashd is down: retry at the next tick
		}
		s.mu.Lock()
		s.queue = s.queue[1:]
		s.mu.Unlock()
	}
}
