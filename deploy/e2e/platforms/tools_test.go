package platforms

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	fp "arizuko/pkg/failpoint"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// killedAt waits until a daemon that was started with a failpoint has reached it, and restarts it.
func (i *instance) killedAt(daemon string) {
	i.T.Helper()
	p := i.Instance.Process(daemon)
	i.Until(daemon+" to end", func() bool { return !p.Running() })
	if !p.Killed() {
		i.T.Fatalf("%s ended with %s, want killed", daemon, p.State())
	}
	i.Restart(daemon)
}

// count is how many of a list are one text.
func count(all []string, text string) (n int) {
	for _, s := range all {
		if s == text {
			n++
		}
	}
	return n
}

// answered waits until the message of a user is answered, and returns the agent's answer.
func (f *fixture) answered(platformID string) (answer string) {
	f.T.Helper()
	f.Until("an answer to message "+platformID, func() bool {
		answer = f.Value(`SELECT a.content FROM messages q JOIN turns t ON t.id = q.turn_id JOIN messages a ON a.turn_id = t.id AND a.source = 'agent'
			WHERE q.platform_id = ? AND q.direction = 'in' AND t.ended_at IS NOT NULL AND q.platform = ?`, platformID, f.info.Platform)
		return answer != ""
	})
	return answer
}

// An agent acts while its adapter is down, and gated is killed between two of its calls. The turn is retried, the adapter
// comes back, and users see each effect once, in order.
func TestTools_GatedAndAdapterKilled_ArriveOnceInOrder(t *testing.T) {
	need.Verify(t)
	onEachPlatformWithTools(t, func(f *fixture) {
		before := len(f.wireCalls())
		f.Kill(harness.Gated)
		f.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.PutToolCall.After())+":4")
		asked := f.ask(f.dm, strings.Join([]string{
			"wait go", `call send_message {"text":"at work"}`, `call edit_message {"message_id":$message_id,"text":"nearly done"}`,
			`call send_file {"path":"plan.txt","caption":"the plan"}`, `call react {"message_id":$this,"emoji":"👍"}`,
			`call poll_create {"question":"lunch?","options":["pizza","sushi"]}`, "say done",
		}, "\n"))
		f.waitRunning(f.dm)
		f.Kill(f.info.Daemon)
		f.OK(os.WriteFile(f.groupFile("go"), nil, 0o600))
		f.killedAt(harness.Gated)
		if answer := f.answered(asked); strings.Contains(answer, " error ") || !strings.HasSuffix(answer, "\ndone") {
			f.T.Errorf("answer %q", answer)
		}
		f.Restart(f.info.Daemon)
		f.WaitIdle()
		kind := "native"
		if f.info.Platform == "slack" {
			kind = "text"
		}
		// The answers keep their order; decorations may come earlier or later, each once.
		decorations := []string{"edit " + f.waitArrival("at work").ID + " nearly done", "reaction " + asked + " 👍"}
		all := f.wireCalls()[before:]
		got := slices.DeleteFunc(slices.Clone(all), func(call string) bool { return slices.Contains(decorations, call) })
		want := []string{"text at work", "file plan.txt one, two the plan", "poll lunch? " + kind}
		if len(all) != len(want)+len(decorations)+1 || len(got) != len(want)+1 || !slices.Equal(got[:len(want)], want) ||
			!strings.HasSuffix(got[len(want)], "\ndone") {
			f.T.Errorf("the platform got\n%q, want\n%q, the answer, and %q", all, want, decorations)
		}
	})
}

// A file that was only observed is downloaded when an agent asks for it, also if the adapter is killed meanwhile.
func TestGetAttachment_OfObservedMessage_AdapterKilled_IsInFolder(t *testing.T) {
	need.Verify(t)
	onEachPlatformWithTools(t, func(f *fixture) {
		group := f.NewGroup("Strangers")
		f.do(chatsim.Action{
			Conversation: group, Verb: msg.VerbMessage, Text: "not for the bot", File: &chatsim.File{Name: "notes.txt", Data: []byte("three, four")},
		})
		f.waitStored("not for the bot")
		f.WaitIdle()
		row := f.Value(`SELECT id FROM messages WHERE content = 'not for the bot'`)
		asked := f.ask(group, fmt.Sprintf("look\nwait go\ncall get_attachment {\"message_id\":%s}", row))
		f.waitRunning(group)
		f.Kill(f.info.Daemon)
		f.OK(os.WriteFile(f.groupFile("go"), nil, 0o600))
		f.Until("the file to be wanted", func() bool { return f.Value(`SELECT files_wanted FROM messages WHERE id = ?`, row) == "1" })
		f.Restart(f.info.Daemon)
		answer := f.answered(asked)
		if !strings.Contains(answer, `"name":"notes.txt"`) {
			f.T.Fatalf("answer %q", answer)
		}
		_, path, _ := strings.Cut(answer, `"path":"`)
		path, _, _ = strings.Cut(path, `"`)
		if data, err := os.ReadFile(f.groupFile(filepath.FromSlash(path))); err != nil || string(data) != "three, four" {
			f.T.Errorf("file %q: %q, %v", path, data, err)
		}
	})
}

// A poll is delivered, voted in and closed while daemons are killed.
func TestPoll_DaemonsKilled_VotesCountOnce(t *testing.T) {
	need.Verify(t)
	onEachPlatformWithTools(t, func(f *fixture) {
		f.Kill(harness.Gated)
		f.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.PutToolCall.Before()))
		asked := f.ask(f.dm, `call poll_create {"question":"lunch?","options":["pizza","sushi"]}`)
		f.killedAt(harness.Gated)
		f.answered(asked)
		poll := f.waitArrival("lunch?").ID
		f.WaitIdle()
		f.Kill(harness.Gated)
		f.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.PutVote.Before()))
		f.OK(f.Vote(f.dm, poll, 2))
		f.killedAt(harness.Gated)
		f.Until("the vote to count", func() bool { return f.Value(`SELECT group_concat(options) FROM poll_votes`) == "[2]" })
		if answer := f.answered(f.ask(f.dm, "call poll_list {}")); !strings.Contains(answer, `{"text":"sushi","voters":["Alice"],"votes":1}`) || !strings.Contains(answer, `{"text":"pizza","voters":[],"votes":0}`) {
			f.T.Errorf("open: %s", answer)
		}
		f.Kill(harness.Gated)
		f.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.EndPoll.After()))
		id := f.Value(`SELECT id FROM polls`)
		asked = f.ask(f.dm, fmt.Sprintf(`call poll_close {"poll_id":%s}`, id))
		f.killedAt(harness.Gated)
		f.answered(asked)
		f.WaitIdle()
		if calls := f.wireCalls(); count(calls, "end "+poll) != 1 {
			f.T.Errorf("the platform got %q, want one end of poll %s", calls, poll)
		}
		if answer := f.answered(f.ask(f.dm, `call poll_list {"state":"closed"}`)); !strings.Contains(answer, `{"text":"sushi","voters":["Alice"],"votes":1}`) || !strings.Contains(answer, `"state":"closed"`) {
			f.T.Errorf("closed: %s", answer)
		}
	})
}

// A poll in the web chat is a numbered text with a form.
func TestPoll_WebChat_VotesCountOnce(t *testing.T) {
	need.Verify(t)
	t.Parallel()
	i := newInstance(t)
	i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND=exec "+i.Instance.Program("caller"))
	i.start("routd", "gated", "dashd")
	i.AddGroups("main")
	web := &tab{i, i.Client("dashd"), "#lunch"}
	answer := func(n int) string {
		i.Until("answers", func() bool { return len(web.answers()) >= n })
		return web.answers()[n-1]
	}
	web.say(`call poll_create {"question":"lunch?","options":["pizza","sushi"]}`)
	answer(2)
	poll := i.Value(`SELECT message_id FROM polls`)
	var id int64
	_, err := fmt.Sscan(poll, &id)
	i.OK(err)
	i.WaitIdle()
	i.Kill(harness.Gated)
	i.StartDaemon(harness.Gated, "FAILPOINT="+string(fp.PutVote.After()))
	i.OK(web.dashd.Do(t.Context(), http.MethodPost, "/chat/main/votes", map[string]any{"id": id, "options": []int{2}}, nil))
	i.killedAt(harness.Gated)
	i.Until("the vote to count", func() bool { return i.Value(`SELECT group_concat(options) FROM poll_votes`) == "[2]" })
	web.say(`call poll_close {"poll_id":` + i.Value(`SELECT id FROM polls`) + `}`)
	i.Until("the poll to end", func() bool { return i.Value(`SELECT end_pending || state FROM polls`) == "0closed" })
	i.WaitIdle()
	web.say(`call poll_list {"state":"closed"}`)
	i.WaitIdle()
	all := strings.Join(web.answers(), "\n")
	for _, want := range []string{"lunch?\n1\\. pizza\n2\\. sushi", "2\\. sushi: 1\n_Closed. Votes of 1 user._", `"votes":1}`} {
		if !strings.Contains(all, want) {
			t.Errorf("the web chat lacks %q:\n%s", want, all)
		}
	}
}
