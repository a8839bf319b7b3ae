package reminders

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
)

// ask sends a request and returns the status and the answer.
func (h *harness) ask(method, path, body string) (int, string) {
	h.t.Helper()
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	h.s.Mount(router)
	rec := httptest.NewRecorder()
	router.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}

// lines asks for a list.
func (h *harness) lines(query string) []Line {
	h.t.Helper()
	status, body := h.ask(http.MethodGet, Path+query, "")
	var answer struct{ Reminders []Line }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || answer.Reminders == nil {
		h.t.Fatalf("%s: %d %s, %v", query, status, body, err)
	}
	return answer.Reminders
}

func TestAPI_BadRequest_IsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	h := harnessAt(t, path, func(error) {})
	active, gone := h.daily(), h.daily()
	h.write(func(tx *store.Tx) error { return rows.EndReminder(tx, gone.ID, msg.ReminderDone, "", "", 1) })
	const by = `{"by":"web:op"}`
	cancel := fmt.Sprintf("%s/%d/cancel", Path, active.ID)
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"cancel is no GET":    {"GET", cancel, "", 400, "does not take GET"},
		"unknown field":       {"POST", cancel, `{"by":"op","reason":"x"}`, 400, "reason"},
		"no operator":         {"POST", cancel, `{"by":" "}`, 400, "by is missing"},
		"operator too long":   {"POST", cancel, `{"by":"` + strings.Repeat("x", maxBy+1) + `"}`, 400, "longer than 200 bytes"},
		"id is a word":        {"POST", Path + "/all/cancel", by, 400, "is not an id"},
		"id is zero":          {"POST", Path + "/0/cancel", by, 400, "is not an id"},
		"id is too large":     {"POST", Path + "/99999999999999999999/cancel", by, 400, "is not an id"},
		"unknown id":          {"POST", Path + "/999/cancel", by, 404, "no reminder 999"},
		"ended before":        {"POST", fmt.Sprintf("%s/%d/cancel", Path, gone.ID), by, 409, "is done"},
		"unknown state":       {"GET", Path + "?state=lost", "", 400, "none of active, done, cancelled"},
		"after is a word":     {"GET", Path + "?after=x", "", 400, "is not an id"},
		"all that have ended": {"GET", Path + "?state=done", "", 400, "for a folder or a chat"},
		"folder and chat":     {"GET", Path + "?folder=main&chat=telegram:-1", "", 400, "not both"},
		"a verb that is not":  {"POST", Path + "/1/fire", by, 404, "no such path"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := h.ask(tc.method, tc.path, tc.body)
			if status != tc.status || !strings.Contains(body, strings.ReplaceAll(tc.says, `"`, `\"`)) {
				t.Errorf("%d %s, want %d %s", status, body, tc.status, tc.says)
			}
		})
	}
	h.expect(0, msg.ReminderActive, active)
	if got := storetest.Audit(t, path); len(got) != 0 {
		t.Errorf("audit rows %q", got)
	}
}

func TestAPI_Cancel_EndsItOnceWithAnAuditRow(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	h := harnessAt(t, path, func(error) {})
	r := h.daily()
	cancel := fmt.Sprintf("%s/%d/cancel", Path, r.ID)
	status, body := h.ask("POST", cancel, `{"by":"web:op"}`)
	var line Line
	if err := json.Unmarshal([]byte(body), &line); err != nil || status != http.StatusOK || line.ID != r.ID || line.State != msg.ReminderCancelled || line.NextSlot != 0 {
		t.Errorf("%d %s, %v", status, body, err)
	}
	if status, body := h.ask("POST", cancel, `{"by":"web:op"}`); status != http.StatusConflict || !strings.Contains(body, "is cancelled") {
		t.Errorf("again: %d %s", status, body)
	}
	if got, want := storetest.Audit(t, path), []string{"web:op: cancel reminder: 1 of main in telegram:-1"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("audit rows %q, want %q", got, want)
	}
	h.at("2026-11-24T09:00:00Z")
	h.expect(0, msg.ReminderCancelled, r)
}

func TestAPI_List_FiltersAndPages(t *testing.T) {
	h := parallel(t)
	h.write(func(tx *store.Tx) error {
		for i := range int64(listRows + 1) {
			r := msg.Reminder{Folder: "main", ChatJID: chatJID, Kind: msg.ReminderText, Body: "x", TimeZone: "UTC", Missed: msg.MissedOne, DueAt: 1 + i, NextSlot: 1 + i}
			if err := rows.PutReminder(tx, &r); err != nil {
				return err
			}
		}
		return rows.EndReminder(tx, 3, msg.ReminderCancelled, "web:op", "", 1)
	})
	first := h.lines("")
	if len(first) != listRows || first[0].ID != 1 || first[2].ID != 4 {
		t.Fatalf("%d lines, the first of %d", len(first), first[0].ID)
	}
	for query, want := range map[string]int{
		fmt.Sprintf("?after=%d", first[len(first)-1].ID): 0, "?after=200": 1, "?folder=main&after=199": 2, "?chat=" + chatJID + "&after=100": 101,
		"?chat=" + chatJID + "&state=cancelled": 1, "?folder=main&state=done": 0, "?chat=telegram:-99": 0, "?folder=gone": 0,
	} {
		if got := h.lines(query); len(got) != want {
			t.Errorf("%s: %d lines, want %d", query, len(got), want)
		}
	}
}
