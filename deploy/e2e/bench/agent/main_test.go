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
		f, err := frames.Next()
		if err != nil || f.Result != want || f.TurnID != "" {
			t.Errorf("frame %+v, error %v, want the result %q", f, err, want)
		}
	}
	if f, err := frames.Next(); err != io.EOF {
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
