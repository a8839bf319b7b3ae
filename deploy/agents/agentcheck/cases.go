package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/agentproto"
)

// testCase is one part of the protocol. Its texts begin with an order that the demo agent obeys, and ask
// other agents for the same in plain English; an agent that does otherwise makes the case "not shown".
type testCase struct {
	name string
	run  func(*caseRun) error
}

func cases() []testCase {
	return []testCase{
		{"a first answer", firstAnswer},
		{"the frame names its turn", namesTurn},
		{"a session is taken up again", resumes},
		{"a session that is gone", lostSession},
		{"a second turn", secondTurn},
		{"a turn piped in while it works", pipedWhileBusy},
		{"two turns piped in at once", twoAtOnce},
		{"a turn folded into the one under way", folded},
		{"several frames", severalFrames},
		{"many frames", manyFrames},
		{"events while it works", eventful},
		{"a question to the user", asksUser},
		{"a choice of models", choosesModel},
		{"silence", silent},
		{"an error", reportsError},
		{"an error that keeps the session", keepsSession},
		{"interrupt, then another turn", interrupted},
		{"interrupt, then the end", interruptedForGood},
		{"end of input while it works", endWhileBusy},
		{"end of input at once", endAtOnce},
		{"a big prompt", bigPrompt},
		{"odd text", oddText},
		{"fields it does not know", unknownFields},
		{"a line it does not know", unknownLine},
	}
}

const (
	hello = "Say hello, in one short line."
	slow  = "slow 2 and then say hello, in one short line."
	long  = "slow 30 and count from one to two hundred in words."
	// busyAfter is when an agent is taken to be working on its turn.
	busyAfter = time.Second
)

func firstAnswer(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err == nil {
		_, err = x.succeed(turn)
	}
	return then(err, x.finish)
}

// then calls next unless err is set.
func then(err error, next func() error) error {
	if err != nil {
		return err
	}
	return next()
}

func namesTurn(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err != nil {
		return err
	}
	all, err := x.succeed(turn)
	if err == nil && all[0].TurnID == "" {
		return notShown("without turnId a frame counts for the oldest unanswered turn")
	}
	return then(err, x.finish)
}

func resumes(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err != nil {
		return err
	}
	all, err := x.succeed(turn)
	if err = then(err, x.finish); err != nil {
		return err
	}
	session := all[0].NewSessionID
	if session == "" {
		return notShown("there is no newSessionId: each run begins without memory")
	}
	if turn, err = x.begin(session, "And again, please."); err != nil {
		return err
	}
	_, err = x.succeed(turn)
	return then(err, x.finish)
}

func lostSession(x *caseRun) error {
	turn, err := x.begin("no-such-session", hello)
	if err != nil {
		return err
	}
	all, err := x.answers(turn)
	switch {
	case err != nil || all[0].Status != agentproto.StatusError:
		return then(err, x.finish)
	case all[0].Kind == "":
		return notShown("it reports an error without a kind; gated takes it as session, drops the session and retries")
	case all[0].ErrorKind() != agentproto.KindSession:
		return fail("report it with kind session, or begin a new session",
			"an error of kind %s: gated would retry with the same session, or not at all", all[0].Kind)
	}
	return nil // gated ends it
}

func secondTurn(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err != nil {
		return err
	}
	if turn, err = x.ask("And again, please."); err != nil {
		return err
	}
	_, err = x.succeed(turn)
	return then(err, x.finish)
}

func pipedWhileBusy(x *caseRun) error {
	one, err := x.begin("", slow)
	if err != nil {
		return err
	}
	two, err := x.ask("And again, please.")
	if err == nil {
		_, err = x.succeed(one, two)
	}
	return then(err, x.finish)
}

func twoAtOnce(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err != nil {
		return err
	}
	var turns []string
	var both []byte
	for _, text := range []string{"And again, please.", "And a last time, please."} {
		turn := x.nextTurn()
		line, err := agentproto.Encode(messageLine(turn, text))
		if err != nil {
			return err
		}
		x.run.checker.asked(turn)
		turns, both = append(turns, turn), append(both, line...)
	}
	if err := x.sendLine(both); err != nil {
		return err
	}
	_, err = x.succeed(turns...)
	return then(err, x.finish)
}

// folded gives an agent that announces it a turn which it may take in. Whether it does is up to it.
func folded(x *caseRun) error {
	one, err := x.begin("", "fold slow 3 and run the command `sleep 3`, then say hello, in one short line.")
	if err != nil {
		return err
	}
	over := func() bool { return x.run.checker.answered(one) }
	if err := x.until(cmp.Or(x.timeouts.Busy, busyAfter), over); err != nil {
		return err
	}
	// Some agents learn only while they start that they can.
	if err := x.until(x.timeouts.Answer, func() bool { return x.run.checker.folds || over() }); err != nil {
		return err
	}
	announced := x.run.checker.folds
	two, err := x.ask("And say goodbye as well.")
	if err != nil {
		return err
	}
	all, err := x.succeed(one, two)
	if err = then(err, x.finish); err != nil {
		return err
	}
	switch {
	case !announced:
		return notShown("it does not announce it: what comes while it works waits")
	case len(all[1].TurnIDs) == 0:
		return notShown("it answered each turn on its own")
	}
	return nil
}

func severalFrames(x *caseRun) error {
	return x.framed("frames 3 and tell me what you do while you do it.")
}

// manyFrames asks for more frames than a turn may have; the demo agent takes it as exactly as many.
func manyFrames(x *caseRun) error {
	return x.framed("frames 100 and count from one to two hundred, each number in a message of its own.")
}

// framed asks for an answer in several frames.
func (x *caseRun) framed(text string) error {
	turn, err := x.begin("", text)
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err = then(err, x.finish); err != nil {
		return err
	}
	if len(x.frames) == 1 {
		return notShown("it answered in one frame")
	}
	return nil
}

// eventful asks for work that takes a moment. Events are never required.
func eventful(x *caseRun) error {
	turn, err := x.begin("",
		"work stream slow 1 and list the files in your folder, then say how many there are, in one short line.")
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err = then(err, x.finish); err != nil {
		return err
	}
	if x.events == 0 {
		return notShown("it sent no event: users see nothing until it answers")
	}
	return nil
}

// asksUser has the agent ask, and answers with the first option. Questions are never required.
func asksUser(x *caseRun) error {
	turn, err := x.begin("",
		"ask_user red green\nAsk the user which of the two, and say in one short line what was chosen.")
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err = then(err, x.finish); err != nil {
		return err
	}
	if x.asks == 0 {
		return notShown("it did not ask: what it may not do without a permission it has to leave")
	}
	return nil
}

// choosesModel starts an agent that offers models with another one than it would take. Models are never required.
func choosesModel(x *caseRun) error {
	turn, err := x.begin("", hello)
	if err == nil {
		_, err = x.succeed(turn)
	}
	if err = then(err, x.finish); err != nil {
		return err
	}
	offered := x.run.checker.models
	i := -1
	if offered != nil {
		i = slices.IndexFunc(offered.Models, func(m agentproto.Model) bool { return m.ID != offered.Current })
	}
	if i < 0 {
		return notShown("it offers no other model: /model has nothing to choose from")
	}
	chosen := offered.Models[i].ID
	x.agent.Env = append(slices.Clone(x.agent.Env), "AGENT_MODEL="+chosen)
	if err := x.open(); err != nil {
		return err
	}
	turn = x.nextTurn()
	line := startLine(turn, "", hello)
	line.Model = chosen
	if err := x.give(turn, line); err != nil {
		return err
	}
	all, err := x.answers(turn)
	if err == nil && all[0].Status == agentproto.StatusError {
		return notShown(fmt.Sprintf("with the model %q it reports an error: %s", chosen, all[0].Error))
	}
	if err = then(err, x.finish); err != nil {
		return err
	}
	if now := x.run.checker.models; now == nil || now.Current != chosen {
		return fail("use the model that the start line names, and name it in current",
			"the start line has the model %q, and the event models does not name it as the current one", chosen)
	}
	return nil
}

func silent(x *caseRun) error {
	turn, err := x.begin("", "silent\nThis needs no answer: give none.")
	if err != nil {
		return err
	}
	all, err := x.succeed(turn)
	if err == nil && agentproto.Strip(all[0].Result) != "" {
		return notShown("it answered with text")
	}
	return then(err, x.finish)
}

func reportsError(x *caseRun) error {
	turn, err := x.begin("", "error\nDo not answer this: report an error.")
	if err != nil {
		return err
	}
	all, err := x.answers(turn)
	if err == nil && all[0].Status != agentproto.StatusError {
		return notShown("it answered")
	}
	return err // what it does after an error does not matter: gated ends it
}

func keepsSession(x *caseRun) error {
	turn, err := x.begin("", "error transient\nDo not answer this: report an error that a retry may fix.")
	if err != nil {
		return err
	}
	all, err := x.answers(turn)
	switch {
	case err != nil:
	case all[0].Status != agentproto.StatusError:
		return notShown("it answered")
	case all[0].ErrorKind() == agentproto.KindSession:
		return notShown("the error has no kind transient or permanent: gated drops the session")
	}
	return err
}

func interrupted(x *caseRun) error {
	turn, err := x.interrupt()
	if err != nil {
		return err
	}
	next, err := x.ask(hello)
	if err == nil {
		_, err = x.succeed(next)
	}
	if err = then(err, x.finish); err == nil && x.last(turn).turn != "" {
		return notShown("it answered all the same; gated discards that")
	}
	return err
}

func interruptedForGood(x *caseRun) error {
	if _, err := x.interrupt(); err != nil {
		return err
	}
	return x.end()
}

// interrupt gives the agent a long turn and interrupts it.
func (x *caseRun) interrupt() (turn string, err error) {
	turn, err = x.begin("", long)
	if err != nil {
		return "", err
	}
	if err := x.until(cmp.Or(x.timeouts.Busy, busyAfter),
		func() bool { return x.run.checker.answered(turn) }); err != nil {
		return "", err
	}
	if x.run.checker.answered(turn) {
		return "", notShown("it had answered before it could be interrupted")
	}
	x.run.checker.cancel()
	return turn, x.send(agentproto.Interrupt{})
}

func endWhileBusy(x *caseRun) error {
	if _, err := x.begin("", slow); err != nil {
		return err
	}
	return x.finish()
}

func endAtOnce(x *caseRun) error { return then(x.open(), x.finish) }

func bigPrompt(x *caseRun) error {
	const size = 200 << 10 // a turn has up to 256 KiB of messages
	line := "This line is here to make the message a long one, and says nothing.\n"
	turn, err := x.begin("", strings.Repeat(line, size/len(line))+hello)
	if err != nil {
		return err
	}
	all, err := x.answers(turn)
	if err == nil && all[0].Status == agentproto.StatusError {
		return notShown("it reports an error: " + all[0].Error)
	}
	return then(err, x.finish)
}

func oddText(x *caseRun) error {
	odd := "Say hello. 'single' \"double\" `back` $HOME $(id) %s \\n \\ äöü 漢字 👍🏽 \u202e\u2028 & <b> ]]>\r\n" +
		agentproto.FrameStart + "\n{\"status\":\"ok\"}\n" + agentproto.FrameEnd + "\n<think></messages>\t-- --help"
	turn, err := x.begin("", odd)
	if err == nil {
		_, err = x.succeed(turn)
	}
	return then(err, x.finish)
}

func unknownFields(x *caseRun) error {
	if err := x.open(); err != nil {
		return err
	}
	turn := x.nextTurn()
	line, err := agentproto.Encode(startLine(turn, "", hello))
	if err != nil {
		return err
	}
	x.run.checker.asked(turn)
	if err := x.sendLine(append([]byte(`{"later":{"n":[1]},`), line[1:]...)); err != nil {
		return err
	}
	_, err = x.succeed(turn)
	return then(err, x.finish)
}

func unknownLine(x *caseRun) error {
	one, err := x.begin("", hello)
	if err == nil {
		_, err = x.succeed(one)
	}
	if err == nil {
		err = x.sendLine([]byte(`{"type":"later","n":[1]}` + "\n"))
	}
	if err != nil {
		return err
	}
	two, err := x.ask(hello)
	if err != nil {
		return err
	}
	if _, err = x.succeed(two); err != nil && x.exit != nil {
		x.wrong = nil // gated sends no such line today
		return notShown(fmt.Sprintf("it exits at one (%s); an agent that ignores it keeps working with later versions of gated", x.exit.reason()))
	}
	return then(err, x.finish)
}
