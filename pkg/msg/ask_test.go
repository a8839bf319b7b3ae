package msg

import (
	"strings"
	"testing"
)

func TestParseButtonData_ReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]Press{
		ButtonData(12, 3):     {Ask: 12, Option: 3},
		ButtonData(1<<62, 25): {Ask: 1 << 62, Option: 25},
		StopData(7):           {Stop: 7, Text: "Stop"},
		"":                    {}, "ask:": {}, "ask:1": {}, "ask:0:1": {}, "ask:1:0": {}, "ask:+1:1": {}, "ask:1:1:1": {},
		"stop:": {}, "stop:0": {}, "stop:-1": {}, "stop:+1": {}, "stop:01": {}, "stop:1:1": {}, "Stop:1": {},
	} {
		got, ok := ParseButtonData(data)
		if ok != (want != Press{}) || ok && got != want {
			t.Errorf("%q is %+v, %v", data, got, ok)
		}
		if again, named := ParsePress(got.JSON()); ok && (!named || again != got) {
			t.Errorf("the content of %q is read as %+v, %v", data, again, named)
		}
		if len(data) > 64 {
			t.Errorf("%q has %d bytes", data, len(data))
		}
	}
}

// Keyboards write numbers and white space in many ways. A lookalike of a number is none, and a text that may be several
// options is no answer.
func TestAsk_Typed_NumbersOfOtherKeyboards(t *testing.T) {
	t.Parallel()
	words, twins := &Ask{Options: []string{"Allow once", "Deny"}}, &Ask{Options: []string{"Yes", "YES", "n\u00a0o"}}
	wide := &Ask{Options: []string{"\uff12", "3"}} // a full-width 2
	for _, tt := range []struct {
		ask  *Ask
		text string
		want int
	}{
		{words, "\uff12", 2}, {words, "\u3000\uff12\uff0e\u3000", 2}, {words, "2)", 2}, {words, "2\uff09", 2}, {words, "\u0662", 2}, {words, "\u0968", 2},
		{words, "\u200b2\u200e", 2}, {words, "2\ufe0f\u20e3", 2}, {words, "\u2461", 2}, {words, "\u00a0Allow \u2003 once\n", 1}, {words, "\uff24eny", 2},
		{words, "1\u2026", 0}, {words, "1 2", 0}, {words, "12", 0}, {words, "-1", 0}, {words, "\u00bd", 0}, {words, "1?", 0}, {words, "1e0", 0}, {words, "\u200b", 0},
		{twins, "Yes", 1}, {twins, "YES", 2}, {twins, "yes", 0}, {twins, "3", 3}, {twins, "N o", 3},
		{wide, "2", 1}, {wide, "1", 0}, {wide, "\uff22", 2},
	} {
		if got, ok := tt.ask.Typed(tt.text); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%+q of %+q is %d, %v, want %d", tt.text, tt.ask.Options, got, ok, tt.want)
		}
	}
}

// A number that is an option is never taken for the place of another option.
func TestAsk_Typed_NumbersAsOptions(t *testing.T) {
	t.Parallel()
	words, numbers := &Ask{Options: []string{"Allow once", "Deny"}}, &Ask{Options: []string{"2", "3", "All of them"}}
	for _, tt := range []struct {
		ask  *Ask
		text string
		want int
	}{
		{words, " 2. ", 2}, {words, "allow ONCE", 1}, {words, "3", 0}, {words, "A", 0}, {words, "", 0}, {words, ".", 0}, {words, "+1", 0}, {words, "01", 0},
		{numbers, "2", 1}, {numbers, "3", 2}, {numbers, "1", 0}, {numbers, "b", 2}, {numbers, "C.", 3}, {numbers, "D", 0}, {numbers, "all of them", 3},
	} {
		if got, ok := tt.ask.Typed(tt.text); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%q of %q is %d, %v, want %d", tt.text, tt.ask.Options, got, ok, tt.want)
		}
	}
	if got, _ := numbers.Number("2"); got != 2 {
		t.Errorf("an adapter's 2 is %d", got)
	}
	if text := numbers.Text("Ann"); !strings.Contains(text, "\nA. 2\nB. 3\nC. All of them\n") || !strings.Contains(text, "reply with its letter") {
		t.Errorf("text %q", text)
	}
}
