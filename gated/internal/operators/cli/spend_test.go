package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"arizuko/gated/internal/operators/api"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

func fakeSpend(t *testing.T) (url string, requests *[]string) {
	t.Helper()
	requests = new([]string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.Method+" "+r.URL.String())
		q := r.URL.Query()
		answer := api.Spend{From: "2026-10-25", To: "2026-11-23", By: q.Get("by"), Lines: []api.SpendLine{}}
		if q.Get("folder") == "" {
			answer.Lines = []api.SpendLine{{Name: "telegram:\x1b[2J1", Turns: 2, Input: 1000, Output: 30, CostUSD: 1.25}, {Name: "web:main", Turns: 1}}
			answer.Total = api.SpendLine{Turns: 3, Input: 1000, Output: 30, CostUSD: 1.25}
		}
		httpx.JSON(w, http.StatusOK, answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, requests
}

func TestSpend_PrintsLinesAndTotal(t *testing.T) {
	t.Parallel()
	url, requests := fakeSpend(t)
	code, stdout, stderr := run(t, at(url), "spend", "--by", "chat", "--from", "2026-10-25")
	const want = `CHAT             TURNS  TOKENS READ  TOKENS WRITTEN  US DOLLARS
telegram:?[2J1   2      1000         30              1.2500
web:main         1      0            0               0.0000
total            3      1000         30              1.2500
`
	if code != daemon.ExitOK || stderr != "" || !slices.Equal(strings.Fields(stdout), strings.Fields(want)) {
		t.Errorf("exit %d, %q, prints\n%s", code, stderr, stdout)
	}
	if !slices.Equal(*requests, []string{"GET /v1/spend?by=chat&folder=&from=2026-10-25&to="}) {
		t.Errorf("requests %q", *requests)
	}
	if _, stdout, _ := run(t, at(url), "spend", "--folder", "acme"); stdout != "no agent has reported what it used from 2026-10-25 to 2026-11-23\n" {
		t.Errorf("without any it prints %q", stdout)
	}
}

func TestSpend_JSON_IsWhatGatedAnswers(t *testing.T) {
	t.Parallel()
	url, _ := fakeSpend(t)
	code, stdout, _ := run(t, at(url), "spend", "--json")
	var got api.Spend
	if err := json.Unmarshal([]byte(stdout), &got); code != daemon.ExitOK || err != nil || got.Total.CostUSD != 1.25 || len(got.Lines) != 2 {
		t.Errorf("exit %d, %v, prints %s", code, err, stdout)
	}
}
