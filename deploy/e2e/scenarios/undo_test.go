package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
)

// undoing is an instance whose group has files, and a chat whose messages ada writes.
type undoing struct {
	*harness.Fixture

	folder string
	sender string
	posts  int
}

const adas = "telegram:5"

func startUndoing(t *testing.T) *undoing {
	f := start(t, harness.Options{Agent: caller})
	return &undoing{Fixture: f, folder: filepath.Join(f.Data, "groups", "main"), sender: adas}
}

// post writes a message.
func (u *undoing) post(lines ...string) int64 {
	u.posts++
	return u.Put(msg.Message{ChatJID: adas, Sender: u.sender, SenderName: "Ada", PlatformID: fmt.Sprint("m", u.posts),
		Content: strings.Join(lines, "\n")})[0]
}

// do has the agent follow lines, in a session of its own name, and its messages delivered.
func (u *undoing) do(lines ...string) *msg.Turn {
	u.T.Helper()
	t := u.WaitEnded(u.post(append(lines, fmt.Sprint("session s", u.posts+1), "say done")...))
	u.deliver()
	return t
}

// deliver does as if an adapter had delivered all that is queued.
func (u *undoing) deliver() {
	u.Exec(`UPDATE messages SET out_state = 'sent', platform_id = 'p' || id WHERE direction = 'out' AND out_state = 'queued'`)
}

// command writes a command and waits for its answer.
func (u *undoing) command(text string) string {
	u.T.Helper()
	return u.Reply(u.post(text)).Content
}

// wants fails the test unless a text has others in it.
func (u *undoing) wants(text string, parts ...string) {
	u.T.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			u.T.Errorf("%q lacks %q", text, part)
		}
	}
}

// files are the files of the group with their texts.
func (u *undoing) files() string {
	u.T.Helper()
	entries, err := os.ReadDir(u.folder)
	if errors.Is(err, fs.ErrNotExist) { // no turn has begun
		return ""
	}
	u.OK(err)
	var all []string
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(u.folder, e.Name()))
		u.OK(err)
		all = append(all, e.Name()+"="+strings.ReplaceAll(string(text), "\n", ","))
	}
	return strings.Join(all, " ")
}

// want fails the test unless a query has a result.
func (u *undoing) want(what, query, want string) {
	u.T.Helper()
	if got := strings.Join(u.Query(query), "; "); got != want {
		u.T.Errorf("%s: %q, want %q", what, got, want)
	}
}

const (
	sessionNow = `SELECT session_id FROM sessions WHERE group_folder = 'main'`
	turnsCount = `SELECT count(*) FROM turns WHERE undone_at IS NULL`
)

// All that a turn does is taken back, and done again.
func TestUndo_TurnWithEffects_AreTakenBackAndDoneAgain(t *testing.T) {
	u := startUndoing(t)
	u.do("write a.txt one", `call reminder_create {"kind":"text","body":"lunch","cron":"0 12 * * *"}`,
		`call send_message {"text":"a sign of life"}`)
	turn := u.do("write a.txt two", "write b.txt new", `call reminder_cancel {"id":1}`,
		`call reminder_create {"kind":"text","body":"stand up","cron":"0 9 * * *"}`,
		`call poll_create {"question":"lunch?","options":["pizza","sushi"]}`,
		`call edit_message {"message_id":2,"text":"all is well"}`, `call react {"message_id":1,"emoji":"👍"}`,
		`call fork_topic {}`, `call delegate {"folder":"main/eng","prompt":"wait for-ever"}`)
	u.deliver()
	u.Until("the delegated work to begin", func() bool {
		return u.Value(`SELECT count(*) FROM turns WHERE folder = 'main/eng' AND state = 'running'`) == "1"
	})
	const reminders = `SELECT body, state FROM reminders ORDER BY id`
	const changes = `SELECT c.kind, c.content, ifnull(c.target_id, m.platform_id) FROM messages c LEFT JOIN messages m ON m.id = c.derived_from
		WHERE c.direction = 'out' AND c.source = 'notice' ORDER BY c.id`
	answer := u.command("/undo")
	u.wants(answer, fmt.Sprintf("Taken back: turn %d", turn.ID), "messages being deleted: 2", "messages being edited: 1",
		"files restored: 2 (a.txt, b.txt)", "reminders restored: 2", "polls closed: 1", "forks ended: 1",
		"work of other groups stopped: 1", "what other groups have done for it", "/redo reverses this")
	if got := u.files(); got != "a.txt=one," {
		t.Errorf("files %s", got)
	}
	u.want("session", sessionNow, "s1")
	u.want("reminders", reminders, "lunch active; stand up cancelled")
	u.want("polls", `SELECT state FROM polls`, "closed")
	u.want("forks", `SELECT ended_at > 0 FROM forks`, "1")
	u.want("delegated work", `SELECT state FROM turns WHERE folder = 'main/eng'`, "cancelled")
	ids := u.Query(`SELECT platform_id FROM messages WHERE turn_id = ? AND direction = 'out' AND kind IN ('message', 'poll') ORDER BY id DESC`, turn.ID)
	u.want("changes", changes, fmt.Sprintf("delete  %s; reaction -👍 m1; edit a sign of life p2; delete  %s", ids[0], ids[1]))
	u.deliver()

	next := u.do("say next")
	prompt := u.Run("gated", "context", "show", fmt.Sprint(next.ID))
	if strings.Contains(prompt, "stand up") || !strings.Contains(prompt, "a sign of life") {
		t.Errorf("the next prompt has what was taken back, or lacks what counts: %s", prompt)
	}
	u.wants(u.command("/redo"), "nothing to do again here")
	u.wants(u.command("/undo"), "Taken back: turn")
	u.wants(u.command("/redo"), "Done again: turn", "messages being sent again: 1")
	u.wants(u.command("/undo"), "Taken back: turn")
	u.wants(u.command("/undo"), "Taken back: turn 1")
	u.wants(u.command("/undo"), "nothing to take back here")
	u.want("turns that count", turnsCount, "1") // the delegated one
	u.want("session", sessionNow, "")
	if got := u.files(); got != "" {
		t.Errorf("files %s", got)
	}
}

// What cannot be taken back is refused, with the reason.
func TestUndo_Refusals(t *testing.T) {
	u := startUndoing(t)
	u.wants(u.command("/undo"), "nothing to take back here")
	u.wants(u.command("/undo all"), `no other word than "rest"`)
	u.do("write a.txt one")
	group := func(sender, text string) string {
		u.posts++
		return u.Reply(u.Put(msg.Message{ChatJID: "telegram:-7", Sender: sender, PlatformID: fmt.Sprint("g", u.posts),
			Verb: msg.VerbMention, Content: text})[0]).Content
	}
	u.wants(group("telegram:5", "/undo"), "is of another chat")
	u.Answer(u.Put(msg.Message{ChatJID: "telegram:-7", Sender: "telegram:6", SenderName: "Bob", Verb: msg.VerbMention, Content: "write b.txt x"})[0])
	u.deliver()
	u.wants(group("telegram:5", "/undo"), "Only Bob, who asked for it, or an operator")
	u.Until("gated to note the turn's files, after its end", func() bool {
		_, err := os.Stat(filepath.Join(u.Data, "undo", "main", "turn-2"))
		return err == nil
	})
	u.OK(os.WriteFile(filepath.Join(u.folder, "b.txt"), []byte("mine"), 0o600))
	u.wants(group("telegram:6", "/undo"), "Nothing is changed: these files have changed since: b.txt.")
	u.wants(group("telegram:6", "/undo rest"), "Taken back: turn 2", "files that have changed since: b.txt")
	u.wants(u.command("/redo"), "is of another chat")
	if got := u.files(); got != "a.txt=one, b.txt=mine" {
		t.Errorf("files %s", got)
	}
	row := u.post("wait go")
	u.WaitRunning(row)
	u.wants(u.command("/undo"), "The agent is at work on turn 3. Stop it first, with /stop.")
	u.OK(os.WriteFile(filepath.Join(u.folder, "go"), nil, 0o600))
	u.WaitEnded(row)
}

// Gated is killed at each step of an undo and of a redo: either is done once, and in full.
func TestUndo_GatedKilled_AtEachStep(t *testing.T) {
	points := []fp.Point{fp.PutUndo.Before(), fp.PutUndo.After(), fp.UndoScanned, fp.UndoStaged, fp.UndoBegun, fp.UndoMoving,
		fp.UndoMoved, fp.Restored, fp.EndUndo.Before(), fp.EndUndo.After()}
	u := startUndoing(t)
	u.sender = operator // whose commands are not limited
	u.do("write a.txt one")
	for i, point := range points {
		turn := u.do("write a.txt two", fmt.Sprintf("write b%d.txt new", i))
		with := u.files()
		for _, command := range []string{"/undo", "/redo"} {
			var row int64
			killGatedAt(u.Fixture, point, func() { row = u.post(command) })
			done := map[string]string{"/undo": "Taken back", "/redo": "Done again"}[command]
			u.wants(u.Reply(row).Content, fmt.Sprintf("%s: turn %d", done, turn.ID), "messages being ", "restored: 2 (")
			u.deliver()
			want := strings.Replace(strings.Replace(with, fmt.Sprintf(" b%d.txt=new,", i), "", 1), "one,two,", "one,", 1)
			if command == "/redo" {
				want = with
			}
			if got := u.files(); got != want {
				t.Errorf("%s killed at %s: files %s, want %s", command, point, got, want)
			}
			u.want(fmt.Sprintf("answers to %s killed at %s", command, point), fmt.Sprintf(
				`SELECT count(*) FROM messages WHERE reply_to_id = 'm%d' AND direction = 'out'`, u.posts), "1")
		}
		u.command("/undo")
		u.deliver()
	}
	if got := u.files(); got != "a.txt=one," {
		t.Errorf("files %s", got)
	}
	u.want("turns that count", turnsCount, "1")
	u.want("what is left of undos", `SELECT count(*) FROM undos WHERE state <> 'done'`, "0")
	if left, err := filepath.Glob(filepath.Join(u.folder, ".arizuko*")); err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}

// past is what the files and the session are to be after the turns that count.
type past struct{ files, session string }

// changes are lines that change files at random.
func (p past) changes(random *rand.Rand) (lines []string) {
	names := strings.Fields(p.files)
	for range 1 + random.IntN(3) {
		name := fmt.Sprintf("%c.txt", 'a'+random.IntN(3))
		if at := slices.IndexFunc(names, func(f string) bool { return strings.HasPrefix(f, name) }); at >= 0 && random.IntN(2) == 0 {
			names = slices.Delete(names, at, at+1)
			lines = append(lines, "remove "+name)
		} else {
			lines = append(lines, fmt.Sprintf("write %s %d", name, random.IntN(1000)))
		}
	}
	return lines
}

// Whatever turns, undos, redos and kills follow one another, files and rows are those of the turns that count.
func TestUndo_AnySequence_LeavesWhatCounts(t *testing.T) {
	steps, seed := 20, uint64(time.Now().UnixNano())
	if os.Getenv("VERIFY") != "" {
		steps = 200
	}
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	u := startUndoing(t)
	u.sender = operator
	counts, undone := []past{{}}, []past(nil)
	for range steps {
		now := counts[len(counts)-1]
		var row int64
		want := ""
		switch action := random.IntN(5); {
		case action < 2:
			after := past{session: fmt.Sprint("s", u.posts+1)}
			counts, undone = append(counts, after), nil
			row = u.post(append(now.changes(random), "session "+after.session, "say done")...)
		case action < 4:
			row, want = u.post("/undo"), "Taken back"
			if len(counts) == 1 {
				want = "nothing to take back"
			} else if len(undone) == 10 {
				want = "no more can be"
			} else {
				counts, undone = counts[:len(counts)-1], append(undone, now)
			}
		default:
			row, want = u.post("/redo"), "nothing to do again"
			if n := len(undone); n > 0 {
				counts, undone, want = append(counts, undone[n-1]), undone[:n-1], "Done again"
			}
		}
		if random.IntN(3) == 0 {
			<-time.After(time.Duration(random.IntN(200)) * time.Millisecond)
			u.Kill(harness.Gated)
			u.Restart(harness.Gated)
		}
		if want == "" {
			u.WaitEnded(row) // a turn that is repeated after a kill may write its lines twice
			counts[len(counts)-1].files = u.files()
		} else {
			u.wants(u.Reply(row).Content, want)
		}
		u.deliver()
		now = counts[len(counts)-1]
		if got := u.files(); got != now.files {
			t.Fatalf("files %s, want %s", got, now.files)
		}
		u.want("session", sessionNow, now.session)
		u.want("turns that count", turnsCount, fmt.Sprint(len(counts)-1))
	}
}
