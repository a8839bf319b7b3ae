package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// caller is the agent that calls the tools that messages name.
const caller = "exec %caller"

// killGatedAt lets gated run until it reaches a failpoint, calls work meanwhile, and restarts it. work may be nil.
func killGatedAt(f *harness.Fixture, point fp.Point, work func()) {
	f.T.Helper()
	f.Kill(harness.Gated)
	f.StartDaemon(harness.Gated, "FAILPOINT="+string(point))
	p := f.Instance.Process(harness.Gated)
	if work != nil {
		work()
	}
	f.Until("gated to end", func() bool { return !p.Running() })
	if !p.Killed() {
		f.T.Fatalf("gated ended with %s, want killed", p.State())
	}
	f.Restart(harness.Gated)
}

// around are the failpoints before and after the commit of a tool's effect.
var around = []fp.Point{fp.PutToolCall.Before(), fp.PutToolCall.After()}

// onEachSide runs a scenario with gated killed on either side of the commit of a tool's effect, each time with a new
// instance.
func onEachSide(t *testing.T, scenario func(*harness.Fixture, fp.Point)) {
	t.Parallel()
	for _, point := range around {
		t.Run(string(point), func(t *testing.T) { scenario(start(t, harness.Options{Agent: caller}), point) })
	}
}

// quoted is a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a string cannot fail
	return string(b)
}

// toolAnswer waits until the turn of a row has ended, and returns the agent's answer without the messages of its tools.
func toolAnswer(f *harness.Fixture, row int64) string {
	f.T.Helper()
	return f.Value(`SELECT content FROM messages WHERE turn_id = ? AND source = 'agent'`, f.WaitEnded(row).ID)
}

// wantTexts fails the test unless the outbound rows of a chat from a source have these texts.
func wantTexts(f *harness.Fixture, chat, source string, want ...string) {
	f.T.Helper()
	got := f.Query(`SELECT content FROM messages WHERE direction = 'out' AND chat_jid = ? AND source = ? ORDER BY id`, chat, source)
	if !slices.Equal(got, want) {
		f.T.Errorf("%s got %q from %s, want %q", chat, got, source, want)
	}
}

// A turn is retried several times, and repeats its calls. Each acts once.
func TestTools_TurnRetried_EachCallActsOnce(t *testing.T) {
	f := start(t, harness.Options{Agent: caller})
	f.Answer(f.Say("telegram:5", "say hello"))
	f.Answer(f.Say("telegram:6", "say hello"))
	folder := filepath.Join(f.Data, "groups", "main")
	f.OK(os.WriteFile(filepath.Join(folder, "plan.txt"), []byte("one, two"), 0o600))
	row := f.Put(msg.Message{ChatJID: "telegram:5", PlatformID: "q1", Content: strings.Join([]string{
		`call send_message {"text":"at work"}`, `call send_message {"text":"at work"}`,
		`call edit_message {"message_id":$message_id,"text":"still at work"}`,
		`call send_file {"path":"plan.txt","caption":"the plan"}`,
		`call react {"message_id":$this,"emoji":"👍"}`,
		`call reminder_create {"kind":"text","body":"stand up","cron":"0 9 * * mon-fri"}`,
		`call reminder_update {"id":$id,"body":"sit down"}`,
		`call poll_create {"question":"lunch?","options":["pizza","sushi"]}`, `call poll_close {"poll_id":$poll_id}`,
		`call inject_message {"chat_jid":"telegram:6","content":"say injected"}`,
		`call delegate {"folder":"main/eng","prompt":"say delegated"}`,
		`call broadcast {"text":"the server is back","chats":["telegram:5"]}`,
		`wait go`, `say done`,
	}, "\n")})[0]
	const calls = 12
	for range 3 {
		f.Until("the calls to be made", func() bool {
			return f.Value(`SELECT count(*) FROM tool_calls WHERE turn_id = ?`, f.Turn(row).ID) == fmt.Sprint(calls)
		})
		f.Kill(harness.Gated)
		f.Restart(harness.Gated)
		f.WaitRunning(row)
	}
	f.OK(os.WriteFile(filepath.Join(folder, "go"), nil, 0o600))
	answer := toolAnswer(f, row)
	if lines := strings.Split(answer, "\n"); len(lines) != calls+1 || lines[calls] != "done" || strings.Contains(answer, " error ") {
		t.Errorf("answer %q", answer)
	}
	f.WaitIdle()
	got := f.Query(`SELECT kind, CASE kind WHEN 'poll' THEN '' ELSE content END, target_id FROM messages WHERE chat_jid = 'telegram:5' AND source = 'tool' ORDER BY id`)
	if want := []string{"message at work ", "message at work ", "edit still at work ", "file the plan ", "reaction 👍 q1", "poll  "}; !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	wantTexts(f, "telegram:5", "broadcast", "the server is back")
	wantTexts(f, "telegram:6", "agent", "hello", "injected")
	if got := len(f.Query(`SELECT id FROM messages WHERE chat_jid = 'telegram:5' AND content = 'delegated'`)); got != 1 {
		t.Errorf("the delegated work is answered %d times", got)
	}
	if got := f.Query(`SELECT body, state FROM reminders UNION ALL SELECT question, state FROM polls`); !slices.Equal(got, []string{"sit down active", "lunch? closed"}) {
		t.Errorf("reminders and polls: %q", got)
	}
	if n := f.Value(`SELECT count(*) FROM tool_calls`); n != fmt.Sprint(calls) {
		t.Errorf("%s calls are stored, want %d", n, calls)
	}
}

// reminderIn asks for a reminder of a kind an hour from now.
func reminderIn(kind, body string) string {
	return fmt.Sprintf(`call reminder_create {"kind":%q,"body":%q,"due_at":%q}`, kind, body, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
}

func TestReminder_DueWhileGatedIsDown_ArrivesOnce(t *testing.T) {
	for _, point := range []fp.Point{fp.FireReminder.Before(), fp.FireReminder.After()} {
		t.Run(string(point), func(t *testing.T) {
			f := start(t, harness.Options{Agent: caller})
			row := f.Put(msg.Message{ChatJID: "telegram:-5", ThreadID: "77", Topic: "77", Content: reminderIn("text", "stand up") + "\n" + reminderIn("prompt", "say it is nine")})[0]
			f.Answer(row)
			f.Kill(harness.Gated)
			f.Exec(`UPDATE reminders SET due_at = ?1, next_slot = ?1`, time.Now().Add(-time.Second).UnixMilli())
			killGatedAt(f, point, nil)
			f.Until("the reminders to fire", func() bool { return f.Value(`SELECT count(*) FROM reminders WHERE state = 'done'`) == "2" })
			f.WaitIdle()
			f.Kill(harness.Gated)
			f.Restart(harness.Gated)
			f.WaitIdle()
			got := f.Query(`SELECT content, '/' || thread_id || '/' FROM messages WHERE chat_jid = 'telegram:-5' AND direction = 'out' AND content IN ('it is nine', 'stand up') ORDER BY content`)
			if want := []string{"it is nine /77/", "stand up /77/"}; !slices.Equal(got, want) {
				t.Errorf("arrived %q, want %q", got, want)
			}
		})
	}
}

// A reminder that repeats fires each slot once, while gated is killed at each. Of slots that pass while it is down the last
// fires.
func TestCronReminder_KilledAtEachSlot_FiresEachOnce(t *testing.T) {
	need.Verify(t)
	clock := filepath.Join(t.TempDir(), "clock")
	ahead := time.Duration(0)
	advance := func(by time.Duration) {
		ahead += by
		if err := os.WriteFile(clock, []byte(fmt.Sprint(int64(ahead.Seconds()))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	advance(0)
	f := start(t, harness.Options{Agent: caller, Env: []string{"FAILPOINT_CLOCK=" + clock}})
	f.Answer(f.Say("telegram:5", `call reminder_create {"kind":"text","body":"tea","cron":"*/10 * * * *","missed":"skip"}`+"\n"+
		`call reminder_create {"kind":"text","body":"cake","cron":"*/10 * * * *","missed":"one"}`))
	slots := func(body string) int {
		return len(f.Query(`SELECT slot FROM reminder_slots s JOIN reminders r ON r.id = s.reminder_id WHERE r.body = ? AND s.message_id IS NOT NULL`, body))
	}
	fired := slots("tea")          // one, if a slot has just passed
	next := func() time.Duration { // until the next slot
		at := f.Value(`SELECT min(next_slot) FROM reminders`)
		var ms int64
		_, err := fmt.Sscan(at, &ms)
		f.OK(err)
		return time.Until(time.UnixMilli(ms)) - ahead + time.Second
	}
	for _, point := range []fp.Point{fp.FireReminder.Before(), fp.FireReminder.After(), fp.PutMessage.Before()} {
		f.Kill(harness.Gated)
		advance(next())
		killGatedAt(f, point, nil)
		fired++
		f.Until("the slot to fire", func() bool { return slots("tea") >= fired && slots("cake") >= fired })
		if n := slots("tea"); n != fired || slots("cake") != fired {
			t.Fatalf("%d and %d slots have fired, want %d", n, slots("cake"), fired)
		}
	}
	f.Kill(harness.Gated)
	advance(next() + 38*time.Minute) // the last slot is 8 minutes ago
	f.Restart(harness.Gated)
	f.Until("the last missed slot to fire", func() bool { return slots("cake") > fired })
	f.WaitIdle()
	for body, want := range map[string]int{"tea": fired, "cake": fired + 1} {
		if n := len(f.Query(`SELECT id FROM messages WHERE source = 'reminder' AND content = ?`, body)); n != want {
			t.Errorf("%q arrived %d times, want %d", body, n, want)
		}
	}
}

func TestBroadcast_GatedKilled_ReachesEachChatOnce(t *testing.T) {
	onEachSide(t, func(f *harness.Fixture, point fp.Point) {
		var chats []string
		for i := range 5 {
			chats = append(chats, fmt.Sprintf("telegram:-%d", 5+i))
			f.Answer(f.Say(chats[i], "say hello"))
		}
		var row int64
		killGatedAt(f, point, func() { row = f.Say(chats[0], `call broadcast {"text":"the server is back"}`) })
		if answer := toolAnswer(f, row); !strings.HasPrefix(answer, `broadcast {"message_ids":[`) || strings.Count(answer, ",") != len(chats)-1 {
			f.T.Errorf("answer %q", answer)
		}
		f.WaitIdle()
		for _, chat := range chats {
			wantTexts(f, chat, "broadcast", "the server is back")
		}
	})
}

func TestOperatorsBroadcast_GatedKilled_ReachesEachChatOnce(t *testing.T) {
	for _, point := range []fp.Point{fp.PutBroadcast.Before(), fp.PutBroadcast.After()} {
		t.Run(string(point), func(t *testing.T) {
			f := start(t, harness.Options{Agent: caller})
			var chats []string
			for i := range 5 {
				chats = append(chats, fmt.Sprintf("telegram:-%d", 5+i))
				f.Answer(f.Say(chats[i], "say hello"))
			}
			request := map[string]any{"folder": "main", "text": "the server is back", "by": operator, "key": "k1"}
			client := f.Client(harness.Gated)
			killGatedAt(f, point, func() {
				f.WaitReady(harness.Gated)
				if err := client.Do(t.Context(), "POST", "/v1/broadcasts", request, nil); err == nil {
					t.Error("gated answers before the failpoint")
				}
			})
			for range 2 {
				var sent struct{ Chats []string }
				f.OK(client.Do(t.Context(), "POST", "/v1/broadcasts", request, &sent))
				if !slices.Equal(slices.Sorted(slices.Values(sent.Chats)), slices.Sorted(slices.Values(chats))) {
					t.Errorf("it was sent to %q", sent.Chats)
				}
			}
			for _, chat := range chats {
				wantTexts(f, chat, "broadcast", "the server is back")
			}
		})
	}
}
