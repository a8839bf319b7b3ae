package adapter

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/msg"
)

func TestClassify(t *testing.T) {
	classes := Classes{
		Status: map[int]msg.ErrorClass{401: msg.Auth, 503: msg.Transient},
		Code:   map[string]msg.ErrorClass{"ratelimited": msg.Rate, "internal_error": msg.Ambiguous},
	}
	for name, tt := range map[string]struct {
		err     error
		refused *Refusal
		class   msg.ErrorClass
		after   time.Duration
	}{
		"refused":               {io.EOF, &Refusal{Status: 400}, msg.Permanent, 0},
		"refused, with a wait":  {io.EOF, &Refusal{Status: 400, RetryAfter: 3}, msg.Permanent, 3},
		"rate":                  {io.EOF, &Refusal{Status: 429, RetryAfter: 3}, msg.Rate, 3},
		"server error":          {io.EOF, &Refusal{Status: 502}, msg.Ambiguous, 0},
		"status of the table":   {io.EOF, &Refusal{Status: 401}, msg.Auth, 0},
		"table before default":  {io.EOF, &Refusal{Status: 503}, msg.Transient, 0},
		"code of the table":     {io.EOF, &Refusal{Code: "ratelimited", RetryAfter: 3}, msg.Rate, 3},
		"code before status":    {io.EOF, &Refusal{Status: 401, Code: "internal_error"}, msg.Ambiguous, 0},
		"unknown code":          {io.EOF, &Refusal{Code: "is_archived"}, msg.Permanent, 0},
		"page of a firewall":    {io.EOF, &Refusal{Status: 403, Foreign: true}, msg.Transient, 0},
		"page instead of auth":  {io.EOF, &Refusal{Status: 401, Foreign: true}, msg.Transient, 0},
		"page of a censor":      {io.EOF, &Refusal{Status: 451, Foreign: true}, msg.Transient, 0},
		"page of a gateway":     {io.EOF, &Refusal{Status: 502, Foreign: true}, msg.Ambiguous, 0},
		"page about the size":   {io.EOF, &Refusal{Status: 413, Foreign: true}, msg.Permanent, 0},
		"page about the rate":   {io.EOF, &Refusal{Status: 429, RetryAfter: 3, Foreign: true}, msg.Rate, 3},
		"page without a time":   {io.EOF, &Refusal{Status: 429, Foreign: true}, msg.Rate, ForeignWait},
		"no answer":             {io.ErrUnexpectedEOF, nil, msg.Ambiguous, 0},
		"never sent":            {fmt.Errorf("call: %w", ErrUnsent), nil, msg.Transient, 0},
		"broken while reading":  {&net.OpError{Op: "read"}, nil, msg.Ambiguous, 0},
		"classified before":     {fmt.Errorf("x: %w", &Failure{Class: msg.Auth, Err: ErrUnsent}), nil, msg.Auth, 0},
		"classified and status": {&Failure{Class: msg.Auth, Err: io.EOF}, &Refusal{Status: 400}, msg.Auth, 0},
	} {
		if f := classes.Classify(tt.err, tt.refused); f.Class != tt.class || f.After != tt.after || f.Err == nil {
			t.Errorf("%s: %s after %s, want %s after %s", name, f.Class, f.After, tt.class, tt.after)
		}
	}
	for foreign := range map[bool]int{true: 0, false: 0} {
		if f := classes.Classify(io.EOF, &Refusal{Status: 429, Foreign: foreign}); f.Account != foreign {
			t.Errorf("a rate failure, foreign %v, is one of the account: %v", foreign, f.Account)
		}
	}
	if f := (Classes{}).Classify(io.EOF, &Refusal{Status: 401}); f.Class != msg.Permanent {
		t.Errorf("without tables: %s", f.Class)
	}
}

// A time that a proxy asks for is obeyed, but not for ever.
func TestRetryAfter_OfAProxy_IsBounded(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": ForeignWait, "0": ForeignWait, "-7": ForeignWait, "7": 7 * time.Second, "999999999999": maxForeignWait,
		"99999999999999999999": maxForeignWait, "Wed, 21 Oct 2026 07:28:00 GMT": ForeignWait,
	} {
		res := &http.Response{StatusCode: 429, Status: "429 Too Many Requests", Header: http.Header{"Retry-After": {header}}}
		for _, err := range []error{ForeignRate(res), HandshakeError("it", res, io.EOF)} {
			if f := new(Failure); !errors.As(err, &f) || f.After != want || f.Class == msg.Permanent || !strings.Contains(err.Error(), "429") {
				t.Errorf("%q: %#v, want %s", header, err, want)
			}
		}
	}
}

func TestHandshakeError_SaysWhoAnsweredWhat(t *testing.T) {
	res := &http.Response{StatusCode: 200, Status: "200 OK"}
	if err := HandshakeError("ws://slack", res, io.EOF); err.Error() != "ws://slack answers the handshake of a websocket with 200 OK" {
		t.Errorf("%v", err)
	}
	if err := HandshakeError("ws://slack", nil, io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("no answer: %v", err)
	}
}

func TestTransportError_HidesURL(t *testing.T) {
	cause := fmt.Errorf("%w: reset", ErrUnsent)
	err := TransportError(&url.Error{Op: "Post", URL: "https://api/bot" + secret, Err: cause})
	if strings.Contains(err.Error(), secret) || !errors.Is(err, ErrUnsent) {
		t.Errorf("%v", err)
	}
}
