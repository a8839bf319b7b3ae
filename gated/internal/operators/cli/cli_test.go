package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"arizuko/gated/internal/operators/api"
	"arizuko/gated/internal/rows"
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
		"egress rules":                               "usage: gated egress rules list | add | rm | test, or gated egress log",
		"egress rules drop 1":                        "usage: gated egress",
		"egress rules add --action pass":             `host "": want a name`,
		"egress rules add --host x --seq -1":         "seq -1",
		"egress rules rm":                            "ID is missing",
		"egress rules rm x":                          `"x" is not the id of a rule`,
		"egress log main":                            `unexpected argument "main"`,
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
		"egress --help":              {"usage: gated egress rules list", "egress rules add --host HOST", "-path", "egress rules rm ID", "egress rules test", "egress log"},
		"egress rules add --help":    {"usage: gated egress rules add", "-host", "-method", "-folder", "-action", "-secret", "-seq"},
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

// fake answers as gated, with texts that are to steer a terminal, and notes the requests.
func fake(t *testing.T) (url string, requests *[]string) {
	t.Helper()
	requests = new([]string)
	list := func(w http.ResponseWriter, name string, lines any) {
		httpx.JSON(w, http.StatusOK, map[string]any{name: lines})
	}
	pages := map[string][]reminders.Line{
		"": {{ID: 3, State: msg.ReminderCancelled, Error: "no\x1b[2J route", Kind: msg.ReminderText, Folder: "main", ChatJID: "telegram:-1", Body: strings.Repeat("ä", 61), LastRow: 12}},
		"3": {{ID: 4, State: msg.ReminderActive, Cron: "30 9 * * *", TimeZone: "UTC", Kind: msg.ReminderPrompt, Folder: "main", ChatJID: "telegram:-1",
			Body: "a\nb\tc", NextSlot: slot}},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*requests = append(*requests, strings.TrimSpace(r.Method+" "+r.URL.String()+" by "+httpx.By(r)+" "+string(body)))
		q, path := r.URL.Query(), r.URL.Path
		turn := msg.Turn{ID: 12, Folder: "main", ChatJID: "telegram:-1\x1b[2J", State: msg.TurnQueued}
		used := api.Spend{From: "2026-10-25", To: "2026-11-23", By: q.Get("by"), Lines: []api.SpendLine{}}
		switch {
		case path == broadcasts.Path:
			httpx.JSON(w, http.StatusAccepted, broadcasts.Sent{Key: "k1", Chats: []string{"telegram:-1", "web:\x07main"}, MessageIDs: []int64{8, 9}, LeftOut: []string{"discord:\x075"}})
		case path == reminders.Path && q.Get("chat") != "":
			list(w, "reminders", []reminders.Line{})
		case path == reminders.Path:
			list(w, "reminders", pages[q.Get("after")])
		case strings.HasPrefix(path, reminders.Path+"/8"):
			httpx.JSON(w, http.StatusOK, reminders.Line{})
		case strings.HasPrefix(path, reminders.Path):
			httpx.Error(w, apierr.New(apierr.Conflict, "reminder 7 is done"))
		case path == "/v1/messages/9/replay":
			httpx.Error(w, apierr.New(apierr.Conflict, "message 9 is sent"))
		case strings.HasSuffix(path, "/replay"):
			httpx.JSON(w, http.StatusAccepted, map[string]int64{"id": 40})
		case path == "/v1/messages/lost" && q.Get("chat") != "":
			list(w, "messages", []rows.Lost{})
		case path == "/v1/messages/lost":
			list(w, "messages", []rows.Lost{{ID: 7, ChatJID: "telegram:-1", State: msg.OutFailed, Class: msg.Permanent, Error: "no\x1b[2J chat", Parts: 2, Sent: 1, NoticeID: 8, Content: "a\nb"}})
		case path == "/v1/turns/12/retry":
			httpx.JSON(w, http.StatusAccepted, turn)
		case path == "/v1/turns/12/cancel":
			turn.State = msg.TurnCancelled
			httpx.JSON(w, http.StatusAccepted, turn)
		case path == "/v1/spend" && q.Get("folder") == "":
			used.Lines = []api.SpendLine{{Name: "telegram:\x1b[2J1", Turns: 2, Input: 1000, Output: 30, CostUSD: 1.25}, {Name: "web:main", Turns: 1}}
			used.Total = api.SpendLine{Turns: 3, Input: 1000, Output: 30, CostUSD: 1.25}
			httpx.JSON(w, http.StatusOK, used)
		case path == "/v1/spend":
			httpx.JSON(w, http.StatusOK, used)
		default:
			httpx.Error(w, apierr.New(apierr.Conflict, "turn 13 is done: it has ended already"))
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, requests
}

const slot = 1_790_000_000_000

func TestCommands_AskGated_PrintItsAnswer(t *testing.T) {
	t.Parallel()
	url, requests := fake(t)
	listed := "GET /v1/reminders?%schat=&folder=main&state=active by cli"
	for _, tt := range []struct {
		line, out, problem string
		asked              []string
	}{
		{"broadcast --chats telegram:-1,web:main --key k1 down at 5", "message 8 to telegram:-1\nmessage 9 to web:?main\nnone to discord:?5, a forum: messages there are in posts\n", "",
			[]string{`POST /v1/broadcasts by cli {"folder":"","chats":["telegram:-1","web:main"],"text":"down at 5","by":"local:operator","key":"k1"}`}},
		{"reminders list --folder main", "ID STATE NEXT REPEATS KIND FOLDER CHAT LAST ROW TEXT\n" +
			"3 cancelled (no?[2J route) - once text main telegram:-1 12 " + strings.Repeat("ä", 60) + "…\n" +
			"4 active " + time.UnixMilli(slot).Format(time.DateTime) + " 30 9 * * * UTC prompt main telegram:-1 - a?b?c\n", "",
			[]string{fmt.Sprintf(listed, ""), fmt.Sprintf(listed, "after=3&"), fmt.Sprintf(listed, "after=4&")}},
		{"reminders --chat telegram:-9", "no reminders\n", "", []string{"GET /v1/reminders?chat=telegram%3A-9&folder=&state=active by cli"}},
		{"reminders cancel 7", "", "gated: reminder 7 is done\n", []string{`POST /v1/reminders/7/cancel by cli {"by":"local:operator"}`}},
		{"reminders cancel 8", "reminder 8 is cancelled\n", "", []string{`POST /v1/reminders/8/cancel by cli {"by":"local:operator"}`}},
		{"lost", "ID STATE CLASS ENDED SENT CHAT THREAD NOTICE COPY ERROR TEXT\n7 failed permanent - 1 of 2 telegram:-1 8 - no?[2J chat a?b\n", "",
			[]string{"GET /v1/messages/lost?chat=&since=168h by cli"}},
		{"lost --chat telegram:-2", "no lost messages\n", "", []string{"GET /v1/messages/lost?chat=telegram%3A-2&since=168h by cli"}},
		{"lost resend 7 9", "message 7 is sent again as 40\n", "gated: message 9: message 9 is sent\n", []string{"POST /v1/messages/7/replay by cli", "POST /v1/messages/9/replay by cli"}},
		{"retry 12", "turn 12 of main in telegram:-1?[2J is queued\n", "", []string{"POST /v1/turns/12/retry by cli"}},
		{"cancel 12", "turn 12 of main in telegram:-1?[2J is cancelled\n", "", []string{"POST /v1/turns/12/cancel by cli"}},
		{"cancel 13", "", "gated: turn 13 is done: it has ended already\n", []string{"POST /v1/turns/13/cancel by cli"}},
		{"replay 34", "message 34 is copied as 40: `gated why 40` follows it\n", "", []string{"POST /v1/messages/34/replay by cli"}},
		{"replay --again 34", "message 34 is copied as 40: `gated why 40` follows it\n", "", []string{"POST /v1/messages/34/replay?again=true by cli"}},
		{"spend --by chat --from 2026-10-25", "CHAT TURNS TOKENS READ TOKENS WRITTEN US DOLLARS\ntelegram:?[2J1 2 1000 30 1.2500\nweb:main 1 0 0 0.0000\ntotal 3 1000 30 1.2500\n", "",
			[]string{"GET /v1/spend?by=chat&folder=&from=2026-10-25&to= by cli"}},
		{"spend --folder acme", "no agent has reported what it used from 2026-10-25 to 2026-11-23\n", "", []string{"GET /v1/spend?by=day&folder=acme&from=&to= by cli"}},
	} {
		*requests = nil
		code, out, problem := run(t, at(url), strings.Fields(tt.line)...)
		want := daemon.ExitOK
		if tt.problem != "" {
			want = daemon.ExitFailure
		}
		if code != want || problem != tt.problem || strings.ContainsAny(out, "\x1b\t") {
			t.Errorf("%s: exit %d, prints %q, says %q", tt.line, code, out, problem)
		}
		if diff := cmp.Diff(tt.out, spaces.ReplaceAllString(out, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
		if diff := cmp.Diff(tt.asked, *requests); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

// spaces are those between the columns of a table.
var spaces = regexp.MustCompile(" +")

func TestSpend_JSON_IsWhatGatedAnswers(t *testing.T) {
	t.Parallel()
	url, _ := fake(t)
	code, stdout, _ := run(t, at(url), "spend", "--json")
	var got api.Spend
	if err := json.Unmarshal([]byte(stdout), &got); code != daemon.ExitOK || err != nil || got.Total.CostUSD != 1.25 || len(got.Lines) != 2 {
		t.Errorf("exit %d, %v, prints %s", code, err, stdout)
	}
}
