package cli

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// fakeLost answers as gated does of which one row of telegram:-1 is lost.
func fakeLost(t *testing.T) (url string, requests *[]string) {
	t.Helper()
	requests = new([]string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.Method+" "+r.URL.String())
		switch {
		case r.URL.Path == "/v1/messages/9/replay":
			httpx.Error(w, apierr.New(apierr.Conflict, "message 9 is sent"))
		case r.Method == http.MethodPost:
			httpx.JSON(w, http.StatusAccepted, map[string]int64{"id": 12})
		case r.URL.Query().Get("chat") == "telegram:-2":
			httpx.JSON(w, http.StatusOK, map[string]any{"messages": []rows.Lost{}})
		default:
			httpx.JSON(w, http.StatusOK, map[string]any{"messages": []rows.Lost{{
				ID: 7, ChatJID: "telegram:-1", State: msg.OutFailed, Class: msg.Permanent, Error: "no\x1b[2J chat", Parts: 2, Sent: 1, NoticeID: 8, Content: "a\nb",
			}}})
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, requests
}

func TestLost_PrintsTheRows(t *testing.T) {
	t.Parallel()
	url, _ := fakeLost(t)
	code, stdout, stderr := run(t, at(url), "lost")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != daemon.ExitOK || stderr != "" || len(lines) != 2 || strings.ContainsAny(stdout, "\x1b\t") {
		t.Fatalf("exit %d, prints %q, says %q", code, stdout, stderr)
	}
	for _, word := range []string{"7", "failed", "permanent", "1 of 2", "telegram:-1", "8", "no?[2J chat", "a?b"} {
		if !strings.Contains(lines[1], word) {
			t.Errorf("line %q is without %q", lines[1], word)
		}
	}
	if _, stdout, _ := run(t, at(url), "lost", "--chat", "telegram:-2"); stdout != "no lost messages\n" {
		t.Errorf("without any it prints %q", stdout)
	}
}

func TestLost_Resend_SendsCopies(t *testing.T) {
	t.Parallel()
	url, requests := fakeLost(t)
	code, stdout, stderr := run(t, at(url), "lost", "resend", "7", "9")
	if code != daemon.ExitFailure || stdout != "message 7 is sent again as 12\n" || stderr != "gated: message 9: message 9 is sent\n" {
		t.Errorf("exit %d, prints %q, says %q", code, stdout, stderr)
	}
	if want := []string{"POST /v1/messages/7/replay", "POST /v1/messages/9/replay"}; !slices.Equal(*requests, want) {
		t.Errorf("asked %q, want %q", *requests, want)
	}
}
