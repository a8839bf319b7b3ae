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
	all, err := samplesOf(kind)
	if err != nil {
		return "", nil, err
	}
	names := slices.Sorted(maps.Keys(all))
	if event == "" {
		event = names[0]
	}
	if all[event] == nil {
		return "", nil, fmt.Errorf("there is no sample %.80q of %s: choose %s", event, kind, strings.Join(names, ", "))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, all[event]); err != nil {
		return "", nil, err
	}
	return event, bytes.ReplaceAll(compact.Bytes(), []byte("evt_test"), []byte("evt_"+rand.Text())), nil
}

// SampleEvents lists the events that a kind has samples of.
func SampleEvents(kind groupconfig.HookKind) []string {
	all, _ := samplesOf(kind)
	return slices.Sorted(maps.Keys(all))
}

func samplesOf(kind groupconfig.HookKind) (all map[string]json.RawMessage, err error) {
	content, err := samples.ReadFile("samples/" + string(kind) + ".json")
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	return all, err
}
