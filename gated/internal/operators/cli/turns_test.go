package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

func TestTurnsAndReplay_AskGatedAndPrintWhatBecame(t *testing.T) {
	t.Parallel()
	var asked string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String() + " by " + httpx.By(r)
		turn := msg.Turn{ID: 12, Folder: "main", ChatJID: "telegram:-1\x1b[2J", State: msg.TurnQueued}
		switch {
		case strings.HasSuffix(r.URL.Path, "/retry"):
			httpx.JSON(w, http.StatusAccepted, turn)
		case strings.HasSuffix(r.URL.Path, "/13/cancel"):
			httpx.Error(w, apierr.New(apierr.Conflict, "turn 13 is done: it has ended already"))
		case strings.HasSuffix(r.URL.Path, "/cancel"):
			turn.State = msg.TurnCancelled
			httpx.JSON(w, http.StatusAccepted, turn)
		default:
			httpx.JSON(w, http.StatusAccepted, map[string]int64{"id": 40})
		}
	}))
	t.Cleanup(srv.Close)
	for _, tt := range []struct {
		line, asked, out, problem string
		code                      int
	}{
		{"retry 12", "POST /v1/turns/12/retry by cli", "turn 12 of main in telegram:-1?[2J is queued\n", "", daemon.ExitOK},
		{"cancel 12", "POST /v1/turns/12/cancel by cli", "turn 12 of main in telegram:-1?[2J is cancelled\n", "", daemon.ExitOK},
		{"cancel 13", "POST /v1/turns/13/cancel by cli", "", "gated: turn 13 is done: it has ended already\n", daemon.ExitFailure},
		{"replay 34", "POST /v1/messages/34/replay by cli", "message 34 is copied as 40: `gated why 40` says what becomes of it\n", "", daemon.ExitOK},
		{"replay --again 34", "POST /v1/messages/34/replay?again=true by cli", "message 34 is copied as 40: `gated why 40` says what becomes of it\n", "", daemon.ExitOK},
	} {
		code, out, problem := run(t, at(srv.URL), strings.Fields(tt.line)...)
		if code != tt.code || asked != tt.asked || out != tt.out || problem != tt.problem {
			t.Errorf("%s: exit %d after %s, prints %q, says %q", tt.line, code, asked, out, problem)
		}
	}
}
