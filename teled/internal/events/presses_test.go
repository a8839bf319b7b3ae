package events

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// press is an update with a press of a button under a message of the chat.
func press(update int, query, data string) string {
	return fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":%q,"from":{"id":7,"first_name":"Alice"},"data":%q,
		"message":{"message_id":3,"date":1764000000,"chat":{"id":-5,"type":"group"}}}}`, update, query, data)
}

// A press is stored before it is answered, and once if it comes twice. An answer that Telegram refuses ends nothing.
func TestListen_Presses_AreStoredAndAnswered(t *testing.T) {
	f := newFixture(t, press(11, "q1", "ask:5:1")+","+press(12, "q2", "ask:6:1"), press(11, "q1", "ask:5:1")+","+message(13, 4, "later"))
	f.run()
	f.expectStored("14", `{"ask":5,"option":1}`, `{"ask":6,"option":1}`, "later")
	const closed = " This question is closed. true"
	if diff := cmp.Diff([]string{"q1" + closed, "q2" + closed, "q1" + closed}, f.answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	// A press whose answer got lost comes again: the offset is stored after it.
	if diff := cmp.Diff([]string{"", "12", "13"}, f.cursors); diff != "" {
		t.Errorf("stored offsets when they are answered (-want +got):\n%s", diff)
	}
	if log := f.log.String(); !strings.Contains(log, "press not answered") || !strings.Contains(log, "duplicate event ignored") {
		t.Errorf("the log:\n%s", log)
	}
}

// A press that is none of teled's makes no row, and is answered: else Telegram shows its user a wait without an end.
func TestListen_OtherPress_IsAnswered(t *testing.T) {
	query := func(update int, fields string) string {
		return fmt.Sprintf(`{"update_id":%d,"callback_query":{"id":"q%[1]d","from":{"id":7,"first_name":"Alice"},%s}}`, update, fields)
	}
	const old = `"message":{"message_id":5,"date":0,"chat":{"id":-5,"type":"group"}}`
	f := newFixture(t, strings.Join([]string{
		query(1, `"data":"vote",`+old), query(2, `"game_short_name":"chess",`+old), query(3, `"inline_message_id":"AbC","data":"ask:5:1"`),
		query(4, `"data":"ask:5:01",`+old), query(5, `"data":"stop:0",`+old), query(6, `"data":"ask:5:1","message":{"message_id":0}`), query(7, `"data":"",`+old),
		press(8, "", "vote"), message(9, 4, "later"),
	}, ","))
	f.run()
	f.expectStored("10", "later")
	var want []string
	for update := 1; update <= 7; update++ {
		want = append(want, fmt.Sprintf("q%d This button is not in use any more. true", update))
	}
	if diff := cmp.Diff(want, f.answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

// A press that is not stored has no answer.
func TestListen_PressNotStored_IsNotAnswered(t *testing.T) {
	f := newFixture(t, press(11, "q1", "ask:5:1"))
	f.exec(`CREATE TRIGGER no BEFORE INSERT ON messages BEGIN SELECT raise(ABORT, 'no'); END`)
	f.onLog = func(line string) {
		if strings.Contains(line, "storing event failed") {
			f.stop()
		}
	}
	f.run()
	if f.expectStored(""); len(f.answers) != 0 {
		t.Errorf("answered with %q", f.answers)
	}
}
