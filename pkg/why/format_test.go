package why

import (
	"strings"
	"testing"
	"time"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/daemon"
	daemonrows "arizuko/pkg/daemon/rows"
	"arizuko/pkg/egress"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/golden"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// t0 is when the messages of these tests were received; at is n ms later.
const t0 = 1_790_000_000_000

func at(n int64) int64 { return t0 + n }

func inbound() *msg.Message {
	return &msg.Message{
		ID: 812, ChatJID: "telegram:-1001", PlatformID: "55", Direction: msg.In, Sender: "telegram:77", SenderName: "bob",
		Verb: msg.VerbMention, Content: "hello", Source: "teled", Timestamp: at(-120), ReceivedAt: at(0),
		Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: "main", DecidedAt: at(31), TurnID: 97,
	}
}

func answered() *Path {
	m := inbound()
	return &Path{Asked: m, Rows: []*msg.Message{m}, Turns: []*Turn{{
		Turn: &msg.Turn{
			ID: 97, RunID: 55, Folder: "main", ChatJID: m.ChatJID, Topic: "#deploy", Place: "9", ThreadID: "9", TriggerMessageID: 812,
			State: msg.TurnDone, Reason: msg.ReasonAnswered, Frames: 1, CreatedAt: at(31), StartedAt: at(40), EndedAt: at(2540),
		},
		Batch: []*msg.Message{{ID: 811}, {ID: 812}},
		Usage: agentproto.Usage{Input: 5120, Output: 310, ContextUsed: 6000, ContextSize: 200_000, CostUSD: 0.021},
		Runs:  []*factrows.RunResult{{Run: msg.Run{ID: 55, Runtime: "process", PID: 4711, StartedAt: at(40), EndedAt: at(62540)}, Result: "ok"}},
		Sent: []*egress.Receipt{{ID: 9, At: at(1200), RunID: 55, TurnID: 97, Method: "POST", Host: "api.github.com", Port: 443, Path: "/repos/acme/x/issues", BytesOut: 412,
			State: egress.Sent, Status: 201, By: "telegram:42", EndedAt: at(1300)}},
		Replies: []*Reply{{
			Message: &msg.Message{ID: 813, ChatJID: m.ChatJID, Direction: msg.Out, Source: msg.SourceAgent, Content: "hi bob",
				ReceivedAt: at(2540), OutState: msg.OutSent, TurnID: 97},
			Parts: []store.Delivery{{MessageID: 813, State: msg.OutSent, PlatformID: "56", UpdatedAt: at(2710)}},
		}},
	}}}
}

// warm is a message that an agent answered which had been started for another one an hour before.
func warm() *Path {
	p := answered()
	p.Turns[0].Runs[0].StartedAt = at(-3_600_000)
	return p
}

func failing() *Path {
	p := answered()
	turn := p.Turns[0]
	turn.State, turn.Reason, turn.Attempts, turn.Frames = msg.TurnFailed, msg.ReasonAgentError, 2, 0
	turn.Error, turn.EndedAt = "the agent ended without an answer: exit code 3", at(6000)
	turn.Runs = []*factrows.RunResult{
		{Run: msg.Run{ID: 55, Runtime: "docker", Label: "arizuko-run-55", StartedAt: at(40), EndedAt: at(500)}, Result: "error", Error: turn.Error},
		{Run: msg.Run{ID: 56, Runtime: "docker", Label: "arizuko-run-56", StartedAt: at(5500), EndedAt: at(6000)}, Result: "error", Error: turn.Error},
	}
	notice := turn.Replies[0]
	notice.Source, notice.Content, notice.ReceivedAt, notice.OutState = msg.SourceNotice, "Sorry", at(6000), msg.OutSending
	notice.Parts = []store.Delivery{
		{MessageID: 813, State: msg.OutSent, PlatformID: "56", UpdatedAt: at(6100)},
		{MessageID: 813, Part: 1, State: msg.OutQueued, Attempts: 3, NotBefore: at(20_000), ErrorClass: msg.Rate,
			Error: "Too Many Requests: retry after 10", UpdatedAt: at(7000)},
	}
	return p
}

func unroutedRow(jid string) *Path {
	m := inbound()
	m.ChatJID, m.Disposition, m.Reason, m.RoutedTo, m.TurnID = jid, msg.Dropped, msg.ReasonNoRoute, "", 0
	return &Path{Asked: m, Rows: []*msg.Message{m}}
}

func undecided() *Path {
	m := inbound()
	m.Disposition, m.Reason, m.RoutedTo, m.DecidedAt, m.TurnID = "", "", "", 0, 0
	return &Path{Asked: m, Rows: []*msg.Message{m}}
}

func backoff() *Path {
	p := answered()
	turn := p.Turns[0]
	turn.State, turn.Reason, turn.RunID, turn.EndedAt, turn.Frames = msg.TurnQueued, "", 0, 0, 0
	turn.WaitsFor, turn.ErrorKind = msg.WaitsMachine, msg.ErrorMachine
	turn.Attempts, turn.NotBefore, turn.Error, turn.Replies = 1, at(15_000), "cannot run the agent: no such image", nil
	return p
}

// undone is a message whose turn was taken back and done again, and then neither for changed files nor a full disk.
func undone() *Path {
	p := answered()
	p.Turns[0].UndoneAt = at(4500)
	for i, u := range []factrows.Undo{
		{State: factrows.UndoDone, By: "telegram:77", Name: "bob", Answer: "Taken back: turn 97 (“hello”)."},
		{State: factrows.UndoDone, By: "web:operator", Redo: true, Answer: "Done again: turn 97 (“hello”)."},
		{State: factrows.UndoRefused, By: "web:operator", Answer: factrows.UndoneFilesChanged + "a.txt."},
		{State: factrows.UndoRefused, By: "web:operator", Answer: "Nothing is changed: no space left on device"},
		{State: factrows.UndoDone, By: "web:operator"},
		{State: factrows.UndoOpen, By: "web:operator", Redo: true},
	} {
		u.CreatedAt = at(3000 + 300*int64(i))
		if u.State != factrows.UndoOpen {
			u.EndedAt = u.CreatedAt + 100
		}
		p.Turns[0].Undos = append(p.Turns[0].Undos, &u)
	}
	return p
}

func prefixed() *Path {
	p := answered()
	original := inbound()
	original.ID, original.Content, original.Disposition, original.Reason, original.TurnID = 810, "#deploy hello", msg.Prefix, msg.ReasonPrefixTopic, 0
	derived := p.Rows[0]
	derived.DerivedFrom, derived.PlatformID = 810, ""
	return &Path{Asked: original, Rows: []*msg.Message{original, derived}, Turns: p.Turns}
}

func command() *Path {
	m := inbound()
	m.Content, m.Disposition, m.Reason, m.RoutedTo, m.TurnID = "/ping", msg.Command, msg.ReasonCommand, "", 0
	reply := &Reply{Message: &msg.Message{ID: 813, ChatJID: m.ChatJID, Direction: msg.Out, Source: msg.SourceCommand, Content: "pong",
		ReplyToID: "55", ReceivedAt: at(31), OutState: msg.OutQueued}}
	return &Path{Asked: m, Rows: []*msg.Message{m}, Replies: []*Reply{reply}}
}

func outbound() *Path {
	p := answered()
	p.Asked = p.Turns[0].Replies[0].Message
	return p
}

// hostile has terminal controls wherever text comes from outside.
func hostile() *Path {
	const evil = "a\x1b[2J\tb\r\nmessage 1 decided: \u202e\x07"
	p := answered()
	m, turn, reply := p.Asked, p.Turns[0], p.Turns[0].Replies[0]
	m.ChatJID, m.Sender, m.SenderName, m.Content, m.Source, m.PlatformID = evil, evil, evil, evil+strings.Repeat("ü", 200), evil, evil
	m.Verb, m.Topic, m.ThreadID, m.ReplyToID, m.TargetID = evil, evil, evil, evil, evil
	turn.Topic, turn.Error, turn.Folder, turn.ThreadID = evil, evil, evil, evil
	turn.Runs[0].Error, turn.Runs[0].Label = evil, evil
	reply.Content, reply.ChatJID = evil, evil
	reply.Parts[0].Error, reply.Parts[0].PlatformID = evil, evil
	m.DerivedFrom = 7
	return p
}

// running are daemons that run, ten seconds after the message.
func running() facts.Daemons {
	all := facts.Daemons{}
	for _, name := range append(facts.Deciders(), "teled") {
		all[name] = &facts.Daemon{Daemon: daemonrows.Daemon{Name: name, Connection: string(daemon.Connected), HeartbeatAt: at(9_000)}}
	}
	return all
}

// A row that waits for a daemon that does not run, or whose platform does not answer, names it.
func TestStillOpen_DaemonInTrouble_IsNamed(t *testing.T) {
	for _, tt := range []struct {
		path    *Path
		trouble func(facts.Daemons)
		want    string
	}{
		{undecided(), func(d facts.Daemons) { d["routd"].HeartbeatAt = at(-300_000) }, "message 812 is undecided for 10s: routd does not run: its last heartbeat was 5 min ago"},
		{undecided(), func(d facts.Daemons) { delete(d, "onbod") }, "message 812 is undecided for 10s: onbod has never run with this data folder"},
		{backoff(), func(d facts.Daemons) { d["gated"].Connection = string(daemon.Stopped) }, "turn 97 is queued for 9.96s, failed attempts: 1, next in 5s: " +
			"this machine could not start an agent, gated was stopped 1 s ago, machine error: cannot run the agent: no such image"},
		{command(), func(d facts.Daemons) { d["teled"].Connection = string(daemon.Degraded) }, "message 813 waits to be sent: teled has a bad connection to its platform"},
	} {
		tt.path.Daemons = running()
		tt.trouble(tt.path.Daemons)
		if all := StillOpen(tt.path, time.UnixMilli(at(10_000))); len(all) != 1 || all[0].Text != tt.want {
			t.Errorf("%+v, want %q", all, tt.want)
		}
	}
}

func TestText(t *testing.T) {
	for name, p := range map[string]*Path{
		"answered": answered(), "warm": warm(), "failing": failing(), "undecided": undecided(), "unrouted": unroutedRow("telegram:-1001"), "unrouted-hostile": unroutedRow("x:'; rm -rf ~ #"), "backoff": backoff(), "prefixed": prefixed(),
		"command": command(), "outbound": outbound(), "hostile": hostile(), "undone": undone(),
	} {
		t.Run(name, func(t *testing.T) {
			p.Daemons = running()
			golden.Compare(t, "testdata/"+name+".txt", Text(p, time.UnixMilli(at(10_000)), time.UTC))
		})
	}
}

func TestText_HostileText_CannotSteerTheTerminal(t *testing.T) {
	text := Text(hostile(), time.UnixMilli(at(10_000)), time.UTC)
	if strings.ContainsAny(text, "\x1b\x07\r\t\u202e") {
		t.Errorf("it prints controls:\n%q", text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "message 1") {
			t.Errorf("a text of its own makes a line: %q", line)
		}
	}
}

func TestText_BadRow_SaysWhatFailed(t *testing.T) {
	m := inbound()
	m.Disposition, m.Reason, m.RoutedTo, m.TurnID, m.Error = msg.Dropped, msg.ReasonBadRow, "", 0, "panic: no\ngoroutine 1"
	text := Text(&Path{Asked: m, Rows: []*msg.Message{m}}, time.UnixMilli(at(100)), time.UTC)
	if !strings.Contains(text, "error: panic: no\n") || strings.Contains(text, "goroutine") {
		t.Errorf("it says:\n%s", text)
	}
}

func TestParked_SaysWhatTheRowWaitsFor(t *testing.T) {
	for want, r := range map[string]*factrows.Request{
		"until an operator decides request ABCD-1234 (/approve ABCD-1234 (on": {Code: "ABCD-1234", State: factrows.RequestPending},
		"telegram:9 approved request ABCD-1234 into main":                     {Code: "ABCD-1234", State: factrows.RequestPending, Folder: "main", DecidedBy: "telegram:9"},
		"gated decides the row at once":                                       nil,
	} {
		row := &msg.Message{ID: 5, Disposition: msg.Onboarding}
		all := StillOpen(&Path{Rows: []*msg.Message{row}, Request: r}, time.Now())
		if len(all) != 1 || !strings.Contains(all[0].Text, "message 5 is parked: ") || !strings.Contains(all[0].Text, want) {
			t.Errorf("%+v, want %q", all, want)
		}
	}
}
