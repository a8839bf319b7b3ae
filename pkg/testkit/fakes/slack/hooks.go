package slack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// maxAnswer bounds the app's answer to a post, in bytes.
const maxAnswer = 1 << 20

// postAll posts waiting deliveries to EventsURL, one after the other, until there are none.
func (s *Server) postAll() {
	defer s.queue.posting.Done()
	client := s.poster()
	for {
		ctx, d, to := s.nextPost()
		if d == nil {
			return
		}
		payload, reason := s.post(ctx, client, to, d)
		s.finishPost(d, payload, reason)
	}
}

// nextPost is the next delivery; nil if there is none or the fake is unreachable. Its context ends
// when connections break.
func (s *Server) nextPost() (ctx context.Context, d *delivery, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	ctx = s.ConnContext()
	if len(q.waiting) == 0 || s.o.EventsURL == "" || ctx.Err() != nil {
		q.worker = false
		if len(q.waiting) > 0 {
			s.dispatch()
		}
		return ctx, nil, ""
	}
	d = q.waiting[0]
	q.waiting = q.waiting[1:]
	q.out = append(q.out, d)
	return ctx, d, s.o.EventsURL
}

// post posts one delivery, and returns the reason if it failed.
func (s *Server) post(ctx context.Context, client *http.Client, to string, d *delivery) (json.RawMessage, string) {
	body, contentType := []byte(d.payload), "application/json"
	if d.kind != "events_api" {
		body, contentType = formOf(d), "application/x-www-form-urlencoded"
	}
	req, err := signed(ctx, to, body, s.o.SigningSecret, time.Now())
	if err != nil {
		return nil, "connection_failed"
	}
	req.Header.Set("Content-Type", contentType)
	if d.attempt > 0 {
		req.Header.Set("X-Slack-Retry-Num", strconv.Itoa(d.attempt))
		req.Header.Set("X-Slack-Retry-Reason", d.reason)
	}
	status, answer, err := exchange(client, req)
	switch {
	case err != nil:
		return nil, failure(err)
	case status < 200 || status > 299:
		return nil, "http_error"
	}
	return answer, ""
}

// exchange sends a request, and reads the answer.
func exchange(client *http.Client, req *http.Request) (status int, answer []byte, err error) {
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}

func (s *Server) poster() *http.Client {
	return &http.Client{Timeout: s.o.AckTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
}

// failure is Slack's name of the error of a post.
func failure(err error) string {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return "http_timeout"
	}
	return "connection_failed"
}

// formOf is a slash command or an interaction as a form.
func formOf(d *delivery) []byte {
	if d.kind == "interactive" {
		return []byte(url.Values{"payload": {string(d.payload)}}.Encode())
	}
	var fields map[string]string
	must(json.Unmarshal(d.payload, &fields)) // the fake's own types
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	return []byte(form.Encode())
}

// signed is a request with Slack's signature, v0, of a time and a body.
func signed(ctx context.Context, to string, body []byte, secret string, at time.Time) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	req.Header.Set("X-Slack-Request-Timestamp", stamp)
	req.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	req.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	return req, nil
}

// finishPost handles the result of a post. A failed one is retried later.
func (s *Server) finishPost(d *delivery, answer json.RawMessage, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.takeBack(d)
	if reason == "" {
		s.finish(d, answer)
	} else {
		s.retry(d, reason)
	}
	s.Notify()
}

// SetEventsURL makes the Events API post to a URL, once that has answered the challenge; "" returns
// to Socket Mode.
func (s *Server) SetEventsURL(ctx context.Context, to string) error {
	if to != "" {
		if err := s.challenge(ctx, to); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.o.EventsURL = to
	if to != "" {
		s.breakSockets()
	}
	s.dispatch()
	return nil
}

func (s *Server) challenge(ctx context.Context, to string) error {
	s.mu.Lock()
	challenge := s.id("challenge-")
	s.mu.Unlock()
	body := encoded(map[string]string{"token": "FAKEverificationTokenXXXX", "challenge": challenge,
		"type": "url_verification"})
	status, answer, err := s.postSigned(ctx, to, string(body), s.o.SigningSecret, time.Now())
	if err != nil {
		return err
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	_ = json.Unmarshal([]byte(answer), &echo) // the answer may also be plain text or a form
	form, _ := url.ParseQuery(answer)
	if status != http.StatusOK || answer != challenge && echo.Challenge != challenge &&
		form.Get("challenge") != challenge {
		return fmt.Errorf("slack: %s answered the challenge with %d %q", to, status, answer)
	}
	return nil
}

func (s *Server) postSigned(ctx context.Context, to, body, secret string, at time.Time) (int, string, error) {
	req, err := signed(ctx, to, []byte(body), secret, at)
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	status, answer, err := exchange(s.poster(), req)
	return status, string(answer), err
}
