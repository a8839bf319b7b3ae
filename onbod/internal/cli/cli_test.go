package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// run runs a command line against an onbod that answers with a body, and returns the request and the output.
func run(t *testing.T, line, answer string, status int) (asked, printed string, err error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = r.Method + " " + r.URL.String() + " " + string(body)
		if status >= 400 {
			httpx.Error(w, apierr.New(apierr.KindOfStatus(status), "%s", answer))
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer srv.Close()
	commands := Commands(func() (*httpx.Client, error) { return httpx.NewClient("onbod", srv.URL, ""), nil })
	words := strings.Fields(line)
	var out bytes.Buffer
	err = commands[words[0]](context.Background(), words[1:], &out)
	return asked, out.String(), err
}

func TestCommands_AskAndPrint(t *testing.T) {
	const row = `{"requests":[{"code":"ABCD-1234","state":"pending","created_at":0,"chat_jid":"telegram:-1","title":"\u001b[2JFam\nily","sender":"telegram:7","sample":"hi"}]}`
	for line, tt := range map[string]struct{ answer, asked, printed string }{
		"requests":                    {row, "GET /v1/requests?state=pending ", "?[2JFam?ily"},
		"requests --state all":        {`{"requests":[]}`, "GET /v1/requests?state= ", "no requests"},
		"approve ABCD-1234":           {`{"text":"Connected ` + "`Fam`" + ` to the new group fam."}`, `POST /approve {"code":"ABCD-1234","folder":"","by":"local:operator"}`, "Connected Fam to the new group fam.\n"},
		"approve ABCD-1234 acme/eng":  {`{"text":"ok"}`, `POST /approve {"code":"ABCD-1234","folder":"acme/eng","by":"local:operator"}`, "ok"},
		"reopen ABCD-1234":            {`{"text":"ok"}`, `POST /reopen {"code":"ABCD-1234","by":"local:operator"}`, "ok"},
		"requests --state rejected":   {`{"requests":[{"code":"ABCD-1234","title":"` + strings.Repeat("é", 100) + `"}]}`, "GET /v1/requests?state=rejected ", "  " + strings.Repeat("é", 39) + "…  "},
		"reject ABCD-1234":            {`{"text":"ok"}`, `POST /reject {"code":"ABCD-1234","reason":"","by":"local:operator"}`, "ok"},
		"reject ABCD-1234 not a chat": {`{"text":"ok"}`, `POST /reject {"code":"ABCD-1234","reason":"not a chat","by":"local:operator"}`, "ok"},
	} {
		asked, printed, err := run(t, line, tt.answer, 200)
		if err != nil || asked != tt.asked || !strings.Contains(printed, tt.printed) {
			t.Errorf("%s: asked %q, printed %q, %v", line, asked, printed, err)
		}
	}
}

func TestCommands_Errors_AreReturned(t *testing.T) {
	if _, _, err := run(t, "approve ABCD-1234", "request ABCD-1234 was approved by telegram:42", 409); apierr.KindOf(err) != apierr.Conflict {
		t.Errorf("conflict: %v", err)
	}
	for _, line := range []string{"approve", "reject", "reopen", "reopen A b", "approve A b c", "requests now", "requests --stat x"} {
		_, _, err := run(t, line, "", 200)
		var exit *daemon.ExitError
		if !errors.As(err, &exit) || exit.Code != daemon.ExitRefused {
			t.Errorf("%s: %v", line, err)
		}
	}
}
