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
