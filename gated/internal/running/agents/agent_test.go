package agents

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"arizuko/gated/internal/running/runtime/enter"
	"arizuko/pkg/agentproto"
)

// asAgent are settings that make the test binary the agent of the tests, one
// that does not wait a second at its exit for the race detector's sake.
func asAgent() map[string]string {
	return map[string]string{"ARIZUKO_TEST_AGENT": "1", "GORACE": "atexit_sleep_ms=0"}
}

// inputsFile is where that agent writes, in the group's folder, each line of its
// input after its process id.
const inputsFile = "inputs.log"

func TestMain(m *testing.M) {
	enter.Intercept(os.Environ())
	if os.Getenv("ARIZUKO_TEST_AGENT") != "" {
		newScripted().serve()
		return
	}
	goleak.VerifyTestMain(m)
}

// scripted is an agent that does what the last message of each turn says. A
// text that begins with "!" is a list of orders with ";" between them, see
// obey; every other text is answered with "re: " and the texts of the turn.
type scripted struct {
	noting      sync.Mutex // held while a line of input is noted: a process that exits writes a part of it
	inputs      chan agentproto.Input
	interrupted chan struct{}
	eof         chan struct{}
	folded      []string // turns that the one at work took in
	session     string   // for the next frame
	kind        agentproto.Kind
	retryAfter  float64
}

func newScripted() *scripted {
	a := &scripted{inputs: make(chan agentproto.Input, 100), interrupted: make(chan struct{}), eof: make(chan struct{})}
	go a.read()
	return a
}

func (a *scripted) read() {
	notes, err := os.OpenFile(inputsFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(err)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			close(a.eof)
			close(a.inputs)
			return
		}
		a.noting.Lock()
		_, err = fmt.Fprintf(notes, "%d %s", os.Getpid(), line)
		a.noting.Unlock()
		check(err)
		input, err := agentproto.ReadInput([]byte(line))
		check(err)
		if input == (agentproto.Interrupt{}) {
			close(a.interrupted)
		}
		a.inputs <- input
	}
}

func (a *scripted) serve() {
	for in := range a.inputs {
		switch in := in.(type) {
		case agentproto.Start:
			a.turn(in.TurnID, in.Prompt)
		case agentproto.Message:
			a.turn(in.TurnID, in.Prompt)
		}
	}
}

func (a *scripted) turn(id, text string) {
	p := parsePrompt(text)
	last := p.Messages[len(p.Messages)-1].Text
	orders, isScript := strings.CutPrefix(last, "!")
	if !isScript {
		var all []string
		for _, m := range p.Messages {
			all = append(all, m.Text)
		}
		orders = "say re: " + strings.Join(all, " | ")
	}
	for order := range strings.SplitSeq(orders, ";") {
		a.obey(id, strings.TrimSpace(order))
	}
}

// obey carries out one order: a word and its argument.
func (a *scripted) obey(turn, order string) {
	word, rest, _ := strings.Cut(order, " ")
	switch word {
	case "say": // the answer
		a.frame(agentproto.Frame{Status: agentproto.StatusOK, Result: rest, TurnID: turn})
	case "more": // a part of it
		a.frame(agentproto.Frame{Status: agentproto.StatusOK, Result: rest, TurnID: turn, Final: new(bool)})
	case "anon": // the answer, without a turnId
		a.frame(agentproto.Frame{Status: agentproto.StatusOK, Result: rest})
	case "as": // the answer to another turn
		id, text, _ := strings.Cut(rest, " ")
		a.frame(agentproto.Frame{Status: agentproto.StatusOK, Result: text, TurnID: id})
	case "take": // so many turns in, as parts of this one
		n, err := strconv.Atoi(rest)
		check(err)
		for range n {
			next := (<-a.inputs).(agentproto.Message)
			a.folded = append(a.folded, next.TurnID)
			check(agentproto.WriteEvent(os.Stdout, agentproto.Event{TurnID: next.TurnID, Status: agentproto.StatusRunning}))
		}
	case "sayall", "moreall": // the answer, or a part of it, to this turn and those that it took in
		f := agentproto.Frame{Status: agentproto.StatusOK, Result: rest, TurnIDs: append(slices.Clone(a.folded), turn)}
		if word == "moreall" {
			f.Final = new(bool)
		}
		a.frame(f)
	case "event": // in JSON
		fmt.Printf("%s %s\n", agentproto.EventMark, rest)
	case "ask": // the fields of a question in JSON; then the answer says what was chosen
		fmt.Printf("%s {\"type\":\"ask\",\"turnId\":%q,%s}\n", agentproto.EventMark, turn, rest)
		for in := range a.inputs {
			if answer, ok := in.(agentproto.Answer); ok {
				text := fmt.Sprintf("%s: %q %s by %q for %q %s", answer.AskID, answer.Option, answer.Reason, answer.By, answer.PayloadHash, answer.Problem)
				a.frame(agentproto.Frame{Status: agentproto.StatusOK, Result: strings.TrimSpace(text), TurnID: turn})
				return
			}
		}
	case "error":
		a.frame(agentproto.Frame{Status: agentproto.StatusError, Error: rest, TurnID: turn})
	case "errornext": // of the turn after this
		next := (<-a.inputs).(agentproto.Message)
		a.frame(agentproto.Frame{Status: agentproto.StatusError, Error: "cannot do this one", TurnID: next.TurnID})
		<-a.eof
		os.Exit(0)
	case "partial": // an answer that is only a part
		a.frame(agentproto.Frame{Status: agentproto.StatusError, Error: "ran out of time", Result: rest, TurnID: turn})
	case "kind": // of the next error, and the seconds to its retry
		kind, seconds, _ := strings.Cut(rest, " ")
		a.kind = agentproto.Kind(kind)
		a.retryAfter, _ = strconv.ParseFloat(seconds, 64)
	case "anonerror":
		a.frame(agentproto.Frame{Status: agentproto.StatusError, Error: rest})
	case "session": // named in the next frame
		a.session = rest
	case "print": // as a Go string
		text, err := strconv.Unquote(rest)
		check(err)
		fmt.Print(text)
	case "long": // an answer of so many bytes
		n, err := strconv.Atoi(rest)
		check(err)
		fmt.Print(jsonFrame(strings.Repeat("x", n)))
	case "longmore": // a part of so many bytes
		n, err := strconv.Atoi(rest)
		check(err)
		fmt.Print(rawFrame(`{"status":"ok","final":false,"result":"` + strings.Repeat("<", n) + `"}`))
	case "flood": // 16 MiB of noise
		out := map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[rest]
		for range 1 << 8 {
			_, _ = out.WriteString(strings.Repeat(strings.Repeat("x", 1023)+"\n", 64))
		}
	case "hold": // until the test opens that pipe, and then the next one
		for name := range strings.FieldsSeq(rest) {
			gate, err := os.Open(name)
			check(err)
			_ = gate.Close()
		}
	case "forever": // that order, with room for other processes
		for {
			a.obey(turn, rest+" x")
			<-time.After(time.Millisecond)
		}
	case "until": // that event on stdin
		<-map[string]chan struct{}{"interrupt": a.interrupted, "eof": a.eof}[rest]
	case "once": // in one attempt only
		if err := os.Mkdir("once-"+turn+"-"+strings.ReplaceAll(rest, " ", "-"), 0o700); err == nil {
			a.obey(turn, rest)
		}
	case "ignore-term": // to SIGTERM
		signal.Ignore(syscall.SIGTERM)
	case "exit":
		code, err := strconv.Atoi(rest)
		check(err)
		a.noting.Lock()
		os.Exit(code)
	default:
		check(fmt.Errorf("unknown order %q", order))
	}
}

func (a *scripted) frame(f agentproto.Frame) {
	f.NewSessionID, a.session = a.session, ""
	if f.Status == agentproto.StatusError {
		f.Kind, f.RetryAfter = a.kind, a.retryAfter
	}
	check(agentproto.WriteFrame(os.Stdout, f))
}

// check ends the agent with an error on stderr.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
}

// promptXML is a parsed prompt.
type promptXML struct {
	System []struct {
		Origin string `xml:"origin,attr"`
		Event  string `xml:"event,attr"`
		Body   string `xml:",chardata"`
	} `xml:"system"`
	Turn struct {
		Kind  string `xml:"kind,attr"`
		Title string `xml:"title,attr"`
	} `xml:"turn"`
	Window   string `xml:"channel_context"`
	Observed struct {
		LeftOut int      `xml:"left_out,attr"`
		Rows    []rowXML `xml:"message"`
	} `xml:"observed"`
	ReplyChain []rowXML `xml:"reply_chain>message"`
	Messages   []rowXML `xml:"messages>message"`
}

type rowXML struct {
	ID          int64  `xml:"id,attr"`
	Operator    string `xml:"operator,attr"`
	ReplyTo     int64  `xml:"reply_to,attr"`
	Text        string `xml:",chardata"`
	Attachments []struct {
		Path  string `xml:"path,attr"`
		Error string `xml:"error,attr"`
	} `xml:"attachment"`
}

func parsePrompt(text string) (p promptXML) {
	check(xml.Unmarshal([]byte("<prompt>"+text+"</prompt>"), &p))
	return p
}

func texts(rows []rowXML) (all []string) {
	for _, row := range rows {
		all = append(all, row.Text)
	}
	return all
}
