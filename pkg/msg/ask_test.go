package msg

import "testing"

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
