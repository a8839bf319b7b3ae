package events

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const secret = "8f742231b10e8888abcd99yyyzzz85a5"

// post is a request body, signed with a secret at a time.
type post struct {
	body, kind, secret string
	at                 time.Time
}

func (p post) request() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/slack/events", strings.NewReader(p.body))
	r.Header.Set("Content-Type", p.kind)
	stamp := strconv.FormatInt(p.at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(p.secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, p.body)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return r
}

func TestPostHandler(t *testing.T) {
	const jsonBody, formBody = "application/json", "application/x-www-form-urlencoded"
	now := time.Now()
	for what, tt := range map[string]struct {
		post     post
		change   func(http.Header)
		reply    any
		err      error
		status   int
		answer   string // a part of it
		received string // kind and payload, "" for nothing
	}{
		"event":            {post: post{`{"event":{}}`, jsonBody, secret, now}, status: 200, received: eventRequest + ` {"event":{}}`},
		"again":            {post: post{`{"event":{}}`, jsonBody, secret, now}, change: func(h http.Header) { h.Set("X-Slack-Retry-Num", "3") }, status: 200, received: eventRequest + ` {"event":{}}`},
		"no JSON":          {post: post{`{`, jsonBody, secret, now}, status: 200, received: eventRequest + ` {`},
		"not received":     {post: post{`{}`, jsonBody, secret, now}, err: errors.New("full"), status: 503, answer: "cannot be stored now", received: eventRequest + ` {}`},
		"greeting":         {post: post{`{"type":"url_verification","challenge":"c7"}`, jsonBody, secret, now}, status: 200, answer: `"challenge":"c7"`},
		"forged greeting":  {post: post{`{"type":"url_verification","challenge":"c7"}`, jsonBody, "guess", now}, status: 401, answer: "SLACK_SIGNING_SECRET"},
		"forged":           {post: post{`{}`, jsonBody, "guess", now}, status: 401},
		"old":              {post: post{`{}`, jsonBody, secret, now.Add(-6 * time.Minute)}, status: 401},
		"of a time ahead":  {post: post{`{}`, jsonBody, secret, now.Add(6 * time.Minute)}, status: 401},
		"unsigned":         {post: post{`{}`, jsonBody, secret, now}, change: func(h http.Header) { h.Del("X-Slack-Signature") }, status: 401},
		"of another scale": {post: post{`{}`, jsonBody, secret, now}, change: func(h http.Header) { h.Set("X-Slack-Signature", "v1=00") }, status: 401},
		"huge":             {post: post{strings.Repeat("x", maxPost+1), jsonBody, secret, now}, status: 400},
		"command": {
			post:  post{"command=%2Fnew&text=hello&channel_id=C1&user_id=U1&trigger_id=7", formBody, secret, now},
			reply: map[string]string{"text": "Got it."}, status: 200, answer: `"text":"Got it."`, received: commandRequest + ` {`,
		},
		"click":      {post: post{"payload=%7B%7D", formBody, secret, now}, status: 200, received: "interactive {}"},
		"no form":    {post: post{"%zz", formBody, secret, now}, status: 200, received: "interactive "},
		"empty":      {post: post{"", jsonBody, secret, now}, status: 200, received: eventRequest + " "},
		"odd header": {post: post{`{}`, ";;", secret, now}, status: 200, received: eventRequest + " {}"},
	} {
		t.Run(what, func(t *testing.T) {
			received := ""
			h := &postHandler{secret: secret, timeout: postTimeout, posted: func(bool) {}, receive: func(_ context.Context, kind string, payload []byte) (any, error) {
				received = kind + " " + string(payload)
				return tt.reply, tt.err
			}}
			r, w := tt.post.request(), httptest.NewRecorder()
			if tt.change != nil {
				tt.change(r.Header)
			}
			h.ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.answer) || strings.Contains(w.Body.String(), secret) {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
			if !strings.HasPrefix(received, tt.received) || (received == "") != (tt.received == "") {
				t.Errorf("received %q, want %q", received, tt.received)
			}
		})
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestPostHandler_NoCurrentSignature_RefusedBeforeBody(t *testing.T) {
	now := time.Now()
	for what, tt := range map[string]struct {
		at     time.Time
		header string
		value  string
	}{
		"no signature":    {now, "X-Slack-Signature", ""},
		"no time":         {now, "X-Slack-Request-Timestamp", ""},
		"short signature": {now, "X-Slack-Signature", "v0=00"},
		"old":             {now.Add(-6 * time.Minute), "X-Other", ""},
	} {
		t.Run(what, func(t *testing.T) {
			r, w := post{`{}`, "application/json", secret, tt.at}.request(), httptest.NewRecorder()
			r.Header.Set(tt.header, tt.value)
			r.Body = io.NopCloser(unreadable{t})
			(&postHandler{secret: secret}).ServeHTTP(w, r)
			if w.Code != http.StatusUnauthorized {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
		})
	}
}

// FuzzPost posts what may be signed, forged or altered: only what has the right signature and a
// time of now is received, and as it came.
func FuzzPost(f *testing.F) {
	f.Add([]byte(`{"event":{}}`), "application/json", "", "", int64(0), uint8(1))
	f.Add([]byte(`{"type":"url_verification","challenge":"c7"}`), "application/json", "", "", int64(-299), uint8(1))
	f.Add([]byte("command=%2Fnew&text=hello&trigger_id=7"), "application/x-www-form-urlencoded", "", "", int64(299), uint8(1))
	f.Add([]byte("payload=%7B%7D&command"), "application/x-www-form-urlencoded; x", "", "", int64(301), uint8(1))
	f.Add([]byte(`{}`), "", "1531420618", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", int64(0), uint8(0))
	f.Add([]byte(`{}`), ";;", "99999999999999999999", "v0=", int64(0), uint8(2))
	f.Add([]byte(`{}`), "a", "+1", "v1=zz", int64(0), uint8(3))
	f.Fuzz(func(t *testing.T, body []byte, kind, stamp, signature string, age int64, how uint8) {
		now := time.Now()
		p := post{string(body), kind, secret, now.Add(-time.Duration(age%1000) * time.Second)}
		if how%4 == 3 {
			p.secret = "guess"
		}
		r := p.request()
		switch how % 4 {
		case 0:
			r.Header.Set("X-Slack-Signature", signature)
		case 2:
			r.Header.Set("X-Slack-Request-Timestamp", stamp)
		}
		received := 0
		h := &postHandler{secret: secret, timeout: postTimeout, posted: func(bool) {}, receive: func(_ context.Context, kind string, payload []byte) (any, error) {
			if received++; kind == eventRequest && string(payload) != string(body) {
				t.Errorf("received %q of %q", payload, body)
			}
			return nil, nil
		}}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		signed := isSigned(r.Header, body, now)
		if accepted := w.Code != http.StatusUnauthorized; accepted != signed || received > 0 && !signed || received > 1 {
			t.Errorf("answered %d, received %d times, signed %v: %v", w.Code, received, signed, r.Header)
		}
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("the answer has the secret: %s", w.Body)
		}
	})
}

// isSigned checks a signature by the words of Slack's documentation.
func isSigned(header http.Header, body []byte, now time.Time) bool {
	stamp := header.Get("X-Slack-Request-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	digest, found := strings.CutPrefix(header.Get("X-Slack-Signature"), "v0=")
	sum, err := hex.DecodeString(digest)
	return found && err == nil && hmac.Equal(sum, mac.Sum(nil))
}
