package agentproto_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"arizuko/pkg/agentproto"
)

func question() agentproto.Ask {
	return agentproto.Ask{ID: "q", Question: "Run `rm`?", Detail: "rm -r x\n", Options: []string{"Allow once", "Deny"}, PayloadHash: "sha256:1"}
}

func TestAsk_WrittenAndScanned_StaysTheSame(t *testing.T) {
	var out strings.Builder
	ask := question()
	if err := agentproto.WriteEvent(&out, agentproto.Event{TurnID: "7", Ask: &ask}); err != nil {
		t.Fatal(err)
	}
	got, err := agentproto.NewScanner(strings.NewReader(out.String()), io.Discard).Next()
	if diff := cmp.Diff(agentproto.Output{Event: &agentproto.Event{TurnID: "7", Ask: &ask}}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAsk_ReadEvent_RefusesOnlyWhatCannotBeAnswered(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"ask","askId":"a"}`:                                       "",
		`{"type":"ask","ask":{"askId":"a","options":["x"," y  z "]}}`:      "",
		`{"type":"ask","askId":""}`:                                        "askId must have 1 to 128 bytes",
		`{"type":"ask","askId":"` + strings.Repeat("a", 129) + `"}`:        "askId must have 1 to 128 bytes",
		`{"type":"ask","askId":"a","options":"none"}`:                      "cannot unmarshal",
		`{"type":"ask","askId":"a","question":"b","options":[1,"a",null]}`: "cannot unmarshal",
	} {
		e, err := agentproto.ReadEvent([]byte(agentproto.EventMark + " " + line))
		if want == "" && (err != nil || e.Ask == nil || e.Ask.ID != "a") {
			t.Errorf("%s: %+v, %v", line, e, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %s", line, err, want)
		}
		if strings.Contains(line, "y  z") && !cmp.Equal(e.Ask.Options, []string{"x", "y z"}) {
			t.Errorf("options %q", e.Ask.Options)
		}
	}
}

func TestAsk_Check_NamesTheProblem(t *testing.T) {
	for want, change := range map[string]func(*agentproto.Ask){
		"the question is empty":                                  func(a *agentproto.Ask) { a.Question = "" },
		"a question has 2 to 10 options, not 1":                  func(a *agentproto.Ask) { a.Options = a.Options[:1] },
		"a question has 2 to 10 options, not 11":                 func(a *agentproto.Ask) { a.Options = strings.Split("abcdefghijk", "") },
		"option 2 is empty":                                      func(a *agentproto.Ask) { a.Options[1] = "" },
		"option 2 is the same as another one":                    func(a *agentproto.Ask) { a.Options[1] = a.Options[0] },
		"option 1 has more than 60 characters":                   func(a *agentproto.Ask) { a.Options[0] = strings.Repeat("é", 61) },
		"only a permission request has an option that allows it": func(a *agentproto.Ask) { a.PayloadHash, a.Allow = "", a.Options[0] },
		"the option that allows it is none of the options":       func(a *agentproto.Ask) { a.PayloadHash, a.Allow = "h", "Allow" },
		"the payload hash has more than 128 bytes":               func(a *agentproto.Ask) { a.PayloadHash = strings.Repeat("0", 129) },
	} {
		a := question()
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		change(&a)
		if err := a.Check(); err == nil || err.Error() != want {
			t.Errorf("problem %v, want %s", err, want)
		}
	}
}

func TestServe_Ask_WaitsForItsOwnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, agentproto.Agent{Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
			a, err := turn.Ask(ctx, question())
			return agentproto.Reply{Text: a.Option + " " + string(a.Reason) + " " + a.By}, err
		}})
		s.send(agentproto.Start{TurnID: "1"}) // returns once the question is asked
		s.send(agentproto.Answer{TurnID: "1", AskID: "other", Option: "Deny"},
			agentproto.Answer{TurnID: "2", AskID: "q", Option: "Deny"},
			agentproto.Answer{TurnID: "1", AskID: "q", Option: "Allow once", Reason: agentproto.AskAnswered, By: "telegram:1"})
		s.want(nil, ok("1", "Allow once answered telegram:1", ""))
		if n := strings.Count(s.log.String(), "which does not wait for one"); n != 2 {
			t.Errorf("logged:\n%s", s.log.String())
		}
	})
}

func TestServe_Ask_EndOfInputOrInterrupt_EndsTheWait(t *testing.T) {
	for name, end := range map[string]func(*run){
		"end of input": func(s *run) { s.want(nil, ok("1", "refused", "")) },
		"interrupt":    func(s *run) { s.send(agentproto.Interrupt{}); s.want(nil) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var failed error
			s := start(t, agentproto.Agent{Answer: func(ctx context.Context, turn *agentproto.Turn) (agentproto.Reply, error) {
				a, err := turn.Ask(ctx, question())
				failed = err
				return agentproto.Reply{Text: string(a.Reason)}, err
			}})
			s.send(agentproto.Start{TurnID: "1"})
			end(s)
			if interrupted := errors.Is(failed, agentproto.ErrInterrupted); interrupted != (name == "interrupt") {
				t.Errorf("%s: error %v", name, failed)
			}
		})
	}
}
