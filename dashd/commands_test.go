package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
)

// fakeDashd is a server that records its requests.
func fakeDashd(t *testing.T, answer http.HandlerFunc) (run func(args ...string) (string, error), asked *[]string) {
	asked = new([]string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method+" "+r.URL.String())
		answer(w, r)
	}))
	t.Cleanup(srv.Close)
	client := httpx.NewClient("dashd", srv.URL, "")
	t.Cleanup(client.HTTP.CloseIdleConnections)
	return func(args ...string) (string, error) {
		var out bytes.Buffer
		err := asking(func() (*httpx.Client, error) { return client, nil })[args[0]](t.Context(), args[1:], &out)
		return out.String(), err
	}, asked
}

func TestCommands_PrintAnswerOfDashd(t *testing.T) {
	const status = `{"text":"Group: main\nTopic: \u001b[2J","group":"main"}`
	run, asked := fakeDashd(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("chat_jid") == "telegram:-9" {
			_, _ = io.WriteString(w, `{"text":"Group: none yet","advice":"To connect it: \u001broutd"}`)
			return
		}
		if r.URL.Path == "/status" {
			_, _ = io.WriteString(w, status+"\n")
			return
		}
		_, _ = io.WriteString(w, `{"url":"http://127.0.0.1:8083/login?token=T"}`)
	})
	for _, tc := range []struct {
		args        []string
		asked, want string
	}{
		{[]string{"status"}, "GET /status?", "Group: main\nTopic: ?[2J\n"},
		{[]string{"status", "telegram:-1"}, "GET /status?chat_jid=telegram%3A-1&thread_id=&topic=", "Group: main\nTopic: ?[2J\n"},
		{[]string{"status", "--thread", "7&8", "slack:C1"}, "GET /status?chat_jid=slack%3AC1&thread_id=7%268&topic=", "Group: main\nTopic: ?[2J\n"},
		{[]string{"status", "web:main", "--topic=#a", "--json"}, "GET /status?chat_jid=web%3Amain&thread_id=&topic=%23a", status + "\n"},
		{[]string{"login"}, "POST /v1/login-link", "http://127.0.0.1:8083/login?token=T\n"},
		{[]string{"status", "telegram:-9"}, "GET /status?chat_jid=telegram%3A-9&thread_id=&topic=", "Group: none yet\nTo connect it: ?routd\n"},
	} {
		*asked = nil
		out, err := run(tc.args...)
		if err != nil || out != tc.want || strings.Join(*asked, ",") != tc.asked {
			t.Errorf("dashd %q: %v\n%q after %v", tc.args, err, out, *asked)
		}
	}
}

func TestCommands_HelpFlag_PrintsUsage(t *testing.T) {
	run, asked := fakeDashd(t, nil)
	for args, want := range map[string]string{"status -h": "-json", "login --help": "usage: dashd login\n"} {
		out, err := run(strings.Fields(args)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out, want) || len(*asked) > 0 {
			t.Errorf("%s: %v %q %v", args, err, out, *asked)
		}
	}
}

func TestCommands_InvalidArguments_Refused(t *testing.T) {
	run, asked := fakeDashd(t, nil)
	for args, want := range map[string]string{
		"status telegram:1 telegram:2": `unexpected argument "telegram:2"`,
		"status --thread":              "-thread",
		"status --all":                 "-all",
		"login please":                 `unexpected argument "please"`,
	} {
		out, err := run(strings.Fields(args)...)
		var exit *daemon.ExitError
		if !errors.As(err, &exit) || exit.Code != daemon.ExitRefused || !strings.Contains(err.Error(), want) || out != "" || len(*asked) > 0 {
			t.Errorf("%s: %v %q %v", args, err, out, *asked)
		}
	}
}

func TestCommands_ErrorResponse_Returned(t *testing.T) {
	run, _ := fakeDashd(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			httpx.Error(w, apierr.New(apierr.Conflict, "DASH_PASSWORD is set: log in with it"))
			return
		}
		_, _ = io.WriteString(w, "<html>")
	})
	for name, want := range map[string]string{"login": "DASH_PASSWORD is set: log in with it", "status": "invalid answer of dashd"} {
		if out, err := run(name); err == nil || !strings.HasPrefix(err.Error(), want) || out != "" {
			t.Errorf("%s: %v %q", name, err, out)
		}
	}
}

func TestCommands_DashdNotRunning_SaySo(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	for name, command := range asking(func() (*httpx.Client, error) { return httpx.NewClient("dashd", srv.URL, ""), nil }) {
		if err := command(t.Context(), nil, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "dashd is not running at "+srv.URL) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCommands_InvalidConfig_ErrorReturned(t *testing.T) {
	for name, command := range asking(func() (*httpx.Client, error) { return nil, io.ErrUnexpectedEOF }) {
		if err := command(t.Context(), nil, io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
