package platforms

import (
	"cmp"
	"strings"
	"testing"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
)

// workAccount is a platform whose adapter is that of the account work.
type workAccount struct{ chatsim.Platform }

const work, workSuffix = "work", "_WORK"

// Info implements chatsim.Platform.
func (w workAccount) Info() chatsim.Info {
	info := w.Platform.Info()
	info.Daemon, info.Platform = msg.WithAccount(info.Daemon, work), msg.WithAccount(info.Platform, work)
	return info
}

// Serve implements chatsim.Transport, on an address of its own: the first account has the same port.
func (w workAccount) Serve(host string) (env []string, err error) {
	env, err = w.Platform.Serve(workHost(host))
	for i, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		env[i] = name + workSuffix + "=" + value
	}
	name := w.Platform.Info().Daemon
	return append(env, "ACCOUNTS="+msg.WithAccount(name, work), strings.ToUpper(name)+"_ADDR"+workSuffix+"="+workHost(host)+":8091"), err
}

// workHost is another loopback address. Those of instances are above 127.64.
func workHost(host string) string {
	rest := strings.SplitN(host, ".", 3)
	return "127.63." + rest[2]
}

func (w workAccount) NewDM(name string) chatsim.Conversation { return ofWork(w.Platform.NewDM(name)) }

func (w workAccount) NewGroup(title string) chatsim.Conversation {
	return ofWork(w.Platform.NewGroup(title))
}

func (w workAccount) NewThread(title string) chatsim.Conversation {
	return ofWork(w.Platform.NewThread(title))
}

func (w workAccount) Do(a chatsim.Action) (id string, err error) {
	a.Chat = ofFirst(a.Chat)
	return w.Platform.Do(a)
}

func (w workAccount) Arrivals() []chatsim.Arrival {
	all := w.Platform.Arrivals()
	for i := range all {
		all[i].Chat = ofWork(chatsim.Conversation{Chat: all[i].Chat}).Chat
	}
	return all
}

func (w workAccount) ShowsWorking(c chatsim.Conversation) bool {
	c.Chat = ofFirst(c.Chat)
	return w.Platform.ShowsWorking(c)
}

// ofWork is a conversation as it is addressed on the account.
func ofWork(c chatsim.Conversation) chatsim.Conversation {
	platform, room := msg.SplitJID(c.Chat)
	c.Chat = msg.JID(msg.WithAccount(platform, work), room)
	return c
}

// ofFirst is an address without the account.
func ofFirst(jid string) string {
	_, room := msg.SplitJID(jid)
	return msg.JID(msg.FamilyOf(jid), room)
}

// TestAccounts_TwoOfAPlatform_NeverMix runs two accounts of each platform in one instance. Their servers are new, and so
// give out the same ids; Discord's contain the time, and are the same only if both servers were made at once.
func TestAccounts_TwoOfAPlatform_NeverMix(t *testing.T) {
	onEach(t, func(t *testing.T, newPlatform func() chatsim.Platform) {
		i := newInstance(t)
		i.Instance.Env = append(i.Instance.Env, "AGENT_COMMAND=exec "+i.Instance.Program("demo"))
		first, second := i.serve(newPlatform()), i.serve(workAccount{newPlatform()})
		first.connectAccounts(second)
		first.exchange(second)
		first.killEach(second)
		first.groups(second)
	})
}

// connectAccounts starts the daemons. An operator is one of the first account, and each account has a group.
func (f *fixture) connectAccounts(second *fixture) {
	f.T.Helper()
	f.start(harness.Routd, f.info.Daemon, second.info.Daemon)
	for _, a := range []*fixture{f, second} {
		a.waitConnection("connected")
		a.say(a.dm, "silent hello")
		a.waitStored("silent hello")
	}
	operator := f.Value(`SELECT sender FROM messages WHERE chat_jid = ?`, f.dm.Chat)
	user := f.Value(`SELECT sender FROM messages WHERE chat_jid = ?`, second.dm.Chat)
	alike := f.dm.Chat == ofFirst(second.dm.Chat) && operator == ofFirst(user)
	if !alike && f.info.Platform != "discord" || operator == user {
		f.T.Fatalf("%s in %s, and %s in %s: the ids are alike: %t", operator, f.dm.Chat, user, second.dm.Chat, alike)
	}
	f.Instance.Env = append(f.Instance.Env, "OPERATORS="+operator)
	f.Restart(harness.Gated)
	f.AddGroups("main", "work")
	platform := "platform=" + f.info.Platform
	f.AddRoute(platform+" account=work verb=mention", "work")
	f.AddRoute(platform+" account=work room="+f.info.DMPattern, "work")
	f.AddRoute(platform+" account=* verb=mention", "main") // of all accounts that are left
	f.AddRoute(platform+" room="+f.info.DMPattern, "main")
	f.WaitIdle()
}

// exchange has one question on each account at once: each is answered there, by the group of the account.
func (f *fixture) exchange(second *fixture) {
	f.T.Helper()
	f.say(f.dm, "which first?")
	second.say(second.dm, "which second?")
	f.wantAnswer("which first?", f.dm, f.info.DM)
	second.wantAnswer("which second?", second.dm, f.info.DM)
	f.wantHome("which first?", "main", f.info.Daemon)
	f.wantHome("which second?", "work", second.info.Daemon)
	f.say(f.dm, msg.CommandIn(f.dm.Chat, msg.CommandHelp))
	second.say(second.dm, msg.CommandIn(second.dm.Chat, msg.CommandHelp))
	ping, approve := msg.CommandIn(f.dm.Chat, msg.CommandPing), msg.CommandIn(f.dm.Chat, msg.CommandApprove)
	if help := f.waitArrival(ping).Text; !strings.Contains(help, approve) {
		f.T.Errorf("an operator gets the help %q", help)
	}
	if help := second.waitArrival(ping).Text; strings.Contains(help, approve) {
		f.T.Errorf("the id of an operator is one on another account: %q", help)
	}
	f.wantApart(second)
}

// killEach kills one adapter after the other; the other account goes on meanwhile.
func (f *fixture) killEach(second *fixture) {
	f.T.Helper()
	for _, pair := range [][2]*fixture{{f, second}, {second, f}} {
		dead, alive := pair[0], pair[1]
		text := "without " + dead.info.Daemon
		dead.Kill(dead.info.Daemon)
		dead.putOutbound(msg.Message{ChatJID: dead.dm.Chat, Content: "waits: " + text})
		alive.say(alive.dm, text+"?")
		alive.waitAnswer(text + "?")
		dead.say(dead.dm, text+"!")
		dead.Restart(dead.info.Daemon)
		dead.waitAnswer(text + "!")
		dead.waitArrival("waits: " + text)
	}
	f.wantOneAnswerEach([]string{"which first?", "without " + second.info.Daemon + "?", "without " + f.info.Daemon + "!"})
	second.wantOneAnswerEach([]string{"which second?", "without " + f.info.Daemon + "?", "without " + second.info.Daemon + "!"})
	f.wantApart(second)
}

// groups is a mention in a group of each account.
func (f *fixture) groups(second *fixture) {
	f.T.Helper()
	here, there := f.NewGroup("team"), second.NewGroup("team")
	f.ask(here, "group first?")
	second.ask(there, "group second?")
	f.waitAnswer("group first?")
	second.waitAnswer("group second?")
	f.wantHome("group first?", "main", f.info.Daemon)
	f.wantHome("group second?", "work", second.info.Daemon)
	f.wantApart(second)
	again := f.Instance.Command(strings.TrimSuffix(second.info.Daemon, "+"+work))
	again.Env = append(again.Env, strings.ToUpper(f.info.Daemon)+"_ACCOUNT="+work, strings.ToUpper(f.info.Daemon)+"_ADDR="+f.Instance.Host+":0")
	if out, err := again.CombinedOutput(); again.ProcessState.ExitCode() != daemon.ExitBusy {
		f.T.Errorf("a second daemon of the account: %v\n%s", err, out)
	}
	for _, name := range []string{f.info.Daemon, second.info.Daemon} {
		if n := f.Value(`SELECT count(*) FROM daemons WHERE name = ? AND connection = 'connected'`, name); n != "1" {
			f.T.Errorf("%s rows of %s are connected", n, name)
		}
	}
}

// wantHome fails the test unless a text was stored by a daemon and routed to a group.
func (f *fixture) wantHome(text, folder, source string) {
	f.T.Helper()
	if got := f.Value(`SELECT routed_to || ' ' || source FROM messages WHERE direction = 'in' AND content = ?`, text); got != folder+" "+source {
		f.T.Errorf("%q is of %q, want %s %s", text, got, folder, source)
	}
}

// wantApart fails the test if an account got a message of the other.
func (f *fixture) wantApart(second *fixture) {
	f.T.Helper()
	f.WaitIdle()
	for _, check := range []struct {
		of    *fixture
		other string
	}{{f, "second"}, {second, "first"}} {
		for _, a := range check.of.Arrivals() {
			if strings.Contains(a.Text, check.other+"?") {
				f.T.Errorf("%s gets %q", check.of.info.Daemon, a.Text)
			}
		}
	}
	stray := f.Value(`SELECT count(*) FROM messages WHERE direction = 'in' AND sender LIKE '%:%' AND sender NOT LIKE 'agent:%'
		AND substr(sender, 1, instr(sender, ':')) <> substr(chat_jid, 1, instr(chat_jid, ':'))`)
	if cmp.Or(stray, "0") != "0" {
		f.T.Errorf("%s messages have a sender of another account", stray)
	}
}
