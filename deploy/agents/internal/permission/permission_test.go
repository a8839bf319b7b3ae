package permission

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExactInput_HashIsOfToolAndInput(t *testing.T) {
	hash := func(tool, input string) string {
		t.Helper()
		h, shown, err := exactInput(tool, json.RawMessage(input))
		if err != nil || !json.Valid([]byte(shown)) {
			t.Fatalf("%s: %q, %v", input, shown, err)
		}
		return h
	}
	same := hash("Bash", `{"command":"ls","timeout":12345678901234567890}`)
	if hash("Bash", ` { "timeout" : 12345678901234567890, "command":"ls" } `) != same {
		t.Error("white space or the order of keys matters")
	}
	for _, other := range [][2]string{{"Bash", `{"command":"ls "}`}, {"Bash2", `{"command":"ls","timeout":12345678901234567890}`}, {"Bash", `{"command":"ls","timeout":12345678901234567891}`}} {
		if hash(other[0], other[1]) == same {
			t.Errorf("%v has the same hash", other)
		}
	}
	if _, shown, _ := exactInput("Bash", json.RawMessage(`{"command":"a\",\n\"timeout\": 1"}`)); strings.Count(shown, "\n") != 3 {
		t.Errorf("a text passes for a field:\n%s", shown)
	}
	if _, _, err := exactInput("Bash", nil); err == nil {
		t.Error("no input has a hash")
	}
}

// Indented, this input would have 2 GB.
func TestExactInput_Deep_IsShownWithoutIndentation(t *testing.T) {
	const depth = 5000
	input := strings.Repeat("[", depth) + `"[\"["` + strings.Repeat(",0", 200000) + strings.Repeat("]", depth)
	hash, shown, err := exactInput("Bash", json.RawMessage(input))
	if err != nil || hash == "" || len(shown) > 2*len(input) {
		t.Errorf("%d bytes are shown of %d, %v", len(shown), len(input), err)
	}
	flat := `{"a":"` + strings.Repeat(`[\"{`, maxIndented) + `","b":[` + strings.Repeat(`[],`, maxIndented) + `[]]}`
	if _, shown, err = exactInput("Bash", json.RawMessage(flat)); err != nil || !strings.Contains(shown, "\n  \"b\"") {
		t.Errorf("%v: %s", err, shown)
	}
}
