package platforms

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/testkit/need"
)

// Vote implements chatsim.Users.
func (w workAccount) Vote(c chatsim.Conversation, poll string, option int) error {
	c.Chat = ofFirst(c.Chat)
	return w.Platform.Vote(c, poll, option)
}

// onEachFurtherAccount runs a scenario on every platform, whose adapter is that of a further account.
func onEachFurtherAccount(t *testing.T, scenario func(*fixture)) {
	onEach(t, func(t *testing.T, newPlatform func() chatsim.Platform) {
		scenario(newInstance(t).serve(workAccount{newPlatform()}))
	})
}

// TestAccounts_FurtherOne_OnboardsItsChats: its operator approves and rejects chats by commands.
func TestAccounts_FurtherOne_OnboardsItsChats(t *testing.T) {
	need.Verify(t)
	onEachFurtherAccount(t, onboarding)
}

// TestAccounts_FurtherOne_PollsFilesAndRestore: files go both ways and votes count, also after a restore on another
// machine, where the adapter goes on where it was.
func TestAccounts_FurtherOne_PollsFilesAndRestore(t *testing.T) {
	need.Verify(t)
	onEachFurtherAccount(t, func(f *fixture) {
		f.startAccount()
		f.exchangeFiles()
		f.vote("lunch?", "[2]")

		ctx, cancel := context.WithTimeout(f.T.Context(), time.Minute)
		defer cancel()
		f.OK(f.Instance.StopAll(ctx))
		backup := filepath.Join(f.Instance.Dir, "backup.tgz")
		f.OK(run(f.instance, "dashd", "backup", backup))
		f.say(f.dm, "say written meanwhile")

		restored := f.elsewhere()
		f.OK(run(restored.instance, "dashd", "restore", backup))
		restored.startDaemons()
		restored.waitArrival("written meanwhile")
		restored.vote("dinner?", "[2],[2]")
		if n := restored.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND content = 'the plan'`); n != "1" {
			restored.T.Errorf("the message with the file has %s rows", n)
		}
	})
}

// run runs a program of an instance.
func run(i *instance, program string, args ...string) error {
	out, err := i.Instance.Command(program, args...).CombinedOutput()
	if err != nil {
		i.T.Logf("%s %s:\n%s", program, strings.Join(args, " "), out)
	}
	return err
}

// startAccount starts the daemons, with a group that answers the account's direct messages.
func (f *fixture) startAccount() {
	f.T.Helper()
	f.startDaemons()
	f.AddGroups("main")
	f.AddRoute("platform="+msg.FamilyOf(f.dm.Chat)+" account="+work+" room="+f.info.DMPattern, "main")
	f.say(f.dm, "say hello")
	f.waitArrival("hello")
	f.WaitIdle()
}

// startDaemons starts the daemons of an account, with agents that call the tools which messages name.
func (f *fixture) startDaemons() {
	f.T.Helper()
	f.Instance.Env = append(f.Instance.Env, "AGENT_COMMAND=exec "+f.Instance.Program("caller"))
	f.start(harness.Routd, harness.Gated, f.info.Daemon)
	f.waitConnection("connected")
}

// exchangeFiles has one file of a user and one of the agent.
func (f *fixture) exchangeFiles() {
	f.T.Helper()
	f.do(chatsim.Action{Conversation: f.dm, Verb: msg.VerbMessage, Text: "the plan", File: &chatsim.File{Name: "plan.txt", Data: []byte("one, two")}})
	f.Until("the user's file", func() bool {
		path := f.Value(`SELECT attachments ->> '$[0].path' FROM messages WHERE direction = 'in' AND content = 'the plan'`)
		data, err := os.ReadFile(filepath.Join(f.Data, filepath.FromSlash(path)))
		return path != "" && err == nil && string(data) == "one, two"
	})
	f.OK(os.WriteFile(f.groupFile("answer.txt"), []byte("three"), 0o600))
	f.say(f.dm, `call send_file {"path":"answer.txt","caption":"the answer"}`)
	f.waitArrival("the answer")
	f.WaitIdle()
}

// vote has a poll of the agent, in which the user votes for the second option. votes are those of all polls then.
func (f *fixture) vote(question, votes string) {
	f.T.Helper()
	f.say(f.dm, `call poll_create {"question":"`+question+`","options":["pizza","sushi"]}`)
	poll := f.waitArrival(question).ID
	f.WaitIdle()
	f.OK(f.Vote(f.dm, poll, 2))
	f.Until("the votes to be "+votes, func() bool { return f.Value(`SELECT group_concat(options) FROM poll_votes`) == votes })
	f.WaitIdle()
}

// elsewhere is an instance without a database as on another machine, with the same account.
func (f *fixture) elsewhere() *fixture {
	f.T.Helper()
	i := newInstance(f.T.(*testing.T))
	for _, entry := range f.Instance.Env {
		if name, _, _ := strings.Cut(entry, "="); name == "ACCOUNTS" || strings.HasSuffix(name, workSuffix) {
			i.Instance.Env = append(i.Instance.Env, entry)
		}
	}
	moved := &fixture{instance: i, Platform: f.Platform, info: f.info, dm: f.dm}
	i.platforms = append(i.platforms, moved)
	return moved
}
