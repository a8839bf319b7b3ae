package broadcasts

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/chats"
	"arizuko/pkg/httpx"
	"arizuko/pkg/store/storetest"
)

// ask sends a request and returns the status and the answer.
func (h *harness) ask(method, path, body string) (int, string) {
	h.t.Helper()
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	h.Mount(router)
	rec := httptest.NewRecorder()
	router.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}

// body is a request with the fields of a good one, some of them changed; nil leaves one out.
func body(t *testing.T, change map[string]any) string {
	t.Helper()
	fields := map[string]any{"chats": []string{"telegram:-1"}, "text": "down at 5", "by": "web:op"}
	for name, value := range change {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPI_BadRequest_IsRefusedAndSendsNothing(t *testing.T) {
	t.Parallel()
	h, path := harnessAt(t)
	many := make([]string, MaxChats+1)
	for i := range many {
		many[i] = fmt.Sprint("telegram:-", i)
	}
	for name, tc := range map[string]struct {
		method, body string
		status       int
		says         string
	}{
		"get":                {"GET", "", 400, "does not take GET"},
		"unknown field":      {"POST", body(t, map[string]any{"thread": "7"}), 400, "thread"},
		"wrong type":         {"POST", body(t, map[string]any{"chats": "telegram:-1"}), 400, "chats"},
		"no text":            {"POST", body(t, map[string]any{"text": " \n"}), 400, "text is missing"},
		"text too long":      {"POST", body(t, map[string]any{"text": strings.Repeat("ä", MaxText+1)}), 400, "4001 characters, at most 4000"},
		"NUL in the text":    {"POST", body(t, map[string]any{"text": "a\x00b"}), 400, "without NUL"},
		"no target":          {"POST", body(t, map[string]any{"chats": nil}), 400, "give a folder"},
		"two targets":        {"POST", body(t, map[string]any{"folder": "main"}), 400, "give a folder"},
		"too many chats":     {"POST", body(t, map[string]any{"chats": many}), 400, "10001 chats, at most 10000"},
		"no operator":        {"POST", body(t, map[string]any{"by": nil}), 400, "by is missing"},
		"operator too long":  {"POST", body(t, map[string]any{"by": strings.Repeat("x", maxBy+1)}), 400, "longer than 200 bytes"},
		"key too long":       {"POST", body(t, map[string]any{"key": strings.Repeat("x", maxKey+1)}), 400, "key is longer than 200 bytes"},
		"no address":         {"POST", body(t, map[string]any{"chats": []string{"-1"}}), 400, "write platform:room"},
		"an empty address":   {"POST", body(t, map[string]any{"chats": []string{""}}), 400, "write platform:room"},
		"unknown chat":       {"POST", body(t, map[string]any{"chats": []string{"telegram:-1", "telegram:-99"}}), 404, "telegram:-99"},
		"unknown group":      {"POST", body(t, map[string]any{"chats": nil, "folder": "gone"}), 404, "gone"},
		"path as the folder": {"POST", body(t, map[string]any{"chats": nil, "folder": "../main"}), 404, "no group"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, answer := h.ask(tc.method, Path, tc.body); status != tc.status || !strings.Contains(answer, tc.says) {
				t.Errorf("%d %.300s, want %d %s", status, answer, tc.status, tc.says)
			}
		})
	}
	if sent, who := h.sent(), storetest.Audit(t, path); len(sent)+len(who) != 0 {
		t.Errorf("sent to %q, audit rows %q", sent, who)
	}
}

func TestAPI_LongestText_IsSent(t *testing.T) {
	t.Parallel()
	h, _ := harnessAt(t)
	if status, answer := h.ask("POST", Path, body(t, map[string]any{"text": strings.Repeat("ä", MaxText)})); status != http.StatusAccepted {
		t.Errorf("%d %s", status, answer)
	}
}

func TestAPI_Repeated_HasOneAuditRow(t *testing.T) {
	t.Parallel()
	h, path := harnessAt(t)
	request := body(t, map[string]any{"chats": []string{"telegram:-2", "telegram:-1", "telegram:-2"}, "key": "k1"})
	for range 2 {
		status, answer := h.ask("POST", Path, request)
		var got Sent
		if err := json.Unmarshal([]byte(answer), &got); err != nil || status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", status, answer, err)
		}
		if diff := cmp.Diff(Sent{"k1", []string{"telegram:-2", "telegram:-1"}, []int64{1, 2}, nil}, got); diff != "" {
			t.Error(diff)
		}
	}
	if status, answer := h.ask("POST", Path, body(t, map[string]any{"text": "other", "key": "k1"})); status != http.StatusConflict || !strings.Contains(answer, "another text") {
		t.Errorf("the key of another text: %d %s", status, answer)
	}
	if diff := cmp.Diff([]string{"web:op: broadcast: 2 chats: down at 5"}, storetest.Audit(t, path)); diff != "" {
		t.Error(diff)
	}
}

// harnessAt is a harness on a file of the test.
func harnessAt(t *testing.T) (h *harness, path string) {
	t.Helper()
	path = storetest.Path(t)
	h = &harness{t: t, st: storetest.OpenAt(t, path, nil)}
	h.Broadcasts = New(h.st, &chats.Chats{}, slog.New(slog.DiscardHandler), func() time.Time { return time.UnixMilli(1000) })
	h.fill("{}")
	return h, path
}
