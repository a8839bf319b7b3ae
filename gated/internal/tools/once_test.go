package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"arizuko/gated/internal/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// retry begins the next attempt at the fixture's turn, as a gated does that was killed:
// with a new run, of which no call is known.
func (f *fixture) retry() {
	f.t.Helper()
	f.access.Close()
	f.write(func(tx *store.Tx) error {
		if err := rows.RequeueTurn(tx, f.turn.ID, rows.Requeue{}); err != nil {
			return err
		}
		return rows.EndRun(tx, f.access.run.ID, "", 2)
	})
	f.access = f.begin(msg.Run{Folder: f.turn.Folder, ChatJID: f.turn.ChatJID}, f.turn.ID)
}

func TestOnce_RetriedTurn_ReturnsFirstResultsInOrder(t *testing.T) {
	f := parallel(t)
	calls := []string{`{"text":"one"}`, `{"text":"two"}`, `{"text":"one"}`}
	var first []string
	for _, arguments := range calls {
		first = append(first, f.works("send_message", arguments))
	}
	f.retry()
	for i, arguments := range calls {
		if got := f.works("send_message", arguments); got != first[i] {
			t.Errorf("call %d: %s, first %s", i, got, first[i])
		}
	}
	if sent := f.outbound(); len(sent) != 3 {
		t.Fatalf("%d messages, want 3", len(sent))
	}
	if more := f.works("send_message", `{"text":"one"}`); more == first[0] || more == first[2] {
		t.Errorf("a third call returned an earlier result: %s", more)
	}
}

// A commit whose reply was lost has the effect and the result, one that was not
// reached has neither: these are all instants at which gated can be killed.
func TestOnce_KilledAroundCommit_NeitherDoublesNorLoses(t *testing.T) {
	f := parallel(t)
	c := f.caller("send_message")
	in := sendMessageIn{Text: "x"}
	put := func(tx *store.Tx) (messageOut, error) {
		m, err := c.outbound()
		if err != nil {
			return messageOut{}, err
		}
		id, _, err := tx.PutMessage(m)
		return messageOut{MessageID: id}, err
	}
	_, err := once(t.Context(), c, in, func(tx *store.Tx) (messageOut, error) {
		if _, err := put(tx); err != nil {
			return messageOut{}, err
		}
		return messageOut{}, errors.New("killed before the commit")
	})
	if err == nil || len(f.outbound()) != 0 {
		t.Fatalf("%v, %d messages", err, len(f.outbound()))
	}
	f.retry()
	c = f.caller("send_message")
	committed, err := once(t.Context(), c, in, put)
	if err != nil || len(f.outbound()) != 1 {
		t.Fatalf("%v, %d messages", err, len(f.outbound()))
	}
	f.retry() // the reply of the commit was lost
	c = f.caller("send_message")
	again, err := once(t.Context(), c, in, put)
	if err != nil || again != committed || len(f.outbound()) != 1 {
		t.Errorf("%v: %v, first %v, %d messages", err, again, committed, len(f.outbound()))
	}
}

// A call that failed has no result: it must not shift those of later calls.
func TestOnce_FailedCall_IsNotCounted(t *testing.T) {
	f := parallel(t)
	fails := true
	act := func() (string, error) {
		return once(t.Context(), f.caller("act"), 1, func(*store.Tx) (string, error) {
			if fails {
				return "", errors.New("no")
			}
			return "done", nil
		})
	}
	if _, err := act(); err == nil {
		t.Fatal("no error")
	}
	fails = false
	if out, err := act(); err != nil || out != "done" {
		t.Fatal(out, err)
	}
	f.retry()
	fails = true // it is not called
	if out, err := act(); err != nil || out != "done" {
		t.Error(out, err)
	}
}

func TestOnce_EqualConcurrentCalls_EachActOnce(t *testing.T) {
	f := parallel(t)
	const n = 20
	for attempt := range 2 {
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if text, isError := f.call("send_message", `{"text":"same"}`); isError {
					t.Errorf("attempt %d: %s", attempt, text)
				}
			})
		}
		all.Wait()
		if sent := f.outbound(); len(sent) != n {
			t.Fatalf("attempt %d: %d messages, want %d", attempt, len(sent), n)
		}
		f.retry()
	}
}

func TestOnce_TurnOrRunEndedMeanwhile_ActsNotAtAll(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*fixture){
		"the turn is cancelled": (*fixture).cancelTurn, "the run ends": func(f *fixture) { f.access.Close() },
		"the turn is gone": func(f *fixture) { f.exec(`DELETE FROM turns WHERE id = ?`, f.turn.ID) },
	} {
		f := newFixture(t)
		c := f.caller("send_message")
		for range 2 { // while the call prepares, and before
			_, err := onceAfter(t.Context(), c, 1, func() error { end(f); return nil }, func(*store.Tx) (int, error) {
				t.Errorf("%s: it acts", name)
				return 0, nil
			})
			if !errors.Is(err, errEnded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.services.caller(t.Context(), f.access, "send_message"); !errors.Is(err, errEnded) {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
}

func TestOnce_LoopOfTheModel_Ends(t *testing.T) {
	f := parallel(t)
	c := f.caller("act")
	for i := range maxActing {
		if _, err := once(t.Context(), c, i, func(*store.Tx) (int, error) { return i, nil }); err != nil {
			t.Fatal(i, err)
		}
	}
	_, err := once(t.Context(), c, maxActing, func(*store.Tx) (int, error) { return 0, nil })
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxActing)) {
		t.Error(err)
	}
	f.retry()
	if out, err := once(t.Context(), f.caller("act"), 7, func(*store.Tx) (int, error) { return 0, nil }); err != nil || out != 7 {
		t.Errorf("a stored result: %d, %v", out, err)
	}
}

func TestHashCall_DependsOnToolAndArguments(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, call := range []struct {
		tool string
		in   any
	}{{"a", sendMessageIn{Text: "x"}}, {"b", sendMessageIn{Text: "x"}}, {"a", sendMessageIn{Text: "y"}}, {"a", sendMessageIn{Topic: new("x")}}} {
		hash, err := hashCall(call.tool, call.in)
		if err != nil || seen[hash] {
			t.Errorf("%v: %s, %v", call, hash, err)
		}
		seen[hash] = true
	}
}

// repeated are the tools whose calls are not stored, though they change something: a repetition shows the present
// state, and makes active, or copies, the same again.
var repeated = map[string]bool{"get_attachment": true, "poll_list": true, "reminder_list": true}

// further are arguments beside the examples: with times that pass.
var further = map[string][]string{
	"poll_create":     {`{"question":"When?","options":["Now","Soon"],"closes_at":"2023-11-14T23:00:00Z"}`},
	"reminder_create": {`{"kind":"text","body":"soon","due_at":"2023-11-14T23:00:00Z"}`},
}

// Whatever a call checks may have changed when a retried turn repeats it. It gets its first result, and acts no more.
func TestOnce_RetriedTurnInAChangedWorld_ReturnsFirstResult(t *testing.T) {
	t.Parallel()
	eachTool(t, func(t *testing.T, tool Tool) {
		if tool.Kind.ReadOnly || repeated[tool.Name] {
			return
		}
		for _, arguments := range append([]string{tool.example()}, further[tool.Name]...) {
			f := fixtureFor(t, tool)
			first := f.works(tool.Name, arguments)
			f.changeWorld()
			before, asked := f.written(), f.asked()
			f.retry()
			if again := f.works(tool.Name, arguments); again != first {
				t.Errorf("%s\nfirst  %s\nagain  %s", arguments, first, again)
			}
			if after := f.written(); after != before {
				t.Errorf("%s: it wrote again:\n%s\n%s", arguments, before, after)
			}
			if n := f.asked(); n != asked {
				t.Errorf("%s: routd was asked again", arguments)
			}
		}
	})
}

// The calls of the test before would be refused, or do something else, if they were the first ones.
func TestOnce_NewCallInAChangedWorld_IsRefused(t *testing.T) {
	t.Parallel()
	for name, arguments := range map[string]string{
		"send_file": `{"path":"out/report.txt"}`, "poll_create": further["poll_create"][0], "reminder_create": further["reminder_create"][0],
		"engage": `{"jid":"OWN_CHAT","topic":""}`, "disengage": `{"jid":"OWN_CHAT","topic":""}`, "broadcast": `{"text":"hi","chats":["OWN_CHAT"]}`,
		"inject_message": `{"chat_jid":"OWN_CHAT","content":"hi"}`, "delegate": `{"folder":"acme/eng","prompt":"hi"}`,
		"poll_close": `{"poll_id":OWN_POLL}`, "reminder_cancel": `{"id":OWN_REMINDER}`, "react": `{"message_id":OWN_ANSWER,"emoji":"👍"}`,
	} {
		f := newFixture(t)
		f.changeWorld()
		if text, isError := f.call(name, arguments); !isError {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// changeWorld makes whatever tools check fail from now on: files, routes, groups and rows are gone, routd is down, and
// a year has passed.
func (f *fixture) changeWorld() {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.dir, "out")); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	f.routd.down = true
	f.clock = f.clock.Add(365 * 24 * time.Hour)
	f.mu.Unlock()
	f.exec(`DELETE FROM routes`)
	f.exec(`DELETE FROM registered_groups WHERE folder LIKE 'acme%'`)
	f.exec(`UPDATE messages SET out_state = 'failed' WHERE direction = 'out' AND id = ?`, f.answer.ID)
	f.exec(`UPDATE reminders SET state = 'cancelled', next_slot = NULL`)
	f.exec(`UPDATE polls SET folder = 'other'`)
}

// written counts the rows that tools write.
func (f *fixture) written() string {
	f.t.Helper()
	var counts []string
	for _, table := range []string{"messages", "tool_calls", "polls", "reminders", "forks", "context_objects", "topic_threads", "system_messages"} {
		counts = append(counts, fmt.Sprint(table, " ", f.count(table)))
	}
	return strings.Join(counts, ", ")
}

func (f *fixture) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.routd.calls
}

func TestReminders_OfOtherDirectMessages_StayThere(t *testing.T) {
	f := parallel(t)
	const direct = "telegram:55"
	private := f.reminder(folder, direct)
	if list := f.works("reminder_list", `{"all":true}`); strings.Contains(list, direct) || strings.Count(list, `"body"`) != 1 {
		t.Errorf("listed: %s", list)
	}
	for _, call := range [][2]string{
		{"reminder_cancel", `{"id":%d}`}, {"reminder_update", `{"id":%d,"body":"x"}`}, {"poll_close", `{"poll_id":%d}`},
	} {
		id := private
		if call[0] == "poll_close" {
			id = f.poll(folder, direct, "a secret?")
		}
		f.refused(call[0], fmt.Sprintf(call[1], id), "reach")
	}
	_, there := f.startTurn(&msg.Message{ChatJID: direct, Content: "what is planned?", Sender: "telegram:55"}, &msg.Turn{Kind: msg.Conversation, Folder: folder, ChatJID: direct})
	f.worksAs(there, "reminder_cancel", fmt.Sprintf(`{"id":%d}`, private))
	f.observe(groupconfig.ObserveAll)
	second := f.reminder(folder, direct)
	f.works("reminder_cancel", fmt.Sprintf(`{"id":%d}`, second))
}

func TestReach_FollowsTheRoutesNotHistory(t *testing.T) {
	f := parallel(t)
	const room = "telegram:-9"
	f.ask(folder, room, "a message that acme answered")
	calls := map[string]string{
		"inject_message": `{"chat_jid":"telegram:-9","content":"hi"}`, "broadcast": `{"text":"hi","chats":["telegram:-9"]}`, "engage": `{"jid":"telegram:-9","topic":""}`,
	}
	f.route("chat_jid="+room, "other")
	for tool, arguments := range calls {
		f.refused(tool, arguments, "out of reach")
	}
	f.exec(`DELETE FROM routes WHERE match = ?`, "chat_jid="+room)
	f.route("sender=telegram:42", folder)
	for tool, arguments := range calls {
		f.refused(tool, strings.ReplaceAll(arguments, room, "telegram:-10"), "out of reach")
	}
	f.route("chat_jid="+room, "acme/eng")
	for tool, arguments := range calls {
		f.works(tool, arguments)
	}
}

// A group that a user calls by its name into the chat of another writes there only as an answer.
func TestReach_OwnChatOfAnotherGroup_IsItsHomes(t *testing.T) {
	f := parallel(t)
	_, _, called := f.startRun("acme/eng", chat, "@eng what is up?")
	for tool, arguments := range map[string]string{
		"inject_message": `{"chat_jid":"OWN_CHAT","content":"hi"}`, "broadcast": `{"text":"hi","chats":["OWN_CHAT"]}`,
		"reminder_create": `{"kind":"text","body":"hi","cron":"0 9 * * *"}`,
	} {
		if text, isError := f.callAs(called, tool, arguments); !isError || !strings.Contains(text, "reach") && !strings.Contains(text, "does not answer this chat") {
			t.Errorf("%s: %v %s", tool, isError, text)
		}
	}
	for tool, arguments := range map[string]string{"send_message": `{"text":"hi"}`, "engage": `{"jid":"OWN_CHAT","topic":""}`, "get_thread": `{"message_id":OWN_MESSAGE}`} {
		f.worksAs(called, tool, arguments)
	}
}

// route adds a route before all others.
func (f *fixture) route(match, target string) {
	f.t.Helper()
	f.write(func(tx *store.Tx) error { return tx.PutRoute(&msg.Route{Seq: -1, Match: match, Target: target}) })
}

// count is the number of rows of a table.
func (f *fixture) count(table string) (n int) {
	f.t.Helper()
	if err := f.db().QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
		f.t.Fatal(err)
	}
	return n
}

// A file whose message cannot be stored is not sent, and its copy would stay for ever.
func TestSendFile_Refused_LeavesNoCopy(t *testing.T) {
	f := parallel(t)
	copies := func() (n int) {
		err := filepath.WalkDir(filepath.Join(f.data, "media"), func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				n++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := copies()
	f.refused("send_file", `{"path":"out/report.txt","topic":"4711"}`, "no thread")
	if after := copies(); after != before {
		t.Errorf("%d copies, %d before", after, before)
	}
	f.works("send_file", `{"path":"out/report.txt"}`)
	f.retry()
	f.works("send_file", `{"path":"out/report.txt"}`)
	if after := copies(); after != before+1 {
		t.Errorf("%d copies after a retry, %d before", after, before)
	}
}
