package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"arizuko/gated/internal/timed/broadcasts"
	"arizuko/gated/internal/timed/reminders"
	"arizuko/pkg/apierr"
	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// run runs a command line as gated does, with connect as the way to the running gated.
func run(t *testing.T, connect func() (*httpx.Client, error), args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = daemon.Program{Name: "gated", Commands: Commands(connect)}.Run(t.Context(), args, &out, &problems)
	return code, out.String(), problems.String()
}

// at connects to a server.
func at(url string) func() (*httpx.Client, error) {
	return func() (*httpx.Client, error) { return httpx.NewClient("gated", url, ""), nil }
}

// uncalled fails the test if a command calls gated.
func uncalled(t *testing.T) func() (*httpx.Client, error) {
	return func() (*httpx.Client, error) {
		t.Error("gated was called")
		return nil, errors.New("not called")
	}
}

func TestCommands_WrongArguments_AreRefusedWithoutACall(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"broadcast":               "TEXT is missing (usage: gated broadcast",
		"broadcast --folder main": "TEXT is missing",
		"broadcast hello":         "give --folder or --chats",
		"broadcast --folder main --chats web:a text": "give --folder or --chats, one of them",
		"broadcast --folder":                         "needs an argument",
		"broadcast --thread 7 hello":                 "not defined: -thread",
		"lost all":                                   `unexpected argument "all" (usage: gated lost`,
		"lost resend":                                "MESSAGE is missing",
		"lost resend 7 x":                            `"x" is not the id of a message`,
		"lost --folder main":                         "not defined: -folder",
		"retry":                                      "TURN is missing (usage: gated retry TURN)",
		"cancel 1 2":                                 `unexpected argument "2" (usage: gated cancel TURN)`,
		"cancel x":                                   `"x" is not the id of a turn`,
		"replay --again":                             "MESSAGE is missing (usage: gated replay [--again] MESSAGE)",
		"replay 0":                                   `"0" is not the id of a message`,
		"reminders all":                              `unexpected argument "all" (usage: gated reminders`,
		"reminders list main":                        `unexpected argument "main"`,
		"reminders cancel":                           "ID is missing",
		"reminders cancel all":                       `"all" is not the id of a reminder`,
		"reminders cancel 0":                         `"0" is not the id of a reminder`,
		"reminders cancel -- -1":                     `"-1" is not the id of a reminder`,
		"reminders cancel 99999999999999999999":      "is not the id of a reminder",
		"reminders cancel 1 2":                       `unexpected argument "2"`,
		"reminders --folder main --chat web:a":       "give --folder or --chat, not both",
		"reminders --due today":                      "not defined: -due",
		"spend today":                                `unexpected argument "today" (usage: gated spend`,
		"spend --by week":                            "--by week is none of day, group, chat",
		"spend --by group --folder main":             "--folder is for --by day and --by chat",
		"reminder":                                   "usage: gated [",
	} {
		code, stdout, stderr := run(t, uncalled(t), strings.Fields(line)...)
		if code != daemon.ExitRefused || stdout != "" || !strings.HasPrefix(stderr, "gated: ") || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d, prints %q, says %q, want %q", line, code, stdout, stderr, says)
		}
	}
}

func TestCommands_Help_IsPrintedWithoutACall(t *testing.T) {
	t.Parallel()
	for line, words := range map[string][]string{
		"broadcast --help":           {"usage: gated broadcast (--folder FOLDER | --chats CHAT,…)", "-folder", "-chats", "-key"},
		"broadcast -h":               {"usage: gated broadcast"},
		"broadcast --folder x -help": {"usage: gated broadcast"},
		"reminders --help":           {"usage: gated reminders [list", "cancel ID", "-folder", "-chat", "-state"},
		"reminders cancel --help":    {"usage: gated reminders"},
		"spend --help":               {"usage: gated spend [--by day | group | chat]", "-from", "-to", "-folder", "-json"},
		"replay --help":              {"usage: gated replay [--again] MESSAGE", "-again"},
		"--help":                     {"broadcast", "cancel", "reminders", "replay", "retry", "spend"},
	} {
		code, stdout, stderr := run(t, uncalled(t), strings.Fields(line)...)
		if code != daemon.ExitOK || stderr != "" {
			t.Errorf("%s: exit %d, %q", line, code, stderr)
		}
		for _, word := range words {
			if !strings.Contains(stdout, word) {
				t.Errorf("%s prints %q without %q", line, stdout, word)
			}
		}
	}
}

func TestCommands_GatedNotRunning_SaysHowToStartIt(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1" // nothing listens there
	for _, line := range []string{"broadcast --folder main hello", "reminders", "reminders list --chat telegram:-1", "reminders cancel 7"} {
		code, stdout, stderr := run(t, at(url), strings.Fields(line)...)
		if code != daemon.ExitFailure || stdout != "" || !strings.Contains(stderr, "gated is not running at "+url+": start it with `gated`") {
			t.Errorf("%s: exit %d, prints %q, says %q", line, code, stdout, stderr)
		}
		if strings.HasPrefix(line, "broadcast") != strings.Contains(stderr, "without sending it twice, add --key ") {
			t.Errorf("%s: %q", line, stderr)
		}
	}
	code, _, stderr := run(t, func() (*httpx.Client, error) { return nil, errors.New("ARIZUKO_SECRET is missing") }, "reminders")
	if code != daemon.ExitFailure || !strings.Contains(stderr, "ARIZUKO_SECRET is missing") {
		t.Errorf("without a configuration: exit %d, %q", code, stderr)
	}
}

// fake answers as gated: two pages of reminders, one of them with text that is to steer a terminal.
func fake(t *testing.T) (url string, requests *[]string) {
	t.Helper()
	requests = new([]string)
	pages := map[string][]reminders.Line{
		"": {{ID: 3, State: msg.ReminderCancelled, Error: "no\x1b[2J route", Kind: msg.ReminderText, Folder: "main", ChatJID: "telegram:-1", Body: strings.Repeat("ä", 61), LastRow: 12}},
		"3": {{ID: 4, State: msg.ReminderActive, Cron: "30 9 * * *", TimeZone: "UTC", Kind: msg.ReminderPrompt, Folder: "main", ChatJID: "telegram:-1",
			Body: "a\nb\tc", NextSlot: 1_790_000_000_000}},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		_ = json.NewDecoder(r.Body).Decode(&body)
		text, _ := json.Marshal(body)
		*requests = append(*requests, r.Method+" "+r.URL.Path+" "+string(text))
		switch query := r.URL.Query(); {
		case r.URL.Path == broadcasts.Path:
			httpx.JSON(w, http.StatusAccepted, broadcasts.Sent{Key: "k1", Chats: []string{"telegram:-1", "web:\x07main"}, MessageIDs: []int64{8, 9}})
		case r.Method == http.MethodPost:
			httpx.Error(w, apierr.New(apierr.Conflict, "reminder 7 is done"))
		case query.Get("chat") != "":
			httpx.JSON(w, http.StatusOK, map[string]any{"reminders": []reminders.Line{}})
		default:
			httpx.JSON(w, http.StatusOK, map[string]any{"reminders": pages[query.Get("after")]})
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, requests
}

func TestReminders_List_PrintsAllPages(t *testing.T) {
	t.Parallel()
	url, requests := fake(t)
	code, stdout, stderr := run(t, at(url), "reminders", "list", "--folder", "main")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != daemon.ExitOK || stderr != "" || len(lines) != 3 || len(*requests) != 3 || strings.ContainsAny(stdout, "\x1b\t") {
		t.Fatalf("exit %d, %d requests, prints %q, says %q", code, len(*requests), stdout, stderr)
	}
	for i, words := range [][]string{
		{"ID", "STATE", "NEXT", "REPEATS", "TEXT"},
		{"3", "cancelled (no?[2J route)", "-", "once", "text", "12", strings.Repeat("ä", 60) + "…"},
		{"4", "active", "2026-09-2", "30 9 * * * UTC", "prompt", "a?b?c"},
	} {
		for _, word := range words {
			if !strings.Contains(lines[i], word) {
				t.Errorf("line %q is without %q", lines[i], word)
			}
		}
	}
	if _, stdout, _ := run(t, at(url), "reminders", "--chat", "telegram:-9"); stdout != "no reminders\n" {
		t.Errorf("without any it prints %q", stdout)
	}
}

func TestReminders_CancelRefused_SaysWhy(t *testing.T) {
	t.Parallel()
	url, requests := fake(t)
	code, stdout, stderr := run(t, at(url), "reminders", "cancel", "7")
	if code != daemon.ExitFailure || stdout != "" || stderr != "gated: reminder 7 is done\n" {
		t.Errorf("exit %d, prints %q, says %q", code, stdout, stderr)
	}
	if want := `POST /v1/reminders/7/cancel {"by":"local:operator"}`; len(*requests) != 1 || (*requests)[0] != want {
		t.Errorf("asked %q, want %q", *requests, want)
	}
}

func TestBroadcast_PrintsTheRows(t *testing.T) {
	t.Parallel()
	url, requests := fake(t)
	code, stdout, stderr := run(t, at(url), "broadcast", "--chats", "telegram:-1,web:main", "--key", "k1", "down", "at 5")
	if code != daemon.ExitOK || stderr != "" || stdout != "row 8 to telegram:-1\nrow 9 to web:?main\n" {
		t.Errorf("exit %d, prints %q, says %q", code, stdout, stderr)
	}
	want := `POST /v1/broadcasts {"by":"local:operator","chats":["telegram:-1","web:main"],"folder":"","key":"k1","text":"down at 5"}`
	if len(*requests) != 1 || (*requests)[0] != want {
		t.Errorf("asked %q, want %q", *requests, want)
	}
}
