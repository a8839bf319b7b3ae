package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"arizuko/pkg/apierr"
	"arizuko/pkg/httpx"
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

func serve(h http.Handler, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w
}

func TestLimits_HandlerReturnsAtContextEnd_ItsErrorIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := serve(newLimits(questionTimeout).wrap(func(r *http.Request) (*answer, error) {
			<-r.Context().Done()
			return nil, apierr.New(apierr.Unavailable, "decided 3 of 5")
		}), "")
		kind, message := errorOf(t, w)
		if took := time.Since(start); took != questionTimeout-answerDelay || kind != apierr.Unavailable || message != "decided 3 of 5" {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
	})
}

// As a write does that waits for the write lock.
func TestLimits_HandlerHangs_AnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, release := time.Now(), make(chan struct{})
		w := serve(newLimits(changeTimeout).wrap(func(*http.Request) (*answer, error) {
			<-release
			return &answer{http.StatusCreated, 7}, nil
		}), "")
		kind, message := errorOf(t, w)
		if took := time.Since(start); took != changeTimeout || kind != apierr.Unavailable || !strings.Contains(message, "a change may still be made") {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
		close(release)
	})
}

func TestLimits_AllSlotsTaken_OthersWaitThenFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := newLimits(questionTimeout)
		h := l.wrap(func(r *http.Request) (*answer, error) {
			<-release
			return &answer{http.StatusOK, "done"}, nil
		})
		for range maxRequests {
			go serve(h, "")
		}
		synctest.Wait()
		start := time.Now()
		kind, message := errorOf(t, serve(h, ""))
		if took := time.Since(start); took >= questionTimeout || kind != apierr.Unavailable || !strings.Contains(message, "32 requests") {
			t.Errorf("after %s: %s %s", took, kind, message)
		}
		close(release)
		synctest.Wait()
		if w := serve(h, ""); w.Code != http.StatusOK || len(l.slots) != 0 {
			t.Errorf("afterwards: %d %s, %d slots taken", w.Code, w.Body, len(l.slots))
		}
	})
}

func TestLimits_ClientGone_HandlerIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	newLimits(time.Minute).wrap(func(r *http.Request) (*answer, error) {
		return nil, r.Context().Err()
	}).ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Code == http.StatusOK {
		t.Error("answered")
	}
}

func TestLimits_Panic_Answers500(t *testing.T) {
	l := newLimits(time.Minute)
	w := serve(l.wrap(func(*http.Request) (*answer, error) { panic("no") }), "")
	if kind, _ := errorOf(t, w); kind != apierr.Internal || w.Code != 500 || len(l.slots) != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func decodeNumber(r *http.Request) (*answer, error) {
	n, err := httpx.Decode[[]int](r)
	return &answer{http.StatusOK, n}, err
}

func TestLimits_Bodies(t *testing.T) {
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	router.Method(http.MethodPost, "/", newLimits(time.Minute).wrap(decodeNumber))
	for name, tc := range map[string]struct{ body, want string }{
		"whole":   {`[1,2]`, `[1,2]`},
		"empty":   {``, "body: empty"},
		"cut off": {`[1,`, "body: the JSON is cut off"},
		"too big": {"[1" + strings.Repeat(" ", httpx.MaxBody) + "]", "body: larger than 1048576 bytes"},
		"nested":  {strings.Repeat("[", 100_000), "body: "},
	} {
		if got := serve(router, tc.body).Body.String(); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %.300s, want %s", name, got, tc.want)
		}
	}
}

func TestLimits_SlowBody_BadRequestInTime(t *testing.T) {
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	l := newLimits(answerDelay + 50*time.Millisecond)
	router.Method(http.MethodPost, "/", l.wrap(decodeNumber))
	server := httptest.NewServer(router)
	defer server.Close()
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
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
}

// A connection serves later requests after one whose body came slowly, but in time.
func TestLimits_ReadDeadline_EndsWithTheBody(t *testing.T) {
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	l := newLimits(answerDelay + 200*time.Millisecond)
	router.Method(http.MethodPost, "/", l.wrap(func(r *http.Request) (*answer, error) {
		<-r.Context().Done()
		if !errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("ended early: %w", r.Context().Err())
		}
		return &answer{http.StatusOK, "done"}, nil
	}))
	server := httptest.NewServer(router)
	defer server.Close()
	for range 2 {
		response, err := server.Client().Post(server.URL, "application/json", strings.NewReader("1"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("%d %s", response.StatusCode, body)
		}
	}
}
