package adapter

import (
	"strings"
	"testing"

	"arizuko/pkg/config/configtest"
)

func TestEnvironment_PageMatchesConfig(t *testing.T) {
	configtest.CheckTable(t, "../../docs/reference/environment.md", "adapters", Settings{})
}

func TestAccount_Name_CheckedAtStart(t *testing.T) {
	for name, valid := range map[string]bool{"": true, "work": true, "a-b_2": true, "Work": false, "a b": false, "../x": false, "-a": false, strings.Repeat("a", 33): false} {
		var a Account
		if err := a.UnmarshalText([]byte(name)); (err == nil) != valid || valid && string(a) != name || !valid && !strings.Contains(err.Error(), "a-z, 0-9, _ and -") {
			t.Errorf("%q: %q, %v", name, a, err)
		}
	}
}
