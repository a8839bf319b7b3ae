package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"arizuko/pkg/agentproto"
)

func TestRun_AnswersEachLine(t *testing.T) {
	in := `{"type":"start","prompt":"<messages>\n<message id=\"1\">a</message>\n<message id=\"2\">b</message>"}` + "\n" +
		`{"type":"message","prompt":"<messages>\n<message id=\"3\">&lt;message id=</message>"}` + "\n" + "cut off"
	var out bytes.Buffer
	if err := run(strings.NewReader(in), &out, func() time.Time { return time.Unix(0, 42) }); err != nil {
		t.Fatal(err)
	}
	frames := agentproto.NewScanner(&out, io.Discard)
	for _, want := range []string{"42 2", "42 1"} {
		f, err := frames.NextFrame()
		if err != nil || f.Result != want || f.TurnID != "" {
			t.Errorf("frame %+v, error %v, want the result %q", f, err, want)
		}
	}
	if f, err := frames.NextFrame(); err != io.EOF {
		t.Errorf("then %+v, %v", f, err)
	}
}

func TestRun_ReturnsErrors(t *testing.T) {
	broken := errors.New("broken")
	if err := run(iotest.ErrReader(broken), io.Discard, time.Now); err != broken {
		t.Errorf("reading: %v", err)
	}
	r, w := io.Pipe()
	_ = r.Close()
	if err := run(strings.NewReader("x\n"), w, time.Now); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing: %v", err)
	}
}

func TestRun_Work_EventsThenTheAnswer(t *testing.T) {
	var out bytes.Buffer
	in := `{"type":"message","prompt":"<message id=\"3\">message 7: work 0.02s events 20</message>"}` + "\n"
	began := time.Now()
	if err := run(strings.NewReader(in), &out, func() time.Time { return time.Unix(0, 42) }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 20*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
	var texts, tools, plans, usages, longest int
	for outputs := agentproto.NewScanner(&out, io.Discard); ; {
		o, err := outputs.Next()
		if err != nil {
			t.Fatal(err)
		}
		if o.Frame != nil {
			break
		}
		switch e := o.Event; {
		case e.Text != nil:
			if len(*e.Text) <= longest {
				t.Errorf("a text of %d bytes after one of %d", len(*e.Text), longest)
			}
			texts, longest = texts+1, len(*e.Text)
		case e.Tool != nil:
			tools++
		case e.Plan != nil:
			plans++
		case e.Usage != nil:
			usages++
		}
	}
	if got := [4]int{texts, tools, plans, usages}; got != [4]int{14, 4, 1, 1} {
		t.Errorf("texts, tools, plans and usages: %v", got)
	}
}
