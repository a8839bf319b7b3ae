package runtime

import (
	"strings"
	"testing"

	"arizuko/pkg/testkit/gobuild"
)

// attackerImage is the image of the attacker.
const attackerImage = "attacker:1"

// buildAttacker makes the agent that tries to get out; static, so that it runs
// in an image of its own.
func buildAttacker(t testing.TB) string {
	t.Helper()
	return gobuild.Program(t, gobuild.Options{Static: true}, "arizuko/pkg/testkit/fakes/cmd/attacker")
}

// testRuntime is a runtime under test.
type testRuntime struct {
	runtime Runtime
	change  func(*Spec)
}

// agentRun is a run of the attacker.
type agentRun struct {
	t testing.TB
	p *Proc
}

// start starts an agent, in docker until it answers unless the machine is not to
// blame: a busy engine starts a container now and then without its files.
func (w testRuntime) start(t testing.TB, spec Spec) agentRun {
	t.Helper()
	c := w.launch(t, spec)
	if _, inDocker := w.runtime.(Docker); !inDocker {
		return c
	}
	for range maxStarts {
		if err := c.p.Send([]byte("env LANG\n")); err != nil {
			t.Fatal(err)
		}
		ev := next(t, c.p)
		if ev.Frame != nil {
			return c
		}
		if ev.Exit == nil || ClassOf(ev.Exit.Err) != ClassMachine {
			t.Fatalf("%+v, exit %+v", ev, ev.Exit)
		}
		t.Log(ev.Exit.Err)
		c = w.launch(t, spec)
	}
	return c
}

// launch starts an agent.
func (w testRuntime) launch(t testing.TB, spec Spec) agentRun {
	t.Helper()
	w.change(&spec)
	p, err := w.runtime.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(0)
		for range p.Events() {
		}
	})
	return agentRun{t, p}
}

// maxStarts is how many starts of an agent may fail.
const maxStarts = 10

// ask gives an order and returns the answer.
func (c agentRun) ask(order string) string {
	c.t.Helper()
	if err := c.p.Send([]byte(order + "\n")); err != nil {
		c.t.Fatalf("%s: %v", order, err)
	}
	ev := next(c.t, c.p)
	if ev.Frame == nil {
		c.t.Fatalf("%s: %+v, exit %+v", order, ev, ev.Exit)
	}
	return ev.Frame.Result
}

func (c agentRun) refused(orders ...string) {
	c.t.Helper()
	for _, order := range orders {
		if answer := c.ask(order); !strings.HasPrefix(answer, "no ") {
			c.t.Errorf("%s: %.200q", order, answer)
		}
	}
}

func (c agentRun) allowed(orders map[string]string) {
	c.t.Helper()
	for order, want := range orders {
		if answer := c.ask(order); answer != "ok "+want {
			c.t.Errorf("%s: %.200q, want ok %q", order, answer, want)
		}
	}
}

// finish closes the input and returns the exit.
func (c agentRun) finish() Exit {
	c.t.Helper()
	c.p.CloseInput()
	_, _, exit := finish(c.t, c.p)
	return exit
}
