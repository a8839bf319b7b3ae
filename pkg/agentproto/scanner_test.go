package agentproto

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// framed puts body between delimiters.
func framed(body string) string { return FrameStart + "\n" + body + "\n" + FrameEnd + "\n" }

// scan reads everything; a malformed frame is listed by its reason.
func scan(t *testing.T, r io.Reader, discard io.Writer) (frames []Frame, broken []*Malformed) {
	t.Helper()
	s := NewScanner(r, discard)
	for {
		f, err := s.NextFrame()
		var bad *Malformed
		switch {
		case err == nil:
			frames = append(frames, f)
		case errors.As(err, &bad):
			broken = append(broken, bad)
		case err == io.EOF:
			return frames, broken
		default:
			t.Fatal(err)
		}
	}
}

func TestScanner(t *testing.T) {
	ok := func(result string) Frame { return Frame{Status: StatusOK, Result: result} }
	body := `{"status":"ok","result":"hi"}`
	tests := []struct {
		name       string
		in         string
		want       []Frame
		wantBroken []string // parts of the reasons
		wantLog    string
	}{
		{name: "nothing"},
		{name: "one frame", in: framed(body), want: []Frame{ok("hi")}},
		{name: "log around", in: "a\n" + framed(body) + "b", want: []Frame{ok("hi")}, wantLog: "a\nb"},
		{name: "two frames", in: framed(body) + framed(body), want: []Frame{ok("hi"), ok("hi")}},
		{name: "crlf", in: strings.ReplaceAll(framed(body), "\n", "\r\n"), want: []Frame{ok("hi")}},
		{name: "no newline after the end", in: strings.TrimSuffix(framed(body), "\n"), want: []Frame{ok("hi")}},
		{name: "body over several lines", in: framed("{\"status\":\n\n\"ok\",\n\"result\":\"hi\"\n}"), want: []Frame{ok("hi")}},
		{
			name: "all fields, and unknown ones",
			in:   framed(`{"status":"error","result":"r","newSessionId":"s","error":"e","turnId":"9","final":false,"cost":1}`),
			want: []Frame{{Status: StatusError, Result: "r", NewSessionID: "s", Error: "e", TurnID: "9", Final: new(bool)}},
		},
		{
			name: "kind and delay of a failure",
			in:   framed(`{"status":"error","error":"e","kind":"transient","retry_after":2.5}`),
			want: []Frame{{Status: StatusError, Error: "e", Kind: KindTransient, RetryAfter: 2.5}},
		},
		{
			name: "unknown kind is kept, without NUL",
			in:   framed(`{"status":"error","kind":"la\u0000ter","retry_after":-1}`),
			want: []Frame{{Status: StatusError, Kind: "later", RetryAfter: -1}},
		},
		{name: "delay that is not a number", in: framed(`{"status":"error","retry_after":"5"}`), wantBroken: []string{"cannot unmarshal string"}},
		{name: "null fields", in: framed(`{"status":"ok","result":null,"final":null,"kind":null,"retry_after":null}`), want: []Frame{ok("")}},
		{name: "delimiters inside the text", in: framed(`{"status":"ok","result":"\n` + FrameEnd + `\n` + FrameStart + `\n"}`),
			want: []Frame{ok("\n" + FrameEnd + "\n" + FrameStart + "\n")}},
		{name: "invalid text", in: framed("{\"status\":\"ok\",\"result\":\"a\xff\\u0000\\ud800b\"}"), want: []Frame{ok("a\ufffd\ufffdb")}},

		{name: "indented delimiter is log", in: " " + FrameStart + "\n", wantLog: " " + FrameStart + "\n"},
		{name: "delimiter after text is log", in: "x" + FrameStart + "\n", wantLog: "x" + FrameStart + "\n"},
		{name: "end without start is log", in: FrameEnd + "\n", wantLog: FrameEnd + "\n"},
		{name: "not json", in: framed("hello") + framed(body), want: []Frame{ok("hi")}, wantBroken: []string{"invalid character"}},
		{name: "empty body", in: framed(""), wantBroken: []string{"unexpected end"}},
		{name: "two values", in: framed(body + body), wantBroken: []string{"after top-level value"}},
		{name: "not an object", in: framed("[]"), wantBroken: []string{"cannot unmarshal array"}},
		{name: "null", in: framed("null"), wantBroken: []string{`status is ""`}},
		{name: "unknown status", in: framed(`{"status":"done"}`), wantBroken: []string{`status is "done"`}},
		{name: "deep nesting", in: framed(strings.Repeat("[", 20000)), wantBroken: []string{"exceeded max depth"}},
		{name: "start inside a frame", in: FrameStart + "\n{\n" + framed(body), want: []Frame{ok("hi")}, wantBroken: []string{"second frame"}},
		{name: "cut off", in: framed(body) + FrameStart + "\n{\"sta", want: []Frame{ok("hi")}, wantBroken: []string{"ended inside"}},
		{name: "cut off at once", in: FrameStart, wantBroken: []string{"ended inside"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			frames, broken := scan(t, strings.NewReader(tt.in), &log)
			if diff := cmp.Diff(tt.want, frames); diff != "" {
				t.Errorf("frames (-want +got):\n%s", diff)
			}
			if len(broken) != len(tt.wantBroken) {
				t.Fatalf("broken frames %v, want %q", broken, tt.wantBroken)
			}
			for i, want := range tt.wantBroken {
				if !strings.Contains(broken[i].Reason, want) {
					t.Errorf("reason %q, want %q", broken[i].Reason, want)
				}
			}
			if log.String() != tt.wantLog {
				t.Errorf("log %q, want %q", log.String(), tt.wantLog)
			}
		})
	}
}

func TestScanner_MalformedFrame_NamesItsTurn(t *testing.T) {
	for _, body := range []string{`{"status":"done","turnId":"7"}`, `{"result":5,"status":"ok","turnId":"7"}`} {
		_, broken := scan(t, strings.NewReader(framed(body)), io.Discard)
		if len(broken) != 1 || broken[0].TurnID != "7" || broken[0].Excerpt != body+"\n" {
			t.Errorf("%s: %+v", body, broken)
		}
	}
}

func TestScannerFrameSize(t *testing.T) {
	wrap := len(`{"status":"ok","result":""}` + "\n")
	for _, tt := range []struct {
		text  int // bytes
		lines bool
		fits  bool
	}{
		{MaxFrame - wrap, false, true},
		{MaxFrame - wrap + 1, false, false},
		{4 * MaxFrame, false, false},
		{4 * MaxFrame, true, false},
	} {
		filler := strings.Repeat("x", tt.text)
		if tt.lines {
			filler = strings.Repeat("x\n", tt.text/2)
		}
		in := framed(`{"status":"ok","result":"`+filler+`"}`) + framed(`{"status":"ok","result":"next"}`)
		frames, broken := scan(t, strings.NewReader(in), io.Discard)
		switch {
		case tt.fits && (len(frames) != 2 || len(broken) != 0):
			t.Errorf("%d bytes: %d frames, broken %v", tt.text, len(frames), broken)
		case !tt.fits && (len(frames) != 1 || len(broken) != 1 || !strings.Contains(broken[0].Reason, "larger")):
			t.Errorf("%d bytes: %d frames, broken %v", tt.text, len(frames), broken)
		case frames[len(frames)-1].Result != "next":
			t.Errorf("%d bytes: the frame after it was lost", tt.text)
		case !tt.fits && len(broken[0].Excerpt) > 200:
			t.Errorf("excerpt of %d bytes", len(broken[0].Excerpt))
		}
	}
}

// flood returns n bytes without a newline.
func flood(n int64) io.Reader { return io.LimitReader(constant('x'), n) }

type constant byte

func (c constant) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

func TestScannerMemoryIsBounded(t *testing.T) {
	const size = 64 << 20
	perRun := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			in := io.MultiReader(flood(size), strings.NewReader("\n"+FrameStart+"\n"), flood(size))
			s := NewScanner(in, io.Discard)
			if _, err := s.NextFrame(); err == nil || err == io.EOF {
				b.Fatalf("error %v, want a malformed frame", err)
			}
		}
	}).AllocedBytesPerOp()
	// A growing slice allocates a small multiple of its final size.
	if perRun > 8*MaxFrame {
		t.Errorf("%d bytes allocated for a flood of %d", perRun, 2*size)
	}
}

func TestScanner_ReadError_IsReturned(t *testing.T) {
	cut := errors.New("cut")
	s := NewScanner(io.MultiReader(strings.NewReader(FrameStart+"\n{"), iotest.ErrReader(cut)), io.Discard)
	var bad *Malformed
	if _, err := s.NextFrame(); !errors.As(err, &bad) {
		t.Errorf("first error %v, want the open frame", err)
	}
	if _, err := s.NextFrame(); err != cut {
		t.Errorf("second error %v, want the reader's", err)
	}
}

func TestScanner_DiscardFails_ReadsOn(t *testing.T) {
	r, w := io.Pipe()
	_ = r.Close()
	frames, _ := scan(t, strings.NewReader("log\n"+framed(`{"status":"ok"}`)), w)
	if len(frames) != 1 {
		t.Errorf("%d frames after a failed discard", len(frames))
	}
}

func TestWriteFrame(t *testing.T) {
	more := Frame{Status: StatusOK, Result: "<b> & \n" + FrameEnd + "\n", NewSessionID: "s", TurnID: "3", Final: new(bool)}
	var out countingWriter
	out.WriteString("unfinished line")
	if err := WriteFrame(&out, more); err != nil {
		t.Fatal(err)
	}
	if out.writes != 1 {
		t.Errorf("%d writes, want 1", out.writes)
	}
	frames, broken := scan(t, &out, io.Discard)
	if diff := cmp.Diff([]Frame{more}, frames); diff != "" || len(broken) > 0 {
		t.Errorf("broken %v, frames (-want +got):\n%s", broken, diff)
	}
	if !frames[0].More() || (Frame{}).More() {
		t.Error("More must be true for final:false alone")
	}
	if err := WriteFrame(io.Discard, Frame{Result: strings.Repeat("x", MaxFrame)}); err == nil {
		t.Error("a frame over the limit was written")
	}
}

type countingWriter struct {
	bytes.Buffer
	writes int
}

func (w *countingWriter) Write(b []byte) (int, error) {
	w.writes++
	return w.Buffer.Write(b)
}

// FuzzScanner checks that, whatever an agent prints and however the pipe splits it, all
// strings are valid UTF-8 without NUL and valid frames after it are still read.
func FuzzScanner(f *testing.F) {
	f.Add([]byte(framed(`{"status":"ok","result":"hi"}`)), uint64(1))
	f.Add([]byte(FrameStart+"\r\n"+FrameStart+"\n\x00\xff"), uint64(2))
	f.Add([]byte(framed(`{"status":"ok","result":"\u0000\ud800"}`)+FrameEnd), uint64(3))
	f.Fuzz(func(t *testing.T, out []byte, seed uint64) {
		whole := append(bytes.Clone(out), []byte("\n"+framed(`{"status":"ok","result":"last"}`))...)
		cuts := rand.New(rand.NewPCG(seed, 0))
		frames, broken := scan(t, &choppyReader{whole, cuts}, io.Discard)
		again, brokenAgain := scan(t, bytes.NewReader(whole), io.Discard)
		if !cmp.Equal(frames, again) || !cmp.Equal(broken, brokenAgain) {
			t.Fatalf("splitting the output changed the frames")
		}
		if len(frames) == 0 || frames[len(frames)-1].Result != "last" {
			t.Fatalf("valid frame lost after %q", out)
		}
		for _, fr := range frames {
			text := fr.Status + fr.Result + fr.NewSessionID + fr.Error + fr.TurnID
			if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				t.Fatalf("invalid text in %+v", fr)
			}
		}
		for _, bad := range broken {
			if !utf8.ValidString(bad.Excerpt) || len(bad.Excerpt) > 200 {
				t.Fatalf("bad excerpt %q", bad.Excerpt)
			}
		}
	})
}

type choppyReader struct {
	rest []byte
	cuts *rand.Rand
}

func (c *choppyReader) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:1+c.cuts.IntN(len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

// events reads all events and all discarded lines.
func events(t *testing.T, in string) (all []Event, discarded string) {
	t.Helper()
	var log bytes.Buffer
	s := NewScanner(iotest.HalfReader(strings.NewReader(in)), &log)
	for {
		out, err := s.Next()
		if err == io.EOF {
			return all, log.String()
		}
		if err != nil || out.Event == nil {
			t.Fatalf("%+v, %v", out, err)
		}
		all = append(all, *out.Event)
	}
}

func TestScanner_Events(t *testing.T) {
	long := strings.Repeat("a", 3*lineBuffer)
	tests := []struct {
		name, in string
		want     []Event
	}{
		{"status", `{"turnId":"7","type":"status","status":"idle","later":1}`, []Event{{TurnID: "7", Status: StatusIdle}}},
		{"text", `{"type":"text","text":"hel\u0000lo"}`, []Event{{Text: new("hello")}}},
		{"no text yet", `{"type":"text","text":""}`, []Event{{Text: new("")}}},
		{"text of several pieces", `{"type":"text","text":"` + long + `"}`, []Event{{Text: new(long)}}},
		{"tool", `{"type":"tool","id":"1","title":" a\nb ","kind":"read","status":"running"}`,
			[]Event{{Tool: &Tool{ID: "1", Title: "a b", Kind: "read", Status: ToolRunning}}}},
		{"input of a tool", `{"type":"tool","id":"1","status":"done","input":" ls\n-l ` + strings.Repeat("x", MaxInput) + `"}`,
			[]Event{{Tool: &Tool{ID: "1", Status: ToolDone, Input: "ls -l " + strings.Repeat("x", MaxInput-6)}}}},
		{"tool as an object", `{"type":"tool","tool":{"id":"1","status":"failed"}}`, []Event{{Tool: &Tool{ID: "1", Status: ToolFailed}}}},
		{"plan", `{"type":"plan","entries":[{"content":"a","status":"completed"},{"content":"b","status":"later"}]}`,
			[]Event{{Plan: &Plan{[]Step{{"a", StepCompleted}, {"b", StepPending}}}}}},
		{"long plan", `{"type":"plan","entries":[` + strings.Repeat(`{"content":"a"},`, 99) + `{"content":"b"}]}`,
			[]Event{{Plan: &Plan{slices.Repeat([]Step{{"a", StepPending}}, MaxSteps)}}}},
		{"usage", `{"type":"usage","input":5,"output":-1,"cost_usd":0.5}`, []Event{{Usage: &Usage{Input: 5, CostUSD: 0.5}}}},
		{"usage beyond belief", `{"type":"usage","input":9000000000000000000,"cost_usd":1e300}`, []Event{{Usage: &Usage{Input: maxTokens, CostUSD: maxCost}}}},
		{"features", `{"type":"features","turnId":"7","fold":true,"later":1}`, []Event{{Features: &Features{Fold: true}}}},
		{"long title", `{"type":"tool","id":"1","status":"done","title":"` + strings.Repeat("ä", 200) + `"}`,
			[]Event{{Tool: &Tool{ID: "1", Status: ToolDone, Title: strings.Repeat("ä", 100)}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, end := range []string{"", "\n", "\r\n"} {
				got, discarded := events(t, EventMark+" "+tt.in+end)
				if diff := cmp.Diff(tt.want, got); diff != "" || discarded != "" {
					t.Errorf("discarded %q, (-want +got):\n%s", discarded, diff)
				}
				var b bytes.Buffer
				for _, e := range got {
					if err := WriteEvent(&b, e); err != nil {
						t.Fatal(err)
					}
				}
				if again, _ := events(t, b.String()); !cmp.Equal(got, again) {
					t.Errorf("written and read again: %+v", again)
				}
			}
		})
	}
}

func TestScanner_NoEvent_IsDiscarded(t *testing.T) {
	for _, body := range []string{
		``, `hello`, `[]`, `{}`, `{"type":"later"}`, `{"type":"status"}`, `{"type":"status","status":"asleep"}`, `{"type":"text"}`,
		`{"type":"text","text":5}`, `{"type":"features","fold":1}`, `{"type":"tool","status":"done"}`, `{"type":"tool","id":"1"}`, `{"type":"plan","entries":5}`,
		`{"type":"tool","status":"done","id":"` + strings.Repeat("x", MaxToolID+1) + `"}`, `{"type":"usage","input":"5"}`, `{"type":"usage","cost_usd":1e999}`,
		`{"type":"text","text":"` + strings.Repeat("x", MaxEvent) + `"}`,
	} {
		in := EventMark + " " + body + "\n"
		got, discarded := events(t, in+"x"+in)
		if len(got) != 0 || discarded != in+"x"+in {
			t.Errorf("%.80q: %d events, %d of %d bytes are discarded", body, len(got), len(discarded), 2*len(in)+1)
		}
	}
}

func TestScanner_EventBetweenFrames(t *testing.T) {
	event := EventMark + ` {"type":"status","status":"running"}` + "\n"
	s := NewScanner(strings.NewReader(event+framed(`{"status":"ok","result":"a"}`)+event+FrameStart+"\n"+event+FrameEnd+"\n"), io.Discard)
	for i, isEvent := range []bool{true, false, true} {
		if out, err := s.Next(); err != nil || (out.Event != nil) != isEvent {
			t.Fatalf("%d: %+v, %v", i, out, err)
		}
	}
	var bad *Malformed
	if _, err := s.Next(); !errors.As(err, &bad) { // inside a frame it is a part of the frame
		t.Errorf("%v", err)
	}
}
