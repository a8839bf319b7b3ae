package hooks

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"arizuko/pkg/groupconfig"
)

//go:embed samples
var samples embed.FS

// Sample is a delivery as a sender of a kind makes one, for tests: of an event, or of the first one it has for "".
func Sample(kind groupconfig.HookKind, event string) (name string, body []byte, err error) {
	all := samplesOf(kind)
	names := slices.Sorted(maps.Keys(all))
	if event == "" {
		event = names[0]
	}
	if all[event] == nil {
		return "", nil, fmt.Errorf("there is no sample %.80q of %s: choose %s", event, kind, strings.Join(names, ", "))
	}
	return event, bytes.ReplaceAll(all[event], []byte("evt_test"), []byte("evt_"+rand.Text())), nil
}

// SampleEvents lists the events that a kind has samples of.
func SampleEvents(kind groupconfig.HookKind) []string {
	return slices.Sorted(maps.Keys(samplesOf(kind)))
}

func samplesOf(kind groupconfig.HookKind) (all map[string]json.RawMessage) {
	content, _ := samples.ReadFile("samples/" + string(kind) + ".json")
	_ = json.Unmarshal(content, &all) // there is one for each kind
	return all
}
