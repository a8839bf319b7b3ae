package polls

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

func TestAPI_Close_ClosesOnce(t *testing.T) {
	h := newHarness(t)
	p := h.poll(time.Time{}, msg.OutSent)
	router := httpx.NewRouter(slog.New(slog.DiscardHandler), nil)
	h.c.Mount(router)
	for _, tt := range []struct {
		id     string
		status int
		words  string
	}{
		{"99", 404, "there is no poll 99"}, {"x", 400, "is not the id of a poll"}, {"0", 400, "is not the id of a poll"},
		{fmt.Sprint(p.ID), 200, "closed"}, {fmt.Sprint(p.ID), 409, "is closed already"},
	} {
		rec := httptest.NewRecorder()
		router.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/polls/"+tt.id+"/close", nil))
		if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.words) {
			t.Errorf("%s: %d %s", tt.id, rec.Code, rec.Body)
		}
	}
	now, closings := h.step(p)
	if now.State != msg.PollClosed || now.ClosedAt != h.clock.UnixMilli() || closings != 1 {
		t.Errorf("the poll is %s at %d, and %d rows close its message", now.State, now.ClosedAt, closings)
	}
}
