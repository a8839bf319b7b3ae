package inbound

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"arizuko/pkg/adapter/inboundtest"
	"arizuko/teled/internal/telegramapi"
)

// Every field of the Bot API's message stands in sent.json, or has a reason why it need not; and every field that the
// converter reads is on that list.
func TestSent_EveryFieldOfAMessageIsConsidered(t *testing.T) {
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown, listed := map[string]bool{}, map[string]bool{}
	for _, e := range inboundtest.Read[struct{ Update map[string]json.RawMessage }](t, "testdata/sent.json") {
		for kind, event := range e.Update {
			if fields := map[string]json.RawMessage{}; kind != "update_id" && json.Unmarshal(event, &fields) == nil {
				for name := range fields {
					shown[name] = true
				}
			}
		}
	}
	for line := range strings.Lines(string(text)) {
		name, why, excused := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(name, "#") {
			continue
		}
		listed[name] = true
		if excused == shown[name] {
			t.Errorf("%s: in sent.json: %t, reason why not: %q", name, shown[name], why)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[telegramapi.Message]()) {
		if name := f.Tag.Get("json"); name != "" && !listed[name] {
			t.Errorf("%s is read, but not on the list", name)
		}
	}
}
