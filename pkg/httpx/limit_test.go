package httpx

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/apierr"
)

// errorOf returns the error that a request was answered with.
func errorOf(t *testing.T, w *httptest.ResponseRecorder) (kind apierr.Kind, message string) {
	t.Helper()
	var body struct {
		Error struct {
			Kind    apierr.Kind
			Message string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return body.Error.Kind, body.Error.Message
}

func record(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w
}

func TestLimit_HandlerReturnsAtContextEnd_ItsErrorIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := record(NewLimit(time.Second).Wrap(func(r *http.Request) (*Answer, error) {
			<-r.Context().Done()
			return nil, apierr.New(apierr.Unavailable, "decided 3 of 5")
		}), "")
		kind, message := errorOf(t, w)
		if took := time.Since(start); took != time.Second-answerDelay || kind != apierr.Unavailable || message != "decided 3 of 5" {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
	})
}

// As a write does that waits for the write lock.
func TestLimit_HandlerHangs_AnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, release := time.Now(), make(chan struct{})
		w := record(NewLimit(time.Second).Wrap(func(*http.Request) (*Answer, error) {
			<-release
			return &Answer{http.StatusCreated, 7}, nil
		}), "")
		kind, message := errorOf(t, w)
		if took := time.Since(start); took != time.Second || kind != apierr.Unavailable || !strings.Contains(message, "a change may still be made") {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
		close(release)
	})
}

func TestLimit_AllSlotsTaken_OthersWaitThenFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := NewLimit(time.Second)
		h := l.Wrap(func(r *http.Request) (*Answer, error) {
			<-release
			return &Answer{http.StatusOK, "done"}, nil
		})
		for range maxRequests {
			go record(h, "")
		}
		synctest.Wait()
		start := time.Now()
		kind, message := errorOf(t, record(h, ""))
		if took := time.Since(start); took >= time.Second || kind != apierr.Unavailable || !strings.Contains(message, "32 requests") {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
		close(release)
		synctest.Wait()
		w := record(h, "")
		synctest.Wait()
		if w.Code != http.StatusOK || len(l.slots) != 0 {
			t.Errorf("afterwards: %d %s, %d slots taken", w.Code, w.Body, len(l.slots))
		}
	})
}

func TestLimit_ClientGone_HandlersContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	NewLimit(time.Minute).Wrap(func(r *http.Request) (*Answer, error) {
		return nil, r.Context().Err()
	}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code == http.StatusOK {
		t.Error("answered")
	}
}

func TestLimit_Panic_Answers500(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimit(time.Minute)
		w := record(l.Wrap(func(*http.Request) (*Answer, error) { panic("no") }), "")
		synctest.Wait() // the slot is given back after the answer
		if kind, _ := errorOf(t, w); kind != apierr.Internal || w.Code != 500 || len(l.slots) != 0 {
			t.Errorf("%d %s, %d slots taken", w.Code, w.Body, len(l.slots))
		}
	})
}

func decodeNumber(r *http.Request) (*Answer, error) {
	n, err := Decode[[]int](r)
	return &Answer{http.StatusOK, n}, err
}

func TestLimit_Bodies(t *testing.T) {
	router := NewRouter(slog.New(slog.DiscardHandler), nil)
	router.Method(http.MethodPost, "/", NewLimit(time.Minute).Wrap(decodeNumber))
	for name, tc := range map[string]struct{ body, want string }{
		"whole":   {`[1,2]`, `[1,2]`},
		"empty":   {``, "body: empty"},
		"cut off": {`[1,`, "body: the JSON is cut off"},
		"too big": {"[1" + strings.Repeat(" ", MaxBody) + "]", "body: larger than 1048576 bytes"},
		"nested":  {strings.Repeat("[", 100_000), "body: "},
	} {
		if got := record(router, tc.body).Body.String(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %.300s, want %s", name, got, tc.want)
		}
	}
}

func TestLimit_SlowBody_BadRequestInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		router := NewRouter(slog.New(slog.DiscardHandler), nil)
		l := NewLimit(answerDelay + 50*time.Millisecond)
		router.Method(http.MethodPost, "/", l.Wrap(decodeNumber))
		connection, err := ServeInBubble(t, router)(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := io.WriteString(connection, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n[1"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != 400 || !strings.Contains(string(body), "did not arrive in time") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	})
}

// A connection serves later requests after one whose body came slowly, but in time.
func TestLimit_ReadDeadline_EndsWithTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		router := NewRouter(slog.New(slog.DiscardHandler), nil)
		l := NewLimit(answerDelay + 200*time.Millisecond)
		router.Method(http.MethodPost, "/", l.Wrap(func(r *http.Request) (*Answer, error) {
			<-r.Context().Done()
			if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				return nil, fmt.Errorf("ended early: %w", r.Context().Err())
			}
			return &Answer{http.StatusOK, "done"}, nil
		}))
		transport := &http.Transport{DialContext: ServeInBubble(t, router)}
		defer transport.CloseIdleConnections()
		client := &http.Client{Transport: transport}
		for range 2 {
			response, err := client.Post("http://memory/", "application/json", strings.NewReader("1"))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode != 200 {
				t.Errorf("%d %s", response.StatusCode, body)
			}
		}
	})
}
